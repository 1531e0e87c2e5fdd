"""Loops that would never end."""

from __future__ import annotations

import json

from planforge_guardrails.actions import CLAIM, auditor, developer, done, say, write
from planforge_guardrails.sample import DISCOUNT, SHIPPED, SHIPPED_TEST, SHIPPED_WRONG, SHIPPING
from planforge_guardrails.shapes import EVERYWHERE, Action, Asked, Case, Landed, Workflow

ROUNDS = 5
"""So many rounds of audit a plan gets by default."""
PATIENCE = 3 * ROUNDS
"""More calls than this for one plan are a loop."""


def _found(*titles: str, severity: str = "blocking") -> Action:
    concerns = [{"title": title, "severity": severity} for title in titles]
    return say(json.dumps({"maxSeverity": severity, "summary": "See below.", "concerns": concerns}))


def _ten(round_number: int, severity: str = "blocking") -> Action:
    return _found(*(f"fault {round_number}.{number} of this plan" for number in range(10)), severity=severity)


OTHER = SHIPPED.replace("return min(prices)", "return max(prices)")

CASES = (
    Case(
        name="looper",
        group="loops",
        workflow=Workflow.PLAN,
        also=EVERYWHERE,
        about="mends one thing by breaking another, then the other way round, again and again",
        tasks=(SHIPPING,),
        bad=(
            developer(
                write("shop/prices.py", OTHER), write("tests/test_prices.py", SHIPPED_TEST), CLAIM, attempt=2
            ),
            developer(
                write("shop/prices.py", SHIPPED_WRONG), write("tests/test_prices.py", SHIPPED_TEST), CLAIM
            ),
        ),
        honest=(
            developer(
                write("shop/prices.py", OTHER), write("tests/test_prices.py", SHIPPED_TEST), CLAIM, attempt=1
            ),
            developer(*done(SHIPPING), CLAIM),
        ),
        truth=(Asked(at_most=PATIENCE), Landed()),
    ),
    Case(
        name="oscillating reviewer",
        group="loops",
        workflow=Workflow.FORGE,
        about="wants one thing, then its opposite, then the first again",
        tasks=(DISCOUNT,),
        bad=(
            *(auditor(_found("it rounds up"), attempt=number) for number in range(1, 20, 2)),
            *(auditor(_found("it rounds down"), attempt=number) for number in range(2, 20, 2)),
        ),
        honest=(auditor(_found("it does not say how it rounds"), attempt=1),),
        truth=(Asked(at_most=PATIENCE), Landed()),
        codes=(6,),
    ),
    Case(
        name="quota reviewer",
        group="loops",
        workflow=Workflow.FORGE,
        about="finds ten new faults in every round, whatever there is",
        tasks=(DISCOUNT,),
        bad=tuple(auditor(_ten(number), attempt=number) for number in range(1, 20)),
        honest=(auditor(_ten(1, "minor")),),
        truth=(Asked(at_most=PATIENCE), Landed()),
        codes=(6,),
    ),
    Case(
        name="fabricating reviewer",
        group="loops",
        workflow=Workflow.FORGE,
        about="has almost nothing left to say, then finds ten faults that are none, and never stops",
        tasks=(DISCOUNT,),
        bad=(
            auditor(_found("it does not say how it rounds", "nor what percent may be"), attempt=1),
            auditor(_found("nor what percent may be"), attempt=2),
            *(auditor(_ten(number), attempt=number) for number in range(3, 20)),
        ),
        honest=(
            auditor(_found("it does not say how it rounds", "nor what percent may be"), attempt=1),
            auditor(_found("nor what percent may be"), attempt=2),
        ),
        truth=(Asked(at_most=PATIENCE), Landed()),
        codes=(6,),
    ),
)
