"""`planforge plan audit --structural` and `plan decompose`: any file, anywhere."""

from __future__ import annotations

import json
import os
import sysconfig
from pathlib import Path

import pytest

from planforge.documents.phases import decompose
from planforge.documents.plan import structural_findings
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
    assert list(tmp_path.iterdir()) == [tmp_path / "plan.md"]


def documents() -> list[Path]:
    """Real documents in Markdown or like it, as packages bring them: no two the same."""
    places = [Path(sysconfig.get_path(name)) for name in ("purelib", "stdlib")]
    suffixes = {".md", ".rst", ".txt", ".markdown"}
    found = [path for place in places for path in sorted(place.rglob("*")) if path.suffix in suffixes]
    return [path for path in found if path.is_file() and path.stat().st_size < 200_000][:300]


def test_two_hundred_real_documents_are_decomposed_twice_alike_and_inside() -> None:
    read = 0
    for path in documents():
        text = path.read_bytes().decode("utf-8", "replace")
        for whole in (text, f"## Changes\n\n{text}", f"## Changes\r\n\r\n{text}".replace("\n", "\r\n")):
            phases = decompose(whole)
            assert phases == decompose(whole), path
            structural_findings(whole)
            for name in (name for phase in phases for name in phase.files):
                assert not name.startswith(("/", "~", "\\")), (path, name)
                assert ".." not in name.split("/"), (path, name)
                assert os.path.normpath(name) == name, (path, name)
                assert ".git" not in name.split("/"), (path, name)
        read += 1
    assert read >= 200
