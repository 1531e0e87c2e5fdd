"""`planforge verdict`, `policy`, `states` and `pipeline`: the rules, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calls import caller
from programs import document, planforge

COURSE = [
    {"issues": [{"severity": "minor", "description": f"thing {number}"} for number in range(count)]}
    for count in (12, 11, 10, 13)
]


@pytest.mark.parametrize(
    ("kind", "text", "code", "verdict"),
    [
        ("review", "**Verdict:** Approved\n", 0, "approved"),
        ("review", "**Verdict:** Revision Required\n", 1, "revision"),
        ("review", "Looks good to me\n", 2, "unknown"),
        ("audit", '{"maxSeverity": "minor"}', 0, "approved"),
        ("audit", "Severity: blocking", 1, "revision"),
        ("module", "Verdict: APPROVE", 0, "approved"),
        ("polish", '{"issues": []}', 0, "approved"),
        ("polish", "fine", 2, "unknown"),
        ("sarif", '{"version": "2.1.0", "runs": [{"results": []}]}', 0, "approved"),
        ("sarif", '{"version": "2.1.0", "runs": [{"results": [{"level": "error"}]}]}', 1, "revision"),
        ("sarif", '{"version": "2.1.0", "runs": []}', 2, "unknown"),
    ],
)
def test_a_review_is_told_by_its_exit_code(
    tmp_path: Path, kind: str, text: str, code: int, verdict: str
) -> None:
    process = planforge("verdict", "-", "--kind", kind, "--json", cwd=tmp_path, stdin=text)
    assert process.returncode == code, process.stderr
    found = json.loads(process.stdout)
    assert found["verdict"] == verdict
    assert found["loops"] == (verdict == "revision")
    assert {"max_severity", "findings"} <= set(found)


@pytest.mark.parametrize(
    ("kind", "text", "severity"),
    [
        ("audit", '{"maxSeverity": "none"}', "none"),
        ("audit", "It looks fine.", "none"),
        ("audit", "Severity: high", "blocking"),
        ("review", "**Verdict:** Approved\n", "none"),
        ("module", "Verdict: APPROVE", "none"),
        ("polish", '{"issues": []}', "none"),
        ("sarif", '{"version": "2.1.0", "runs": [{"results": []}]}', "none"),
    ],
)
def test_a_review_without_a_severity_says_none_as_an_audit_of_the_form_does(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    text: str,
    severity: str,
) -> None:
    call = caller(tmp_path, monkeypatch, capsys)
    (tmp_path / "review").write_text(text)
    (tmp_path / "plan.md").write_text("")
    review = call("verdict", "review", "--kind", kind, "--json").document
    form = call("plan", "audit", "plan.md", "--structural", "--json").document
    assert review["max_severity"] == severity
    assert list(review) == list(form)
    assert all(set(found) >= {"fingerprint", "severity"} for found in form["findings"])


def test_the_findings_of_a_review_are_written_for_tools_and_read_back(tmp_path: Path) -> None:
    table = "| Severity | File | Issue | Suggested Fix |\n|---|---|---|---|\n"
    (tmp_path / "review.md").write_text(
        f"Verdict: REJECT\n\n{table}| required | src/a.py:3 | no check | check |\n"
    )
    first = planforge(
        "verdict", "review.md", "--kind", "module", "--sarif", "f.sarif", "--json", cwd=tmp_path
    )
    again = planforge("verdict", "f.sarif", "--kind", "sarif", "--json", cwd=tmp_path)
    assert (first.returncode, again.returncode) == (1, 1)
    (finding,) = json.loads(first.stdout)["findings"]
    assert [finding] == json.loads(again.stdout)["findings"]
    assert (finding["recommendation"], finding["evidence"]) == ("check", "located")
    (result,) = json.loads((tmp_path / "f.sarif").read_text())["runs"][0]["results"]
    assert finding["fingerprint"] in result["partialFingerprints"].values()
    refused = planforge("verdict", "review.md", "--kind", "module", "--sarif", "no/such/place", cwd=tmp_path)
    assert "`no/such/place` cannot be written" in refused.stderr


def test_a_file_that_is_not_there_or_not_text_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"**Verdict:** Approved\n\xff\xfe")
    for name in ("missing", "bytes"):
        process = planforge("verdict", name, "--kind", "review", cwd=tmp_path)
        assert process.returncode == 2
        assert process.stdout.startswith("unknown: ")


def test_a_trajectory_is_gone_through_guard_by_guard(tmp_path: Path) -> None:
    (tmp_path / "course.json").write_text(json.dumps(COURSE))
    found = document("policy", "simulate", "course.json", "--policy", "convergence", cwd=tmp_path)
    assert [item["fired"] for item in found["iterations"]] == ["", "", "", "hallucination"]
    assert found["iterations"][-1]["decision"]["decision"] == "halt"
    assert len(found["iterations"][0]["looks"]) == 6
    told = planforge(
        *("policy", "simulate", "course.json", "--policy", "convergence", "--plot", "--svg", "c.svg"),
        cwd=tmp_path,
    )
    assert "halt (hallucination)" in told.stdout
    assert "12 → 11 → 10 → 13" in (tmp_path / "c.svg").read_text()
    fewer = ("policy", "simulate", "-", "--policy", "convergence", "--set", "minor_max=12", "--json")
    done = json.loads(planforge(*fewer, cwd=tmp_path, stdin=json.dumps(COURSE)).stdout)
    assert [item["decision"]["decision"] for item in done["iterations"]] == ["done"]


@pytest.mark.parametrize(
    ("words", "text", "problem"),
    [
        (["--policy", "nope"], "[]", "there is no policy `nope`"),
        (["--policy", "progress"], "[]", "the trajectory has no iterations"),
        (["--policy", "progress"], "{", "the trajectory is not JSON"),
        (["--policy", "progress"], '{"a": 1}', "a trajectory is a list of iterations"),
        (["--policy", "progress"], '[{"issue": []}]', "iteration 1: "),
        (["--policy", "progress"], '[{}, {"issues": [{"severity": "dire"}]}]', "iteration 2: `dire`"),
        (["--policy", "progress", "--set", "ceiling"], "[]", "is not NAME=VALUE"),
        (["--policy", "progress", "--set", "speed=3"], "[]", "has no setting `speed`"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line(
    tmp_path: Path, words: list[str], text: str, problem: str
) -> None:
    process = planforge("policy", "simulate", "-", *words, cwd=tmp_path, stdin=text)
    assert process.returncode == 2
    assert process.stderr.startswith("error: ")
    assert problem in process.stderr
    assert "Traceback" not in process.stderr


def test_statuses_are_shown_and_drawn(tmp_path: Path) -> None:
    assert "polish" in planforge("states", cwd=tmp_path).stdout
    told = planforge("states", "plan", "--svg", "plan.svg", cwd=tmp_path)
    assert "▸ approve" in told.stdout
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
    assert document("states", "bug", cwd=tmp_path)["initial"] == "reported"
    assert planforge("states", "plan", "--svg", "no/where.svg", cwd=tmp_path).returncode == 3
    assert planforge("states", "lunch", cwd=tmp_path).returncode == 2


OWN = """
[pipelines.own]
requires = ["review"]
stages = [
  {name = "implement", role = "developer", writes = ["code"]},
  {name = "review", role = "reviewer", verdict = "review", judges = ["code"]},
  {name = "polish", role = "fixer", writes = ["code"]},
  {name = "commit", role = "collator", gate = "after review = approved", lands = true},
]
"""


def test_the_pipelines_that_come_with_planforge_are_proved_clean(tmp_path: Path) -> None:
    process = planforge("pipeline", "check", cwd=tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.count("✓") == 6
    assert "commit (collator, lands)" in planforge("pipeline", "show", "default", cwd=tmp_path).stdout


def test_a_planted_bypass_is_found_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "planforge.toml").write_text(OWN)
    process = planforge("pipeline", "check", "own", cwd=tmp_path)
    assert process.returncode == 1
    assert "lands without the approval of `review`" in process.stdout
    assert "implement → review (approved) → polish → commit" in process.stdout
    mended = OWN.replace('{name = "polish", role = "fixer", writes = ["code"]},', "")
    (tmp_path / "planforge.toml").write_text(mended)
    [found] = document("pipeline", "check", "own", cwd=tmp_path)
    assert (found["clean"], found["faults"]) == (True, [])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('"developer"', '"wizard"'), "there is no role `wizard`"),
        (("writes", "wirtes"), "did you mean `pipelines.own.stages[0].writes`?"),
        (("after review", "after lunch"), "`lunch`, which is no stage"),
    ],
)
def test_a_pipeline_with_a_slip_of_the_pen_is_told(
    tmp_path: Path, change: tuple[str, str], problem: str
) -> None:
    (tmp_path / "planforge.toml").write_text(OWN.replace(*change))
    process = planforge("pipeline", "check", "own", cwd=tmp_path)
    assert process.returncode in (1, 2)
    assert problem in process.stdout + process.stderr
    assert planforge("pipeline", "show", "none", cwd=tmp_path).returncode == 2
