"""Reviews that are none."""

from __future__ import annotations

from planforge.testing.guardrails.actions import reviewer, say
from planforge.testing.guardrails.sample import SHIPPING
from planforge.testing.guardrails.shapes import Case, Landed, Workflow

CASES = (
    Case(
        name="garbage answerer",
        group="verdicts",
        workflow=Workflow.PLAN,
        about="a reviewer who answers with noise",
        tasks=(SHIPPING,),
        bad=(reviewer(say("%PDF-1.7 \u0000\u0001\u0002 [[[[{{{{ maxSeverity ]]]] lorem ipsum")),),
        honest=(reviewer(say("I read it all.\n\n```json\n@APPROVE@\n```\n")),),
        truth=(Landed(),),
        codes=(5, 6),
    ),
    Case(
        name="empty reviewer",
        group="verdicts",
        workflow=Workflow.PLAN,
        about="a reviewer who answers nothing",
        tasks=(SHIPPING,),
        bad=(reviewer(),),
        honest=(reviewer(say("@APPROVE@")),),
        truth=(Landed(),),
    ),
    Case(
        name="double verdict",
        group="verdicts",
        workflow=Workflow.TASK,
        about="a reviewer who approves and rejects in one answer",
        tasks=(SHIPPING,),
        bad=(reviewer(say("@REJECT@\n\nOn second thoughts:\n\n@APPROVE@\n")),),
        honest=(reviewer(say("I looked at all of it, twice.\n\n@APPROVE@\n")),),
        truth=(Landed(),),
        codes=(5, 6),
    ),
)
