"""
The landing queue: finished plans and tasks, one after the other, onto the person's branch.

Each is merged, and the merged tree checked again, before the branch moves to it by
compare-and-swap. What the person commits meanwhile is merged and checked as well.
A conflict opens steps of a plan again, and sends a task back to its code, with both
sides kept. Where both sides pass and the merged tree does not, the commit that it
comes from is looked for; what cannot be told is said to be so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

import msgspec

from planforge.documents.plan import PlanStatus
from planforge.errors import CannotPerform, PerformerFailed
from planforge.kernel.effects import (
    AdvanceBranch,
    MarkPlan,
    Merge,
    Merged,
    Note,
    OpenTarget,
    Probe,
    QueuedPlan,
    ReadCommits,
    ReadQueue,
    RestartLanding,
    Target,
    UpdateCheckout,
)
from planforge.kernel.events import (
    CheckoutUpdated,
    ConflictsForeseen,
    ItemMoved,
    LandingBroken,
    LandingCaughtUp,
    LandingConflicted,
    LandingRestarted,
    PlanHeldBack,
    PlanLanded,
    StepReopened,
)
from planforge.kernel.evidence import Evidence, Outcome
from planforge.kernel.wording import counted
from planforge.kernel.work.lifecycle.tables import TASK
from planforge.rules.attempts import fault_of_evidence
from planforge.workflows import merges
from planforge.workflows.culprit import Blame, find


class LandRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to land where."""

    run: str
    branch: str
    plans: tuple[str, ...] = ()
    """These alone; nothing is everything that may land."""
    tries: int = 5
    """How often one plan is merged anew because the branch has moved."""


class Why(StrEnum):
    """What kept a plan from landing."""

    CONFLICT = "conflict"
    BROKEN = "broken"
    HELD = "held"


class NotLanded(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that did not land."""

    plan: str
    why: Why
    reason: str


class LandResult(msgspec.Struct, frozen=True, kw_only=True):
    """What landed and what did not."""

    landed: tuple[str, ...]
    left: tuple[NotLanded, ...]
    reason: str
    done: bool
    """Everything that was to land has landed."""
    refused: bool
    """What did not was not allowed to; nothing was found wrong with it."""


class UpdateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which branch is to be brought, with its checkout, to which commit."""

    run: str
    branch: str
    commit: str


async def update_checkout(request: UpdateRequest) -> CheckoutUpdated:
    """Bring what has landed beside a branch into the branch and its checkout."""
    change = await UpdateCheckout(branch=request.branch, commit=request.commit)
    updated = CheckoutUpdated(
        branch=request.branch, place=change.place, was=change.was, now=change.now, files=change.files
    )
    await Note(updated)
    return updated


async def land(request: LandRequest) -> LandResult:
    """Take what may land, the next plan first, until nothing is left that can."""
    left: dict[str, NotLanded] = {}
    tries: Counter[str] = Counter()
    while True:
        target = await _opened(request)
        queue = await ReadQueue(branch=request.branch, tip=target.tip, plans=request.plans)
        item = next((item for item in queue.ready if item.plan not in left), None)
        if item is None:
            break
        tries[item.plan] += 1
        if reason := _obstacle(request, item, tries[item.plan]):
            left[item.plan] = await _held(request, item.plan, reason)
        elif outcome := await _tried(request, target, item):
            left[item.plan] = outcome
    for plan in queue.held:
        if plan.plan not in left:
            left[plan.plan] = await _held(request, plan.plan, plan.reason)
    landed = tuple(plan for plan in tries if plan in queue.landed and plan not in left)
    if landed:
        await _look_ahead(request, target, left)
    return _result(target, landed, left)


def _obstacle(request: LandRequest, item: QueuedPlan, tries: int) -> str | None:
    if item.after:
        names = ", ".join(f"`{plan}`" for plan in item.after)
        return f"it is built on {names}, which has not landed"
    if tries > request.tries:
        return f"`{request.branch}` moved {request.tries} times while it was to land"
    return None


def _result(target: Target, landed: tuple[str, ...], left: Mapping[str, NotLanded]) -> LandResult:
    place = f"`{target.landing}`"
    count = _counted(landed)
    reasons = [f"{count} landed on {place}"] if landed or left else [f"nothing to land on {place}"]
    reasons += [f"`{item.plan}` did not: {item.reason}" for item in left.values()]
    return LandResult(
        landed=landed,
        left=tuple(left.values()),
        reason="; ".join(reasons),
        done=not left,
        refused=bool(left) and all(item.why is Why.HELD for item in left.values()),
    )


def _counted(landed: Collection[str]) -> str:
    tasks = sum(name.startswith("task-") for name in landed)
    plans = len(landed) - tasks
    counts = [counted(plans, "plan")] if plans or not tasks else []
    return " and ".join([*counts, *([counted(tasks, "task")] if tasks else [])])


# Where it lands


async def _opened(request: LandRequest) -> Target:
    """Where plans land now. What the person has committed meanwhile is taken in first."""
    for _ in range(request.tries + 1):
        target = await OpenTarget(branch=request.branch)
        if not target.missing and not target.foreign:
            return target
        if reason := await _not_caught_up(request, target):
            await _restarted(request, target, reason)
    raise CannotPerform(f"`{request.branch}` moved {request.tries} times before anything could land")


async def _not_caught_up(request: LandRequest, target: Target) -> str | None:
    """Merge the person's commits with what has landed beside their branch, or say why that cannot be."""
    if target.foreign:
        return f"`{target.foreign[:12]}` on it is neither on `{request.branch}` nor of Planforge's making"
    merged = await Merge(
        ours=target.tip,
        theirs=target.branch_at,
        message=merges.message(request.run, f"Merge {request.branch}"),
        label="caught-up",
    )
    if not merged.clean:
        return f"it conflicts with `{request.branch}` in {merges.conflicts(merged)}"
    evidence = await merges.checked(request.branch, "", merged.commit, merged.tree, target.branch_at)
    if fault := fault_of_evidence(evidence):
        return f"together with `{request.branch}`, {fault}"
    if await _advanced(target, merged.commit):
        await Note(
            LandingCaughtUp(
                branch=request.branch, landing=target.landing, commit=merged.commit, merged=target.branch_at
            )
        )
    return None


async def _restarted(request: LandRequest, target: Target, reason: str) -> None:
    restarted = await RestartLanding(
        branch=request.branch, landing=target.landing, expected=target.tip, to=target.branch_at
    )
    await Note(
        LandingRestarted(
            branch=request.branch,
            landing=target.landing,
            was=target.tip,
            now=restarted.tip,
            archive=restarted.archive,
            reason=reason,
        )
    )


async def _advanced(target: Target, commit: str, item: str = "") -> bool:
    landing = await AdvanceBranch(
        branch=target.branch,
        branch_at=target.branch_at,
        landing=target.landing,
        commit=commit,
        expected=target.tip,
        item=item,
    )
    return landing.landed


# One plan


async def _tried(request: LandRequest, target: Target, item: QueuedPlan) -> NotLanded | None:
    """Land one plan, or say why not; None if it landed, or must be tried again where the branch is now."""
    if item.status == "landed":
        await _moved(item, "land again")
        item = msgspec.structs.replace(item, status="committed")
    try:
        merged = await Merge(
            ours=target.tip,
            theirs=item.commit,
            message=merges.message(
                request.run, f"Land {item.plan}: {' '.join(item.title.split())}", item.plan
            ),
            label=f"{item.plan}.land",
        )
    except PerformerFailed as error:
        return await _held(request, item.plan, error.message)
    if not merged.clean:
        return await _conflicted(request, target, item, merged)
    evidence = await merges.checked(request.branch, item.plan, merged.commit, merged.tree, target.tip)
    if evidence.outcome is Outcome.FAIL:
        return await _failed(request, target, item, merged, evidence)
    if fault := fault_of_evidence(evidence):
        return await _held(request, item.plan, fault)
    try:
        landed = await _advanced(target, merged.commit, item.plan)
    except PerformerFailed as error:
        return await _held(request, item.plan, error.message)
    if landed:
        await Note(
            PlanLanded(
                plan=item.plan,
                branch=request.branch,
                landing=target.landing,
                commit=merged.commit,
                tree=merged.tree,
                parent=target.tip,
                merged=item.commit,
            )
        )
        if item.status:
            await _moved(item, "land")
    return None


async def _moved(item: QueuedPlan, event: str, reason: str = "") -> None:
    """Move a task along its table."""
    status = TASK.after(item.status, event)
    await Note(ItemMoved(item=item.plan, by=event, status=status, reason=reason))


async def _held(request: LandRequest, plan: str, reason: str) -> NotLanded:
    await Note(PlanHeldBack(plan=plan, branch=request.branch, reason=reason))
    return NotLanded(plan=plan, why=Why.HELD, reason=reason)


async def _conflicted(request: LandRequest, target: Target, item: QueuedPlan, merged: Merged) -> NotLanded:
    """Keep both sides and open the steps again that changed what is in conflict."""
    await Note(
        LandingConflicted(
            plan=item.plan,
            branch=request.branch,
            onto=target.tip,
            merged=item.commit,
            conflicts=merged.conflicts,
            archive=merged.archive,
        )
    )
    paths = {conflict.path for conflict in merged.conflicts}
    steps = [step.step for step in item.steps if paths.intersection(step.files)]
    names = merges.conflicts(merged)
    reason = f"it conflicts with `{target.landing}` in {names}; both sides are in `{merged.archive}`"
    await _reopened(item, steps or [step.step for step in item.steps], reason)
    return NotLanded(plan=item.plan, why=Why.CONFLICT, reason=reason)


async def _reopened(item: QueuedPlan, steps: Sequence[str], reason: str) -> None:
    if item.status:
        await _moved(item, "refused at landing", reason)
        return
    for step in steps:
        await Note(StepReopened(plan=item.plan, step=step, reason=reason))
    await MarkPlan(plan=item.plan, status=PlanStatus.REVIEW.value)


async def _look_ahead(request: LandRequest, target: Target, told: Collection[str]) -> None:
    """Say which work conflicts with what has landed now, besides what was told already."""
    try:
        probed = await Probe(branch=request.branch, onto=target.tip)
    except PerformerFailed:
        return  # it landed all the same
    news = tuple(item for item in probed.conflicts if item.one not in told or item.other != request.branch)
    if news:
        await Note(ConflictsForeseen(branch=request.branch, onto=target.tip, conflicts=news))


# Both sides pass, and together they do not


async def _failed(
    request: LandRequest, target: Target, item: QueuedPlan, merged: Merged, evidence: Evidence
) -> NotLanded:
    """Find out whether the branch is to blame by itself, and if not, which commit on it."""
    commits = (await ReadCommits(since=(item.commit,), until=target.tip)).commits
    fault = fault_of_evidence(evidence) or ""
    if not commits:
        return await _held(request, item.plan, f"{fault} although nothing has landed since it passed")
    alone = await merges.checked(request.branch, "", target.tip, target.tree, target.tip)
    if problem := fault_of_evidence(alone):
        reason = f"it cannot be told whether it breaks anything: on `{request.branch}` itself {problem}"
        return await _held(request, item.plan, reason)
    blame = Blame(run=request.run, branch=request.branch, plan=item, checks=1)
    await find(blame, commits)
    reason = f"together with `{request.branch}`, {fault}; {blame.reason}"
    await Note(
        LandingBroken(
            plan=item.plan,
            branch=request.branch,
            onto=target.tip,
            merged=item.commit,
            commit=merged.commit,
            failing=evidence.failing,
            culprit=blame.culprit,
            culprit_plan=blame.culprit_plan,
            culprit_step=blame.culprit_step,
            suspects=blame.suspects,
            checks=blame.checks,
            reason=reason,
        )
    )
    await _reopened(item, [step.step for step in item.steps], reason)
    return NotLanded(plan=item.plan, why=Why.BROKEN, reason=reason)
