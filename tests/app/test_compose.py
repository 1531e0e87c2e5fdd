"""Performers that are called again for the same effect find or make the same thing."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from planforge.app.compose import Worker, performers
from planforge.app.project import Project
from planforge.app.runs.leasing import Leasing
from planforge.errors import LeaseLost, NeedsPerson
from planforge.kernel import effects, leases
from planforge.kernel.driver import Call
from planforge.kernel.effects import Effect
from planforge.workflows.chat import TakeActions
from planforge.workflows.demo import MakeSample
from planforge.workflows.flows import FLOWS
from repositories import commit, git, repository, write

AT = "2026-01-02T03:04:05.678901+00:00"


def worker(place: Path) -> tuple[Worker, Project]:
    project = Project.create(repository(place))
    return Worker(project, "run-001", "plan-001", Leasing(project, "run-001")), project


def call(*, resumed: bool = False) -> Call:
    return Call(run="run-001", key="/0", intended_at=AT, resumed=resumed)


def test_a_commit_is_dated_by_its_intent_so_that_a_second_try_makes_the_same(tmp_path: Path) -> None:
    work, project = worker(tmp_path)
    asyncio.run(work.open_worktree(effects.OpenWorktree(name="phase-1-1", commit="HEAD"), call()))
    write(project.state / "worktrees" / "run-001" / "phase-1-1", {"new.py": "x = 1\n"})
    effect = effects.Commit(
        worktree="phase-1-1",
        parent=git(tmp_path, "rev-parse", "HEAD"),
        message="m\n",
        step="phase-1",
        attempt=1,
    )
    first = asyncio.run(work.commit(effect, call()))
    second = asyncio.run(work.commit(effect, call(resumed=True)))
    assert first == second
    assert first.files == ("new.py",)
    assert git(tmp_path, "show", "--no-patch", "--format=%cI %aI", first.commit) == " ".join(
        ["2026-01-02T03:04:05+00:00"] * 2
    )
    assert len(git(tmp_path, "for-each-ref", "refs/planforge/archive/").splitlines()) == 1


def test_a_landing_asked_for_again_is_found_done(tmp_path: Path) -> None:
    work, _ = worker(tmp_path)
    effect = leased_landing(work, tmp_path)
    assert asyncio.run(work.land(effect, call())).landed
    assert asyncio.run(work.land(effect, call(resumed=True))).landed
    assert git(tmp_path, "rev-parse", "planforge/plan-001") == effect.commit


def leased_landing(work: Worker, place: Path) -> effects.Land:
    """A landing under a lease that is live when it is first asked for."""
    base = git(place, "rev-parse", "HEAD")
    new = git(place, "commit-tree", f"{base}^{{tree}}", "-p", base, "-m", "work")
    asyncio.run(work.open_branch(effects.OpenBranch(branch="planforge/plan-001", commit=base), call()))
    claim = effects.ClaimLease(holder="run-001/phase-1", paths=("app.py",))
    lease = asyncio.run(work.leasing.claim(claim, call()))
    return effects.Land(
        branch="planforge/plan-001", commit=new, expected=base, lease=lease, files=("app.py",)
    )


def test_what_has_landed_is_found_done_although_its_lease_is_gone(tmp_path: Path) -> None:
    work, project = worker(tmp_path)
    effect = leased_landing(work, tmp_path)
    assert asyncio.run(work.land(effect, call())).landed
    assert effect.lease is not None
    leases.force(project.ledger, effect.lease.fence, "ada", "the process died before it could say so")
    assert asyncio.run(work.land(effect, call(resumed=True))).landed


def test_nothing_lands_without_its_lease(tmp_path: Path) -> None:
    work, project = worker(tmp_path)
    effect = leased_landing(work, tmp_path)
    assert effect.lease is not None
    leases.force(project.ledger, effect.lease.fence, "ada", "it hangs")
    for resumed in (False, True):
        with pytest.raises(LeaseLost):
            asyncio.run(work.land(effect, call(resumed=resumed)))
    assert git(tmp_path, "rev-parse", "planforge/plan-001") == effect.expected


def test_a_question_to_a_person_parks_the_run(tmp_path: Path) -> None:
    work, _ = worker(tmp_path)
    with pytest.raises(NeedsPerson, match="Shall we"):
        asyncio.run(work.ask_human(effects.AskHuman(question="Shall we?", options=("yes", "no")), call()))


AGENT = """
[agents]
default = "ours"
{settings}
[agents.profiles.ours]
command = ["{program}"]
resume = "load"
read.tools = {tools}
"""


@pytest.mark.parametrize(
    ("settings", "tools", "told"),
    [("", "true", False), ('models.reviser = "own"', "true", True), ("", "false", False)],
)
def test_what_is_gathered_depends_on_who_plays_the_role(
    tmp_path: Path, settings: str, tools: str, told: bool
) -> None:
    work, project = worker(tmp_path)
    commit(tmp_path, {"docs/architecture.md": "# All of it\n\nIt is one program.\n"}, "architecture")
    written = AGENT.format(settings=settings, program=sys.executable, tools=tools)
    (project.root / "planforge.toml").write_text(written)
    asked = effects.GatherContext(role="reviser", plan="plan-001", base="HEAD")
    found = asyncio.run(work.gather_context(asked, call()))
    assert ("architecture" in {part.name for part in found.parts}) is told
    assert found.tools is (tools == "true")


FLOWS_WITH_OWN = ("forge", "demo", "land", "chat")


def test_every_effect_has_somebody_who_performs_it(tmp_path: Path) -> None:
    _, project = worker(tmp_path)
    asked = set(Effect.__subclasses__())
    kinds = {kind for kind in asked if kind.__module__ == "planforge.kernel.effects"}
    assert kinds
    forge, demo, land, chat = (
        set(performers(project, "run-001", FLOWS[flow].needs, "plan-001")) for flow in FLOWS_WITH_OWN
    )
    assert forge | land == kinds
    assert demo - forge == {MakeSample}
    assert chat - forge == {TakeActions}
