"""
The tables themselves, one for each kind of thing that has a status.

Where the documents leave a status without an exit (`escalated`, `blocked`, a halted idea), there is one here
that a person takes, with a reason on record.
"""

from __future__ import annotations

from collections.abc import Iterator

from planforge.actions import TEXT, Action, Blank
from planforge.errors import InvalidInput
from planforge.kernel.work.lifecycle import Machine, Transition

Row = tuple[str, str, str] | tuple[str, str, str, Action]


def _rows(*rows: Row) -> Iterator[Transition]:
    """Rows as `from`, `event`, `to`; an event with a `*` is one that a person makes happen, by an action."""
    for sources, event, target, *action in rows:
        for source in sources.split():
            yield Transition(
                source=source,
                event=event.removesuffix("*"),
                target=target,
                person=event.endswith("*"),
                action=action[0] if action else None,
            )


def _machine(name: str, about: str, initial: str, final: str, *rows: Row) -> Machine:
    return Machine(
        name=name,
        about=about,
        initial=initial,
        final=frozenset(final.split()),
        transitions=tuple(_rows(*rows)),
    )


_PLAN, _TASK = Blank("PLAN"), Blank("TASK")
APPROVE, RUN = Action("plan approve", _PLAN), Action("plan run", _PLAN)
CANCEL, CLOSE = Action("plan cancel", _PLAN, reason=TEXT), Action("plan close", _PLAN)
OVERRIDE = Action("plan close", _PLAN, override=True, reason=TEXT)
REOPEN = Action("plan reopen", _PLAN, reason=TEXT)
END_RUN = Action("cancel", Blank("RUN"))

PLAN = _machine(
    "plan",
    "a plan, from its first draft to landed code",
    "DRAFT",
    "CLOSED CANCELLED",
    ("DRAFT", "forged", "REVIEW"),
    ("DRAFT REVIEW", "approve*", "APPROVED", APPROVE),
    ("APPROVED", "run*", "IMPLEMENTING", RUN),
    ("IMPLEMENTING", "all steps done", "AUDITING"),
    ("IMPLEMENTING", "no step to audit", "DONE"),
    ("AUDITING", "audit passed", "DONE"),
    # A phase that failed stops the plan and not its approval: the same yes holds for going on with it.
    ("AUDITING", "audit failed", "IMPLEMENTING"),
    ("IMPLEMENTING AUDITING", "end run*", "REVIEW", END_RUN),
    # An edit voids the approval and not the status; what is done may be changed and carried out once more.
    ("APPROVED IMPLEMENTING DONE", "approve again*", "APPROVED", APPROVE),
    ("DONE APPROVED", "conflict at landing", "REVIEW"),
    ("APPROVED IMPLEMENTING", "close*", "CLOSED", OVERRIDE),
    ("DONE", "close*", "CLOSED", CLOSE),
    ("DRAFT REVIEW APPROVED IMPLEMENTING AUDITING", "cancel*", "CANCELLED", CANCEL),
    # What is done can land as it is; anything else wants another yes before it goes on.
    ("CLOSED", "reopen as done*", "DONE", REOPEN),
    ("CLOSED CANCELLED", "reopen*", "REVIEW", REOPEN),
    ("CANCELLED", "reopen as draft*", "DRAFT", REOPEN),
)

PHASE = _machine(
    "phase",
    "one step of a plan",
    "pending",
    "skipped",
    ("pending", "start*", "in-progress"),
    ("pending", "give up*", "failed"),
    ("pending", "skip*", "skipped"),
    ("pending", "landed before", "done"),
    ("in-progress", "evidence passed", "done"),
    ("in-progress", "attempts used up", "failed"),
    ("in-progress", "interrupted", "pending"),
    ("in-progress", "cancel*", "failed"),
    ("failed", "retry*", "in-progress"),
    ("failed", "run again*", "pending"),
    ("failed", "skip*", "skipped"),
    ("done", "reopen*", "pending"),
)

GATE = Action("gate approve", Blank("GATE"))
LAND, RESUME = Action("land", _TASK), Action("task resume", _TASK)
ABANDON = Action("task abandon", _TASK, reason=TEXT)
PASS = Action("task override", _TASK, stage=Blank("STAGE"), reason=TEXT)

_STUCK = "draft planned plan-approved implementing implemented review-approved approved"
_REVISED = "plan-revision-required code-revision-required"

TASK = _machine(
    "task",
    "a task on its way through a pipeline",
    "draft",
    "landed delivered abandoned",
    ("draft plan-revision-required", "plan", "planned"),
    ("planned", "plan approved", "plan-approved"),
    (
        "planned plan-approved implementing implemented review-approved approved",
        "plan needs revision",
        "plan-revision-required",
    ),
    ("plan-approved code-revision-required", "implement", "implementing"),
    # A pipeline of one's own may do without a plan, without a review of it, or without a person at its end:
    # what must not be missing is what the pipeline requires, and that is proved of it and held at landing.
    ("draft planned", "implement without approved plan", "implementing"),
    ("implemented review-approved", "commit without approver", "committed"),
    ("implemented", "approve*", "approved", GATE),
    ("implementing", "implemented", "implemented"),
    ("implementing implemented review-approved approved", "code needs revision", "code-revision-required"),
    ("implemented", "review approved", "review-approved"),
    ("review-approved", "approve*", "approved", GATE),
    ("approved", "commit", "committed"),
    ("committed", "land*", "landed", LAND),
    # The code is done again on top of what it does not go together with.
    ("committed", "refused at landing", "code-revision-required"),
    # Commits of the person's own took the place of what had landed beside their branch.
    ("landed", "land again*", "committed", LAND),
    # A pipeline that lands nothing, or has nothing to land, ends with its documents.
    (_STUCK, "deliver", "delivered"),
    (f"{_STUCK} {_REVISED}", "block", "blocked"),
    (f"{_STUCK} {_REVISED}", "escalate", "escalated"),
    (f"{_STUCK} {_REVISED} committed blocked escalated", "abandon*", "abandoned", ABANDON),
    ("blocked escalated", "resume at the plan*", "plan-revision-required", RESUME),
    ("blocked escalated", "resume at the code*", "code-revision-required", RESUME),
    ("blocked escalated", "override the plan's review*", "plan-approved", PASS),
    ("blocked escalated", "override the code's review*", "review-approved", PASS),
    ("blocked escalated", "override the approver*", "approved", PASS),
)

SPRINT = _machine(
    "sprint",
    "a set of tasks that are carried out together",
    "planning",
    "retrospective-done abandoned",
    ("planning", "start*", "active"),
    ("planning active", "block", "blocked"),
    ("planning active blocked", "abandon*", "abandoned"),
    ("active", "all committed", "completed"),
    ("active", "some committed*", "partially-completed"),
    ("completed partially-completed", "retrospective*", "retrospective-done"),
    ("blocked", "resume*", "active"),
)

BUG = _machine(
    "bug",
    "a bug, from its report to its fix",
    "reported",
    "verified abandoned",
    ("reported", "triage*", "triaged"),
    ("triaged", "start*", "in-progress"),
    ("in-progress", "commit", "fixed"),
    ("in-progress", "give back*", "triaged"),
    ("fixed", "verify*", "verified"),
    ("fixed", "reopen*", "reported"),
    ("reported triaged in-progress", "abandon*", "abandoned"),
)

MODULE = _machine(
    "module",
    "a module of a delivery, as it is carried out",
    "pending",
    "cancelled",
    ("pending needs_patch", "its closure is merged", "ready"),
    ("ready", "team starts", "running"),
    ("running", "reviewer approves", "approved"),
    ("running", "decision needed", "failed"),
    ("approved", "merge", "integrating"),
    ("integrating", "neighbours pass", "merged"),
    ("integrating", "neighbours fail", "needs_patch"),
    ("merged", "reopen*", "needs_patch"),
    ("failed", "decide*", "ready"),
    ("failed", "override*", "approved"),
    ("pending ready running approved integrating needs_patch failed", "cancel*", "cancelled"),
)

IDEA = _machine(
    "idea",
    "an idea, from the brain dump to the finished deliverable",
    "brain_dump",
    "done terminated",
    ("brain_dump", "distill*", "distilling"),
    ("distilling", "distilled", "human_review"),
    ("human_review", "correct*", "distilling"),
    ("human_review", "confirm*", "spec_building"),
    ("spec_building", "confirm*", "building"),
    ("building", "built", "polishing"),
    ("building", "provide input*", "building"),
    ("polishing", "good enough", "done"),
    ("polishing", "plateau", "done"),
    ("distilling spec_building building polishing", "halt", "halted"),
    ("halted", "resume distilling*", "distilling"),
    ("halted", "resume specification*", "spec_building"),
    ("halted", "override gate*", "building"),
    ("halted", "resume*", "polishing"),
    ("halted", "override*", "done"),
    (
        "brain_dump distilling human_review spec_building building polishing halted",
        "terminate*",
        "terminated",
    ),
)

POLISH = _machine(
    "polish",
    "the loop that polishes a deliverable",
    "reviewing",
    "converged overridden terminated",
    ("reviewing", "issues found", "fixing"),
    ("reviewing", "no issues", "deciding"),
    ("fixing", "fixed", "deciding"),
    ("fixing", "fix rejected", "deciding"),
    ("deciding", "continue", "reviewing"),
    ("deciding", "termination", "converged"),
    ("deciding", "stagnation", "converged"),
    ("reviewing fixing deciding", "halt*", "halted"),
    ("halted", "resume*", "reviewing"),
    ("halted", "override*", "overridden"),
    ("halted", "terminate*", "terminated"),
)

MACHINES = {machine.name: machine for machine in (PLAN, PHASE, TASK, SPRINT, BUG, MODULE, IDEA, POLISH)}


def named(name: str) -> Machine:
    """The table of that name."""
    if name not in MACHINES:
        raise InvalidInput(f"there are no states of `{name}`", f"known are {', '.join(MACHINES)}")
    return MACHINES[name]
