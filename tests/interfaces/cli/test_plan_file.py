"""`planforge plan audit --structural` and `plan decompose`: any file, anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from programs import planforge

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
