"""Performs what a landing asks for: the queue, merges, moves of branches, and the person's checkout."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planforge.app.items import plans
from planforge.app.landing import queue
from planforge.app.runs.performing import Performer, aside
from planforge.kernel import effects
from planforge.kernel.effects import Probed, Target
from planforge.workspace.landing import branches, merges, updates

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.kernel.driver import Call


def open_target(project: Project, effect: effects.OpenTarget) -> Target:
    """Find it, and make the branch beside it where one is needed."""
    return branches.open_target(project.git, effect.branch, queue.made(project))


def read_queue(project: Project, effect: effects.ReadQueue) -> effects.Queue:
    """Ask the ledger and the branches."""
    return queue.queue(project, effect.branch, effect.tip, effect.plans)


def read_commits(project: Project, effect: effects.ReadCommits) -> effects.Commits:
    """Ask git."""
    return effects.Commits(commits=merges.commits(project.git, effect.since, effect.until))


def read_commit(project: Project, effect: effects.ReadCommit) -> effects.CommitFacts:
    """Ask git."""
    return merges.facts(project.git, effect.commit)


def probe(project: Project, effect: effects.Probe) -> Probed:
    """Merge what has not landed, to see."""
    return merges.probe(project.git, effect.branch, effect.onto, queue.work(project, effect.onto))


def update_checkout(project: Project, effect: effects.UpdateCheckout) -> effects.CheckoutChange:
    """Update it; an update that was begun is finished."""
    return updates.update(project.git, effect.branch, effect.commit, plans.documents(project))


class Lander:
    """Performs what depends on the run, or on whether it was tried before."""

    def __init__(self, project: Project, run: str) -> None:
        self._project = project
        self._run = run

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

    async def restart(self, effect: effects.RestartLanding, _: Call) -> effects.Restarted:
        """Keep what is there and begin again; done twice, it is the same."""
        return await asyncio.to_thread(
            branches.restart, self._project.git, self._run, effect.landing, effect.expected, effect.to
        )


def performers(project: Project, run: str) -> Mapping[Any, Performer]:
    """Who does what of a landing; checking a tree and marking a plan are done as for any run."""
    lander = Lander(project, run)
    return {
        effects.OpenTarget: aside(project, open_target),
        effects.ReadQueue: aside(project, read_queue),
        effects.Merge: lander.merge,
        effects.AdvanceBranch: lander.advance,
        effects.RestartLanding: lander.restart,
        effects.ReadCommits: aside(project, read_commits),
        effects.ReadCommit: aside(project, read_commit),
        effects.Probe: aside(project, probe),
        effects.UpdateCheckout: aside(project, update_checkout),
    }
