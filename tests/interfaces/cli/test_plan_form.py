"""`planforge plan audit --structural` and `plan decompose`: any file, anywhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from calls import caller
from planforge.documents.phases import decompose
from planforge.interfaces.cli.commands.plan.form import page
from programs import planforge
from repositories import repository

WHOLE = """\
# Plan: Rate limits

## Objective

Callers must not be able to flood the service.

## Scope

The gateway and nothing else.

## Changes

- `gateway/limit.py` — a token bucket for each caller.
- `tests/test_limit.py` — tests of the bucket.

## Risks

A clock that jumps back.

## Testing

Run the unit tests.
"""


@pytest.mark.parametrize(
    ("text", "code", "severity"),
    [
        (WHOLE, 0, "none"),
        (
            WHOLE.replace("# Plan: Rate limits", "# Plan: Rate limits\n\n**Status:** CLOSED\n\n---"),
            0,
            "minor",
        ),
        (WHOLE.replace("A clock that jumps back.", "*what could go wrong*"), 1, "medium"),
        (
            WHOLE.replace("`gateway/limit.py`", "gateway").replace("`tests/test_limit.py`", "tests"),
            1,
            "medium",
        ),
        (WHOLE.replace("gateway/limit.py", "path/to/limit.py"), 1, "medium"),
        (WHOLE.replace("## Risks", "## Other"), 1, "blocking"),
        ("", 1, "blocking"),
    ],
)
def test_the_form_of_a_plan_is_told_by_the_exit_code(
    tmp_path: Path, text: str, code: int, severity: str
) -> None:
    process = planforge("plan", "audit", "-", "--structural", "--json", cwd=tmp_path, stdin=text)
    assert process.returncode == code, process.stderr
    found = json.loads(process.stdout)
    assert (found["max_severity"], found["loops"]) == (severity, bool(code))
    assert found["verdict"] == ("revision" if code else "approved")
    assert bool(found["findings"]) == (severity != "none")


def test_what_cannot_be_read_is_neither(tmp_path: Path) -> None:
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe")
    for name in ("missing.md", "bytes.md", "."):
        assert planforge("plan", "audit", name, "--structural", cwd=tmp_path).returncode == 2
        assert planforge("plan", "decompose", name, cwd=tmp_path).returncode == 2
    (tmp_path / "plan.md").write_text(WHOLE)
    assert planforge("plan", "audit", "plan.md", cwd=tmp_path).returncode == 2


def test_any_file_is_decomposed_without_a_repository(tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text(WHOLE)
    process = planforge("plan", "decompose", "plan.md", "--json", cwd=tmp_path)
    found = json.loads(process.stdout)
    assert [(phase["id"], phase["kind"], phase["files"], phase["depends_on"]) for phase in found] == [
        ("phase-1", "implement", ["gateway/limit.py", "tests/test_limit.py"], []),
        ("phase-2", "audit", ["gateway/limit.py", "tests/test_limit.py"], ["phase-1"]),
    ]
    assert "a token bucket for each caller" in found[0]["change_spec"]
    assert [list(phase) for phase in found] == [["id", "kind", "files", "depends_on", "change_spec"]] * 2
    assert list(tmp_path.iterdir()) == [tmp_path / "plan.md"]


TWO = WHOLE.replace(
    "- `tests/test_limit.py` — tests of the bucket.", "- `web/a.ts` — show it (after `gateway/limit.py`)"
).replace("- `gateway/limit.py`", "- `docs/limit.md`\n- `gateway/limit.py`")


@pytest.mark.parametrize(
    ("header", "option", "depends_on"),
    [
        ("", [], [[], ["phase-1"], ["phase-2"]]),
        ("", ["--parallel"], [[], [], ["phase-2"]]),
        ("**Parallel:** yes", [], [[], [], ["phase-2"]]),
        ("**Parallel:** Yes", ["--chain"], [[], ["phase-1"], ["phase-2"]]),
        ("**Parallel:** no", ["--parallel"], [[], [], ["phase-2"]]),
    ],
)
def test_phases_are_side_by_side_as_the_plan_declares_or_the_option_says(
    tmp_path: Path, header: str, option: list[str], depends_on: list[list[str]]
) -> None:
    text = TWO.replace("## Objective", f"{header}\n\n## Objective", 1)
    process = planforge("plan", "decompose", "-", "--json", *option, cwd=tmp_path, stdin=text)
    assert [phase["depends_on"] for phase in json.loads(process.stdout)][:-1] == depends_on


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            TWO.replace("(after `gateway/limit.py`)", "(after `gateway/no.py`)"),
            "which the plan does not change",
        ),
        (
            TWO.replace("`docs/limit.md`", "`docs/limit.md` (after `docs/limit.md`)"),
            "files wait for each other",
        ),
        (TWO.replace("## Objective", "**Parallel:** perhaps\n\n## Objective"), "neither yes nor no"),
    ],
)
def test_an_order_that_cannot_be_is_told_with_a_way_out(tmp_path: Path, text: str, said: str) -> None:
    process = planforge("plan", "decompose", "-", "--json", cwd=tmp_path, stdin=text)
    error = json.loads(process.stdout)["error"]
    assert (process.returncode, error["error"]) == (2, "InvalidDocument")
    assert said in error["message"]
    assert error["hint"]


def test_the_screen_is_no_wider_than_a_terminal_and_counts_what_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = caller(tmp_path, monkeypatch, capsys)
    items = "".join(f"- `src/part{at // 9}/a_module_of_some_length_{at}.py`\n" for at in range(900))
    (tmp_path / "plan.md").write_text(f"## Changes\n\n{items}")
    lines = call("plan", "decompose", "plan.md").out.splitlines()
    assert len(lines) == 201
    assert max(map(len, lines)) <= 100
    assert re.search(r"audit +src/part0/a_module.* and 899 more +after phase-1 and 199 more", lines[-1])
    assert len(call("plan", "decompose", "plan.md", "--json").document[-1]["files"]) == 900


def test_on_a_terminal_it_is_no_longer_than_that_and_the_audit_is_shown() -> None:
    phases = decompose("## Changes\n\n" + "".join(f"- `part{at}/a.py`\n" for at in range(100)))
    lines = page(phases, 60, 24).splitlines()
    assert (len(lines), max(map(len, lines)) <= 60) == (22, True)
    assert lines[-2].startswith("phase-101  audit")
    assert lines[-1] == "… 80 more phases before the last; `--json` has them"


def test_a_name_without_an_extension_is_a_file_if_the_repository_around_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = repository(tmp_path / "workshop", {"deploy": "old\n", "src/a b/c.x": "old\n"})
    call = caller(root, monkeypatch, capsys)
    (root / "plan.md").write_text("## Changes\n\n- `deploy` — x\n- `src`\n- `src/a b/d.x`\n- `pytest`\n")
    assert call("plan", "decompose", "plan.md", "--json").document[-1]["files"] == ["deploy", "src/a b/d.x"]
