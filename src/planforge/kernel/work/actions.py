"""
What can be done next about an item: the one place that says so.

`offered` decides from the item, its status and what else is known of it, and reads nothing itself. Whoever
shows what comes next looks the facts up (`app/items/offers.py`) and asks here, so that no two screens offer
different things for the same state.
"""

from __future__ import annotations

import msgspec

from planforge.actions import REQUEST, TEXT, Action, Advice, Hint
from planforge.kernel.work.items import Kind, kind_of

OVER = frozenset({"CLOSED", "CANCELLED", "landed", "delivered", "abandoned"})
"""The statuses in which nothing more is done with an item."""

IN_TURN = frozenset({"plan run", "plan retry", "plan land", "land", "task resume"})
"""What is refused for an item that comes after something that is not over."""

UPDATE = Action("land", update_checkout=True)
"""Brings what has landed beside the person's branch into their checkout."""


class AtWork(msgspec.Struct, frozen=True, kw_only=True):
    """The unfinished run of an item."""

    run: str
    driven: bool = False
    """Whether a process is at it now."""
    awaited: tuple[Action, ...] = ()
    """Shows the decisions that it waits for."""
    end: Action | None = None
    """Ends it, where that is to be offered."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an item besides its status. What nobody has looked up has its default."""

    at_work: AtWork | None = None
    unlanded: bool = False
    """It is done, and its work is not on the person's branch."""
    ahead: bool = False
    """What has landed is not in the person's checkout."""
    landing: str = ""
    """The run of a landing that was interrupted: it goes on before anything else lands."""
    waits: bool = False
    """It comes after something that is not over (`kernel/work/links.py`)."""

    filed: bool = True
    """A plan has a file; one that is kept in the ledger alone has none."""
    blank: bool = False
    """Nobody has written anything into the plan yet."""
    readable: bool = True
    """The file of the plan is there and is text."""
    stale: bool = False
    """The phases are of another content than the plan has now."""
    approved: bool = False
    """Somebody's yes holds for the plan as it is now."""
    failed: str = ""
    """The first phase that failed."""
    left: bool = False
    """Phases are left to be done."""

    passed: bool = False
    """The change of a fix passed its checks, and was not taken because it is not small."""
    found: str = ""
    """The request of such a fix with what was found, for a plan of it."""

    stage: str = ""
    """The stage at which a task goes on; empty if that was not looked up."""
    after_text: str = ""
    """The stage after the document that a task is stuck at."""
    rounds: int = 0
    """How many rounds more the stage can be given, if somebody's judgement is what it is stuck at."""
    passable: bool = False
    """Whether a person can let the stage pass."""
    ending: bool = False
    """Whether giving a task up is offered, too."""


def offered(item: str, status: str, known: Known) -> list[Action]:
    """What can be done next about an item, the likeliest first; nothing if it waits for nobody."""
    if status in OVER:
        return []
    if known.at_work:
        return of_run(known.at_work)
    found = [_resumed(each, known.landing) for each in _of_item(item, status, known)]
    wait = [Action("link", item)] if known.waits else []
    return [*wait, *(each for each in found if not (wait and each.verb in IN_TURN))]


def _resumed(action: Action, landing: str) -> Action:
    """An action as it is, or what has to come before it."""
    return Action("resume", landing) if landing and action.verb in ("land", "plan land") else action


def _of_item(item: str, status: str, known: Known) -> list[Action]:
    match kind_of(item):
        case Kind.TASK:
            return _of_task(item, status, known)
        case Kind.FIX:
            return _of_fix(item, status, known)
    return _of_plan(item, status, known)


def of_run(run: AtWork) -> list[Action]:
    """Decide what a run waits for, or resume it, or look on while it is driven; or end it."""
    resume = Action("log", run=run.run) if run.driven else Action("resume", run.run)
    return [*(run.awaited or [resume]), *([run.end] if run.end else [])]


def _of_plan(plan: str, status: str, known: Known) -> list[Action]:
    show, approve = Action("plan show", plan), Action("plan approve", plan)
    if status == "DONE" and not known.left:
        return [*_landing(Action("plan land", plan), known), *(remade(plan) if known.stale else [])]
    if not known.filed:
        return [Action("graph", plan)]
    if not known.readable:
        return [Action("plan show", plan, recorded=True), Action("plan cancel", plan, reason=TEXT)]
    if status == "DRAFT":
        return [Action("forge", plan), *([] if known.blank else [approve])]
    if known.stale:
        return remade(plan)
    if status == "REVIEW":
        return [show, approve]
    if status == "AUDITING":
        return [show]
    if not known.approved:
        return [approve]
    if known.failed and status == "IMPLEMENTING":
        skip = Action("plan skip", plan, known.failed, reason=TEXT)
        return [Action("plan retry", plan, known.failed), skip]
    return [Action("plan run", plan)]


def remade(plan: str) -> list[Action]:
    """How stale phases are made again: those that are the same are kept, or none is."""
    again = Action("plan phases", plan, regenerate=True)
    return [Action("plan phases", plan, regenerate=True, keep_done=True), again]


def _of_fix(fix: str, status: str, known: Known) -> list[Action]:
    if status == "DONE":
        return _landing(Action("land", fix), known)
    if not known.passed:
        return [Action("fix", again=fix)]
    plan = [Action("forge", known.found)] if known.found else []
    return [*plan, Action("fix", accept=fix, reason=TEXT)]


def _landing(land: Action, known: Known) -> list[Action]:
    """Landing comes before the checkout is updated: that brings what has landed alone."""
    if known.unlanded:
        return [land]
    return [UPDATE] if known.ahead else []


def _of_task(task: str, status: str, known: Known) -> list[Action]:
    end = [Action("task abandon", task, reason=TEXT)] if known.ending else []
    if status == "committed":
        return [Action("land", task), *end]
    if not known.stage:
        revised = status in ("plan-revision-required", "code-revision-required")
        return [Action("task resume" if revised else "task show", task)]
    found = [Action("task resume", task, at=known.stage)]
    if known.after_text:
        found.append(Action("task resume", task, at=known.after_text))
    if known.rounds:
        found.append(Action("task resume", task, at=known.stage, rounds=known.rounds))
    if known.passable:
        found.append(Action("task override", task, stage=known.stage, reason=TEXT))
    return [*found, *end]


def back_or_new(plan: str) -> Advice:
    """What a person can do who wants more of a plan that has come to its end."""
    reopen = Action("plan reopen", plan, reason=TEXT)
    return Advice("reopen it: {}, or make a new one: {}", reopen, Action("forge", REQUEST))


def after_forge(plan: str, status: str, *, written: bool, cancelled: bool) -> tuple[Hint, ...]:
    """What can be done after a forge that ended, or waits, with that status."""
    show = Action("plan show", plan)
    if cancelled:
        return (Action("forge", REQUEST),)
    if not written:
        return (Action("doctor"),)
    if status == "done":
        return (Action("plan approve", plan),)
    if status == "failed":
        return (show, Advice("edit the plan and run {}", Action("forge", plan)))
    return (show,)
