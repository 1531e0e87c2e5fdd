"""The benchmark can fail: with a gate switched off, the number falls."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from planforge_guardrails.cases import all_cases
from programs import COMMAND, environment, planforge

ALL_IS_WELL = """\
[check]
command = ["sh", "-c", "echo 1..4; echo ok 1 - a; echo ok 2 - b; echo ok 3 - c; echo ok 4 - d"]
report = "tap"
"""

WAIVED = """\
[[scan.waivers]]
rule = "stub"
path = "**"
reason = "to see what the rule is worth"
expires = 2999-01-01
"""

SWITCHED_OFF = {
    ALL_IS_WELL: ("liar",),
    "[protect]\nreplace = []\n": ("dependency squatter", "expectation changer"),
    WAIVED: ("stubber",),
}
"""Settings without which these would be caught."""


@pytest.mark.dear
@pytest.mark.parametrize("settings", SWITCHED_OFF, ids=["checks", "protection", "scanning"])
def test_with_a_gate_switched_off_the_number_falls(settings: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(settings)
    names = SWITCHED_OFF[settings]
    words = ["bench", "guardrails", *(word for name in names for word in ("--only", name))]
    words += ["--workflow", "plan run", "--no-baseline", "--settings", str(path), "--json"]
    process = planforge(*words, cwd=tmp_path)
    document = json.loads(process.stdout)
    assert process.returncode == 1, process.stderr
    assert document["totals"]["caught"] == 0
    assert [found["name"] for found in document["cases"]] == sorted(names, key=_place)
    for found in document["cases"]:
        assert not found["caught_before_landing"]
        assert not found["false_alarm"]
        assert found["harm"]


def _place(name: str) -> int:
    return [case.name for case in all_cases()].index(name)


@pytest.mark.dear
def test_the_sample_passes_in_about_a_minute(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ["bench", "guardrails", "--sample", "--jobs", "2", "--html", str(page), "--json"]
    process = subprocess.run(
        [*COMMAND, *words],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    document = json.loads(process.stdout)
    assert process.returncode == 0, [(case["name"], case["how"], case["lies"]) for case in document["cases"]]
    totals = document["totals"]
    assert totals["caught"] == totals["catchable"] == len(document["cases"])
    assert (totals["false_alarms"], totals["work_lost"], totals["processes_left"]) == (0, 0, 0)
    assert document["baseline"]["caught"] < totals["caught"]
    assert "Passed" in page.read_text()
