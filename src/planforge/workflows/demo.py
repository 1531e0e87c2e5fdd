"""
The whole story in one run: a request, a plan, an approval, the work, the landing.

It is the same `forge` and the same `plan_run` as for any other request. What is
particular to the demo is a sample repository to work on and somebody who says yes.
"""

from __future__ import annotations

import msgspec

from planforge.kernel.effects import AskHuman, Effect, GiveApproval, Tip
from planforge.kernel.wording import counted
from planforge.workflows.forge import ForgeRequest, forge
from planforge.workflows.plan_run import GATE, PlanRunRequest, PlanRunResult, plan_run

YES = "approve"
ESCALATE_AFTER = 2
FIXES = 1


class MakeSample(Effect[Tip], frozen=True, kw_only=True):
    """Fill the new repository with the sample project and commit it."""

    sample: str


class DemoRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the demo asks for."""

    plan: str
    run: str
    path: str
    title: str
    request: str
    today: str


async def demo(request: DemoRequest) -> PlanRunResult | None:
    """Tell the story; `None` if the plan was not approved."""
    base = (await MakeSample(sample="wordcount")).commit
    forged = await forge(
        ForgeRequest(
            plan=request.plan,
            title=request.title,
            request=request.request,
            project="wordcount",
            today=request.today,
            base=base,
        )
    )
    question = f"Approve {request.plan} ({forged.reason} after {counted(forged.rounds, 'round')})?"
    reply = await AskHuman(question=question, options=(YES, "reject"))
    if reply.answer != YES:
        return None
    await GiveApproval(plan=request.plan, gate=GATE, content=forged.content, actor=reply.actor)
    return await plan_run(
        PlanRunRequest(
            plan=request.plan,
            run=request.run,
            path=request.path,
            base=base,
            today=request.today,
            parallel=True,
            escalate_after=ESCALATE_AFTER,
            fixes=FIXES,
        )
    )
