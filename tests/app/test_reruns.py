"""The checks of a proof, run again in clean checkouts: the same, or said where not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from forgeries import HISTORIES, Forgery, body, forged
from planforge.app.history.reruns import rerun
from planforge.errors import InvalidInput
from planforge.kernel.replay.proof import Proof
from planforge.kernel.replay.proof_faults import unpack
from planforge.workspace.git import bare_objects
from repositories import git

FAILED = "failed-after-three-lies"
RETRIED = "done-after-retries-and-rejections"


def proof(name: str) -> Proof:
    return unpack((HISTORIES / f"{name}.proof").read_bytes())[0]


def test_the_recorded_checks_come_out_the_same_again() -> None:
    found = asyncio.run(rerun(proof(RETRIED)))
    assert [again.agrees for again in found] == [True] * 3
    assert [again.found.split(":")[0] for again in found] == ["fail", "pass", "pass"]


def test_a_check_that_comes_out_otherwise_is_said() -> None:
    def claim(forgery: Forgery) -> None:
        row = forgery.find("VerifyFailed")
        counts = {"total": 7, "passed": 7, "failed": 0, "skipped": 0}
        forgery.change(row, evidence=body(row)["evidence"] | {"counts": counts, "outcome": "pass"})

    found = asyncio.run(rerun(unpack(forged(FAILED, claim).data())[0]))
    assert [again.agrees for again in found] == [False]
    assert found[0].recorded == "pass: 7 passed, 0 failed, 0 skipped of 7"
    assert found[0].found == "fail: 4 passed, 2 failed, 0 skipped of 6"


def test_files_may_come_from_a_repository(tmp_path: Path) -> None:
    def leave_out(forgery: Forgery) -> None:
        forgery.manifest["files"] = "none"
        forgery.parts = {name: part for name, part in forgery.parts.items() if not name.startswith("git/")}

    bare = unpack(forged(FAILED, leave_out).data())[0]
    with pytest.raises(InvalidInput, match="the files are not in the proof"):
        asyncio.run(rerun(bare))
    full = proof(FAILED)
    bare_objects.lay_out(full.git, tmp_path / "r", [])
    found = asyncio.run(rerun(bare, tmp_path / "r"))
    assert [again.agrees for again in found] == [True]
    assert git(tmp_path / "r", "worktree", "list").count("\n") == 0


def test_a_repository_without_the_commit_is_said(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "r")
    found = asyncio.run(rerun(proof(FAILED), tmp_path / "r"))
    assert [again.agrees for again in found] == [False]
    assert "there is no tree" in found[0].found


def test_a_forge_has_no_checks_to_run() -> None:
    assert asyncio.run(rerun(proof("forge-stopped-by-its-cap"))) == []


def in_parts(forgery: Forgery, attached: bool = True) -> None:
    """Give the evidence of a run a build beside its tests, as if both had been run."""
    row = forgery.find("VerifyFailed")
    seen = body(row)["evidence"]
    tests = {"name": "tests", "report": "unittest", "command": seen["command"]}
    parts = []
    for check in ({"name": "build", "report": "none", "command": ["true"]}, tests):
        name = check.pop("name")
        own = {key: seen[key] for key in ("outcome", "reason", "exit_code", "counts", "failing", "output")}
        if name == "build":
            own = {"outcome": "pass", "reason": "it ended with 0", "exit_code": 0}
        kept = [{"name": "check", "object": forgery.keep(json.dumps(check).encode())}] if attached else []
        parts.append({"name": name, "command": check["command"], "attached": kept} | own)
    forgery.change(row, evidence=seen | {"parts": parts})


def test_every_part_of_evidence_is_run_again_as_its_own_check_says() -> None:
    found = asyncio.run(rerun(unpack(forged(FAILED, in_parts).data())[0]))
    assert [(again.agrees, again.found) for again in found] == [
        (True, "fail: 4 passed, 2 failed, 0 skipped of 6")
    ]


def test_a_part_that_does_not_say_how_it_was_checked_cannot_be_run_again() -> None:
    def unsaid(forgery: Forgery) -> None:
        in_parts(forgery, attached=False)

    with pytest.raises(InvalidInput, match="does not say how `build` was checked"):
        asyncio.run(rerun(unpack(forged(FAILED, unsaid).data())[0]))
