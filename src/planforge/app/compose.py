"""
Wires performers to effects. Nothing else does.

Each performer asks reality first where an earlier try of the same effect left no
outcome: a commit is made the same again, a landing is found done, an agent starts
over in a clean worktree while what its interrupted predecessor left is kept.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib import import_module
from typing import Any, NamedTuple

from planforge.app import demo
from planforge.app import landing as landing_runs
from planforge.app.agents.audience import NOBODY, Audience
from planforge.app.agents.calls import Asking
from planforge.app.agents.casting import Cast
from planforge.app.agents.workplace import Workroom
from planforge.app.chat import talking
from planforge.app.context import gather, handoffs, survey
from planforge.app.decisions import approvals, gates, questions, statuses
from planforge.app.evidence import gatherer, screening
from planforge.app.items import documents, phase_file
from planforge.app.landing import lander
from planforge.app.plans import phases
from planforge.app.project import Project
from planforge.app.runs.leasing import Leasing
from planforge.app.runs.performing import Performer, aside, at_once
from planforge.app.tasks import facts
from planforge.errors import NoAgent
from planforge.kernel import effects
from planforge.kernel.driver import Call, Performers
from planforge.kernel.evidence import Evidence
from planforge.workflows.chat import TakeActions
from planforge.workspace.git import patches
from planforge.workspace.landing import branches
from planforge.workspace.worktrees import Worktrees


def performers(
    project: Project,
    run: str,
    needs: tuple[str, ...],
    plan: str,
    leasing: Leasing | None = None,
    audience: Audience = NOBODY,
    cast: Cast | None = None,
) -> Performers:
    """
    Who does what for one run, with the groups that its flow needs.

    Somebody may attend to its leases, and somebody may follow it.
    """
    worker = Worker(project, run, plan, leasing or Leasing(project, run), audience, cast)
    table: dict[Any, Performer] = {
        effects.GatherContext: worker.gather_context,
        effects.Survey: aside(project, survey.survey),
        effects.ReadFiles: aside(project, survey.read),
        effects.RunAgent: worker.run_agent,
        effects.AskHuman: worker.ask_human,
        effects.GiveApproval: worker.give_approval,
        effects.TakeApproval: worker.take_approval,
        effects.ReadPlan: at_once(project, documents.read_plan),
        effects.WritePlan: at_once(project, documents.write_plan),
        effects.MarkPlan: worker.mark_plan,
        effects.ReadPhases: aside(project, phases.read),
        effects.ShowPhases: worker.show_phases,
        effects.ReadDocument: at_once(project, documents.read),
        effects.WriteDocument: at_once(project, documents.write),
        effects.ReadFacts: at_once(project, facts.found),
        effects.OpenWorktree: worker.open_worktree,
        effects.CloseWorktree: worker.close_worktree,
        effects.OpenBranch: worker.open_branch,
        effects.Commit: worker.commit,
        effects.Rebase: worker.rebase,
        effects.Inspect: worker.inspect,
        effects.PassGate: worker.pass_gate,
        effects.RunCheck: worker.run_check,
        effects.RunFormerTests: worker.run_former_tests,
        effects.ClaimLease: worker.leasing.claim,
        effects.ReleaseLease: worker.leasing.release,
        effects.HandOver: worker.hand_over,
        effects.Land: worker.land,
    }
    for group in needs:
        table |= GROUPS[group].performers(project, run)
    return table


Staged = AbstractContextManager["Cast | None"]


def _as_it_is(project: Project, subject: str) -> Staged:
    del project, subject
    return nullcontext()


class Group(NamedTuple):
    """What some flows need besides what every flow does."""

    performers: Callable[[Project, str], Mapping[Any, Performer]]
    """Who performs its effects, in a run."""
    staged: Callable[[Project, str], Staged] = _as_it_is
    """What has to be there while a run of a subject is driven; who plays, if not the usual agents."""


GROUPS = {
    "landing": Group(lander.performers, landing_runs.only_lander),
    "actions": Group(lambda project, _: {TakeActions: talking.take_actions(project)}),
    "stage": Group(demo.performers, demo.staged),
}
"""By the names that flows have for them in their declarations (`workflows/flows.py`)."""


@contextmanager
def staged(project: Project, needs: tuple[str, ...], subject: str) -> Iterator[Cast | None]:
    """Have everything there that a flow needs; who plays in it, if not the usual agents."""
    with ExitStack() as stack:
        casts = [stack.enter_context(GROUPS[group].staged(project, subject)) for group in needs]
        yield next(filter(None, casts), None)


class Worker:
    """Performs the effects of one run."""

    def __init__(
        self,
        project: Project,
        run: str,
        plan: str,
        leasing: Leasing,
        audience: Audience = NOBODY,
        cast: Cast | None = None,
    ) -> None:
        self._project = project
        self._plan = plan
        self._worktrees = Worktrees(project.git, project.state, run, secret=screening.finder(project, plan))
        self._room = Workroom(project, self._worktrees)
        self.leasing = leasing
        self._asking = Asking(project, run, plan, self._room, leasing, audience, cast)

    # Agents and people

    async def run_agent(self, effect: effects.RunAgent, call: Call) -> effects.AgentAnswer:
        """Ask the agent that plays the role; one that only reads must leave its worktree as it was."""
        if effect.access is effects.Access.WRITE:
            threading.Thread(target=_load_ahead, daemon=True).start()
        return await self._asking.answer(effect, call)

    async def gather_context(self, effect: effects.GatherContext, _: Call) -> effects.Gathered:
        """Read what an agent is to know, whoever plays the role."""
        return await asyncio.to_thread(self._gathered, effect)

    def _gathered(self, effect: effects.GatherContext) -> effects.Gathered:
        casting = self._asking.casting
        try:
            knows, tools = casting.goes_on(effect.role), casting.can_read(effect.role)
        except NoAgent:  # said when one is asked
            knows, tools = False, True
        return gather.gather(self._project, effect, knows=knows, tools=tools)

    async def ask_human(self, effect: effects.AskHuman, call: Call) -> effects.Reply:
        """Nobody is at hand here: the question is left for a person, and the run waits."""
        return questions.reply(self._project, effect, call, self._plan)

    async def give_approval(self, effect: effects.GiveApproval, _: Call) -> effects.Approval:
        """Record the yes that a person gave in this run."""
        return approvals.give(self._project, effect.plan, effect.gate, effect.content, effect.actor)

    async def take_approval(self, effect: effects.TakeApproval, call: Call) -> effects.Approval:
        """Use up the approval for this run."""
        return approvals.take(self._project, effect.plan, effect.gate, effect.content, call.run)

    # Documents

    async def mark_plan(self, effect: effects.MarkPlan, _: Call) -> None:
        """Write the status line."""
        statuses.mark(self._project, effect.plan, effect.status)

    async def show_phases(self, effect: effects.ShowPhases, _: Call) -> None:
        """Write the phases file as the ledger has them now."""
        phase_file.write(self._project, effect.plan)

    # Worktrees, commits, checks, landing

    async def open_worktree(self, effect: effects.OpenWorktree, _: Call) -> effects.Checkout:
        """Make it, or make it anew."""
        return await asyncio.to_thread(self._room.open, effect.name, effect.commit)

    async def close_worktree(self, effect: effects.CloseWorktree, _: Call) -> None:
        """Remove it; all right if it is gone."""
        await asyncio.to_thread(self._room.close, effect.name)

    async def open_branch(self, effect: effects.OpenBranch, _: Call) -> effects.Tip:
        """Make it unless it exists."""
        return await asyncio.to_thread(branches.open_branch, self._project.git, effect.branch, effect.commit)

    async def commit(self, effect: effects.Commit, call: Call) -> effects.Patch:
        """Commit the worktree. Dated by the intent, so that a second try makes the very same commit."""
        return await asyncio.to_thread(
            self._worktrees.commit,
            effect.worktree,
            effect.parent,
            effect.message,
            f"{effect.step}-{effect.attempt}",
            call.intended_at,
        )

    async def rebase(self, effect: effects.Rebase, call: Call) -> effects.Patch:
        """Carry the change over to another commit, dated likewise."""
        label = f"{effect.step}-{effect.attempt}.onto-{effect.onto[:12]}"
        return await asyncio.to_thread(
            self._worktrees.rebase, effect.commit, effect.onto, label, call.intended_at
        )

    async def inspect(self, effect: effects.Inspect, call: Call) -> effects.Inspection:
        """Look at what the commit changes."""
        from planforge.app.evidence import inspection

        del call
        return await asyncio.to_thread(inspection.inspect, self._project, effect)

    async def pass_gate(self, effect: effects.PassGate, call: Call) -> effects.Decision:
        """What a person decided about this tree; the run waits if nobody has."""
        return await asyncio.to_thread(gates.passed, self._project, effect, call.run)

    async def run_check(self, effect: effects.RunCheck, _: Call) -> Evidence:
        """Run the project's check where nobody has worked."""
        gathering = await asyncio.to_thread(gatherer.gathering, self._project, self._worktrees)
        return await gathering.on(effect.commit, effect.tree)

    async def run_former_tests(self, effect: effects.RunFormerTests, call: Call) -> Evidence:
        """Run the project's check on the change with the tests of before."""
        git = self._project.git
        commit = await asyncio.to_thread(
            patches.restored, git, effect.commit, effect.parent, effect.files, call.intended_at
        )
        gathering = await asyncio.to_thread(gatherer.gathering, self._project, self._worktrees)
        return await gathering.on(commit, git.tree_of(commit))

    async def hand_over(self, effect: effects.HandOver, call: Call) -> effects.Handover:
        """Keep what is in the worktree, and write down from the ledger what the next agent needs to know."""
        label = f"{effect.step}-{effect.attempt}.turn-{effect.turn}"
        message = f"{effect.plan} {effect.step}: unfinished, turn {effect.turn}\n"
        patch = await asyncio.to_thread(
            self._worktrees.commit, effect.worktree, effect.parent, message, label, call.intended_at
        )
        files = await asyncio.to_thread(patches.hashes, self._project.git, effect.parent, patch.commit)
        # Each attempt counts its turns anew, so its number is part of the name.
        successor = f"{call.run}/{effect.step}-{effect.attempt}.{effect.turn + 1}"
        lease = self.leasing.pass_on(effect.lease, successor)
        return handoffs.write(self._project.ledger, effect, files, patch.commit, lease)

    async def land(self, effect: effects.Land, call: Call) -> effects.Landing:
        """Move the branch, if it is where it should be and the files are leased to whoever lands."""
        # What has landed has landed, also if the process died before it could say so and the lease is gone.
        if not (call.resumed and branches.holds(self._project.git, effect.branch, effect.commit)):
            self.leasing.admit(effect)
        return await asyncio.to_thread(
            branches.land, self._project.git, effect.branch, effect.commit, effect.expected
        )


def _load_ahead() -> None:
    """Load what will look at a change while its agent is at work, when nobody waits for it."""
    from planforge.workspace.secrets import detectors

    for name in ("app.evidence.inspection", "rules.scanning.scanner"):
        import_module(f"planforge.{name}")
    detectors.load()
