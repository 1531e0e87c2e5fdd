"""
The pipelines that come with Planforge, one for each loop of the documents.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from planforge.errors import InvalidInput, did_you_mean
from planforge.rules.pipelines import Pipeline, Stage

NOT_STUCK = "forbid task.status in [blocked, escalated]"
PLANNED = "artifact {task}/PLAN.md min=200"

PLAN_STAGE = Stage(
    name="plan",
    role="planner",
    gate="forbid task.status in [committed, abandoned, blocked, escalated]",
    outputs=PLANNED,
    writes=("plan",),
    document="PLAN.md",
)
REVIEW_PLAN = Stage(
    name="review-plan",
    role="reviewer",
    gate=f"{PLANNED}\n{NOT_STUCK}",
    verdict="review",
    judges=("plan",),
    tier="heavy",
    document="PLAN_REVIEW.md",
)
IMPLEMENT = Stage(
    name="implement",
    role="developer",
    gate=f"{PLANNED}\nafter review-plan = approved\nforbid task.status in [committed, blocked, escalated]",
    revised_by="fixer",
    writes=("code",),
    document="PROGRESS.md",
)
REVIEW_CODE = Stage(
    name="review-code",
    role="reviewer",
    gate=f"after review-plan = approved\n{NOT_STUCK}",
    verdict="review",
    judges=("code",),
    tier="heavy",
    document="CODE_REVIEW.md",
)
VALIDATE = Stage(
    name="validate",
    role="validator",
    gate=f"after review-code = approved\n{NOT_STUCK}",
    verdict="evidence",
    judges=("code",),
    tier="heavy",
    document="VALIDATION_REPORT.md",
)
APPROVE = Stage(
    name="approve",
    role="approver",
    gate=f"after review-code = approved\n{NOT_STUCK}",
    verdict="person",
    judges=("plan", "code"),
    on_revision="implement",
    tier="heavy",
    document="APPROVAL.md",
)
WRITEBACK = Stage(name="writeback", role="collator", gate=NOT_STUCK, tier="light")
COMMIT = Stage(
    name="commit", role="collator", gate=f"after approve = approved\n{NOT_STUCK}", tier="light", lands=True
)

DEFAULT = Pipeline(
    name="default",
    about="a task: plan, review, implement, review, validate, approve, commit",
    stages=(PLAN_STAGE, REVIEW_PLAN, IMPLEMENT, REVIEW_CODE, VALIDATE, APPROVE, WRITEBACK, COMMIT),
    requires=("review-plan", "review-code", "validate", "approve"),
)

FORGE = Pipeline(
    name="forge",
    about="a plan: draft it, audit it, revise it while something blocks",
    stages=(
        Stage(name="draft", role="drafter", revised_by="reviser", writes=("plan",), document="PLAN.md"),
        Stage(
            name="audit",
            role="auditor",
            verdict="audit",
            judges=("plan",),
            policy="blocking-only",
            limits={"cap": 5},
        ),
    ),
)

MODULE = Pipeline(
    name="module",
    about="a module of a delivery: develop, test, review",
    stages=(
        Stage(name="develop", role="developer", revised_by="fixer", writes=("code",)),
        Stage(name="test", role="tester", verdict="evidence", judges=("code",), policy="progress"),
        Stage(
            name="review",
            role="reviewer",
            gate="after test = approved",
            verdict="module",
            judges=("code",),
            on_revision="develop",
            policy="progress",
        ),
        Stage(name="merge", role="collator", gate="after review = approved", tier="light", lands=True),
    ),
    requires=("test", "review"),
)


BUG_QUICK = Pipeline(
    name="bug-quick",
    about="a small bug with an obvious fix: implement, review, approve, commit",
    stages=(
        Stage(name="triage", role="fixer"),
        msgspec.structs.replace(IMPLEMENT, gate=NOT_STUCK),
        msgspec.structs.replace(REVIEW_CODE, gate=NOT_STUCK),
        APPROVE,
        COMMIT,
    ),
    requires=("review-code", "approve"),
)

BUG = Pipeline(
    name="bug",
    about="any other bug: plan the fix first",
    stages=(
        Stage(name="triage", role="fixer"),
        Stage(name="plan-fix", role="planner", outputs=PLANNED, writes=("plan",), document="PLAN.md"),
        REVIEW_PLAN,
        IMPLEMENT,
        REVIEW_CODE,
        APPROVE,
        COMMIT,
    ),
    requires=("review-plan", "review-code", "approve"),
)

POLISH = Pipeline(
    name="polish",
    about="a deliverable: review it and fix it until it is good enough",
    stages=(
        Stage(name="fix", role="fixer", writes=("deliverable",)),
        Stage(
            name="review", role="reviewer", verdict="polish", judges=("deliverable",), policy="convergence"
        ),
    ),
)

BUILTIN = {each.name: each for each in (DEFAULT, FORGE, MODULE, BUG_QUICK, BUG, POLISH)}


def named(name: str, own: Mapping[str, Pipeline]) -> Pipeline:
    """The pipeline of that name, the project's own before ours; one that is not there is an error."""
    known = {**BUILTIN, **own}
    if name not in known:
        raise InvalidInput(
            f"there is no pipeline `{name}`{did_you_mean(name, known)}", f"known are {', '.join(known)}"
        )
    return known[name]
