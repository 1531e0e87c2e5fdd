"""Performs what a landing asks for: the queue, merges, moves of branches, and the person's checkout."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from planforge.app.items import plans
from planforge.app.landing import queue
from planforge.kernel import effects
from planforge.kernel.effects import Probed, Target
from planforge.workspace.landing import branches, merges, updates

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.kernel.driver import Call


class Lander:
    """Performs what a landing asks for."""

    def __init__(self, project: Project, run: str) -> None:
        self._project = project
        self._run = run

    async def open_target(self, effect: effects.OpenTarget, call: Call) -> Target:
        """Find it, and make the branch beside it where one is needed."""
        del call
        ours = queue.made(self._project)
        return await asyncio.to_thread(branches.open_target, self._project.git, effect.branch, ours)

    async def read_queue(self, effect: effects.ReadQueue, call: Call) -> effects.Queue:
        """Ask the ledger and the branches."""
        del call
        return await asyncio.to_thread(queue.queue, self._project, effect.branch, effect.tip, effect.plans)

    async def merge(self, effect: effects.Merge, call: Call) -> effects.Merged:
        """Merge. Dated by the intent, so that a second try makes the very same commit."""
        return await asyncio.to_thread(
            merges.merge,
            self._project.git,
            effect.ours,
            effect.theirs,
            message=effect.message,
            run=self._run,
            label=effect.label,
            at=call.intended_at,
            base=effect.base,
        )

    async def advance(self, effect: effects.AdvanceBranch, call: Call) -> effects.Landing:
        """Move the branch, or find that it was moved; not for what was given up while it was tested."""
        if effect.item and not (
            call.resumed and branches.holds(self._project.git, effect.landing, effect.commit)
        ):
            queue.require_wanted(self._project, effect.item)
        return await asyncio.to_thread(
            branches.advance,
            self._project.git,
            effect.branch,
            effect.branch_at,
            effect.landing,
            effect.commit,
            effect.expected,
        )

    async def restart(self, effect: effects.RestartLanding, call: Call) -> effects.Restarted:
        """Keep what is there and begin again; done twice, it is the same."""
        del call
        return await asyncio.to_thread(
            branches.restart, self._project.git, self._run, effect.landing, effect.expected, effect.to
        )

    async def read_commits(self, effect: effects.ReadCommits, call: Call) -> effects.Commits:
        """Ask git."""
        del call
        found = await asyncio.to_thread(merges.commits, self._project.git, effect.since, effect.until)
        return effects.Commits(commits=found)

    async def read_commit(self, effect: effects.ReadCommit, call: Call) -> effects.CommitFacts:
        """Ask git."""
        del call
        return await asyncio.to_thread(merges.facts, self._project.git, effect.commit)

    async def probe(self, effect: effects.Probe, call: Call) -> Probed:
        """Merge what has not landed, to see."""
        del call

        def look() -> Probed:
            items = queue.work(self._project, effect.onto)
            return merges.probe(self._project.git, effect.branch, effect.onto, items)

        return await asyncio.to_thread(look)

    async def update_checkout(self, effect: effects.UpdateCheckout, call: Call) -> effects.CheckoutChange:
        """Update it; an update that was begun is finished."""
        del call
        ours = plans.documents(self._project)
        return await asyncio.to_thread(updates.update, self._project.git, effect.branch, effect.commit, ours)


def performers(project: Project, run: str) -> Mapping[Any, Callable[[Any, Call], Awaitable[object]]]:
    """Who does what of a landing; checking a tree and marking a plan are done as for any run."""
    lander = Lander(project, run)
    return {
        effects.OpenTarget: lander.open_target,
        effects.ReadQueue: lander.read_queue,
        effects.Merge: lander.merge,
        effects.AdvanceBranch: lander.advance,
        effects.RestartLanding: lander.restart,
        effects.ReadCommits: lander.read_commits,
        effects.ReadCommit: lander.read_commit,
        effects.Probe: lander.probe,
        effects.UpdateCheckout: lander.update_checkout,
    }
