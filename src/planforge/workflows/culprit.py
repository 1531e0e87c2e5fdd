"""
Both sides pass and together they do not: which commit of the branch does that come from?

The plan is merged with ever fewer of the commits that have landed since it began,
and each merge is checked, so that among many commits few checks find the one. A
merge that conflicts, or evidence that cannot tell, leaves several; then all of
them are named and none is blamed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from planforge.errors import PerformerFailed
from planforge.kernel.effects import Merge, QueuedPlan, ReadCommit, ReadCommits
from planforge.kernel.evidence import Outcome
from planforge.rules.attempts import fault_of_evidence
from planforge.rules.bisection import most_looks, next_place, span
from planforge.workflows import merges

DEPTH = 5
"""How many merges within merges are looked into."""


class Blame(msgspec.Struct, kw_only=True):
    """What was found out so far."""

    run: str
    branch: str
    plan: QueuedPlan
    culprit: str = ""
    culprit_plan: str = ""
    culprit_step: str = ""
    suspects: tuple[str, ...] = ()
    checks: int = 0
    reason: str = ""


async def find(blame: Blame, commits: Sequence[str], depth: int = 0) -> None:
    """
    Find the first of `commits` that does not go together with the plan; the last one is known not to.

    Where that is a merge of the person's own, it is looked for among the commits which that brought.
    """
    suspects = await _bisected(blame, commits)
    if len(suspects) > 1:
        names = ", ".join(f"`{commit[:12]}`" for commit in suspects)
        blame.suspects = tuple(suspects)
        blame.reason = f"it comes from one of {names}; which one cannot be told ({blame.reason})"
        return
    (commit,) = suspects
    facts = await ReadCommit(commit=commit)
    if not facts.plan and len(facts.parents) > 1 and depth < DEPTH:
        side = facts.parents[1]
        since = (facts.parents[0], blame.plan.commit)
        brought = (await ReadCommits(since=since, until=side)).commits
        if brought and await _together(blame, side) is Outcome.FAIL:
            await find(blame, brought, depth + 1)
            return
    whose = f"`{facts.plan}`" if facts.plan else facts.author
    blame.culprit, blame.culprit_plan, blame.culprit_step = commit, facts.plan, facts.step
    blame.reason = f"it comes from `{commit[:12]}` ({facts.subject}) of {whose}"


async def _bisected(blame: Blame, commits: Sequence[str]) -> Sequence[str]:
    """The commits one of which it is."""
    seen = {len(commits) - 1: Outcome.FAIL}
    for _ in range(most_looks(len(commits))):
        place = next_place(seen)
        if place is None:
            break
        seen[place] = await _together(blame, commits[place])
    passes, fails = span(seen)
    return commits[passes + 1 : fails + 1]


async def _together(blame: Blame, commit: str) -> Outcome:
    """Whether the plan passes merged with an earlier commit of the branch, if that can be told."""
    plan = blame.plan
    try:
        merged = await Merge(
            ours=commit,
            theirs=plan.commit,
            message=merges.message(blame.run, f"Look for what breaks {plan.plan}"),
            label=f"{plan.plan}.bisect",
        )
    except PerformerFailed as error:
        blame.reason = error.message
        return Outcome.CANNOT_TELL
    if not merged.clean:
        blame.reason = f"it conflicts with `{commit[:12]}` in {merges.conflicts(merged)}"
        return Outcome.CANNOT_TELL
    blame.checks += 1
    evidence = await merges.checked(blame.branch, plan.plan, merged.commit, merged.tree, commit)
    if evidence.outcome is Outcome.CANNOT_TELL:
        blame.reason = f"with `{commit[:12]}` {fault_of_evidence(evidence)}"
    return evidence.outcome
