"""
A small change without a plan file: one step, held to everything that a step of a plan is held to.

What a person typed is what is approved: its hash is the content that the step lands under. The change lands
on the fix's own branch and is measured there. One that is not small is kept as it is and not done; a person
may accept exactly that commit, which is a run of its own.
"""

from __future__ import annotations

import msgspec

from planforge.documents.phases import Phase, PhaseKind
from planforge.errors import PerformerFailed
from planforge.kernel.effects import Note, OpenBranch, TakeApproval
from planforge.kernel.events import PlanEnded, PlanStarted
from planforge.kernel.wording import counted
from planforge.rules import small
from planforge.rules.small import Limits
from planforge.workflows import prompts
from planforge.workflows.attempt import Change, StepResult, branch_of, implement
from planforge.workflows.context import Prompt
from planforge.workflows.phase import GATE, planned

STEP = "phase-1"
NOT_SMALL = "it is not small"
"""How the reason begins why a change that passed was not taken."""


class FixRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted, from where, and how much of it is small."""

    fix: str
    run: str
    title: str
    request: str
    content: str
    """The hash of the request, which the person who typed it approved by that."""
    base: str
    files: tuple[str, ...] = ()
    """What may be changed; nothing is any file."""
    limits: Limits = Limits()
    anyway: tuple[str, ...] = ()
    """Why it did not sound small, where the person wanted it all the same."""
    attempts: int = 3
    handoffs: int = 0
    escalate_after: int = 0
    accepts: str = ""
    """The commit of an earlier run that is taken although it is not small."""
    accepted_because: str = ""


class FixResult(msgspec.Struct, frozen=True, kw_only=True):
    """How the fix ended."""

    done: bool
    reason: str
    large: bool = False
    """The change passed, and is more than a small one."""


async def fix(request: FixRequest) -> FixResult:
    """Make the change, or take one that was made and was not small."""
    await TakeApproval(plan=request.fix, gate=GATE, content=request.content)
    branch = branch_of(request.fix)
    tip = (await OpenBranch(branch=branch, commit=request.base)).commit
    phase = _phase(request)
    await Note(
        PlanStarted(
            plan=request.fix,
            run=request.run,
            content=request.content,
            branch=branch,
            base=tip,
            steps=(planned(phase),),
            kept=(STEP,) if request.accepts else (),
        )
    )
    if request.accepts:
        return await _accepted(request, tip)
    try:
        result = await implement(_change(request, phase, tip))
    except PerformerFailed as error:
        result = StepResult(step=STEP, done=False, tip=tip, reason=error.message)
    if not result.done:
        at = (await OpenBranch(branch=branch, commit=tip)).commit
        return await _ended(request, at, result.reason, done=False)
    if large := small.after(result.files, result.changed_lines, request.limits):
        return await _ended(request, result.tip, f"{NOT_SMALL}: {'; '.join(large)}", done=False, large=True)
    size = f"{counted(len(result.files), 'file')}, {counted(result.changed_lines, 'line')}"
    return await _ended(request, result.tip, f"{result.reason} ({size})", done=True)


async def _accepted(request: FixRequest, tip: str) -> FixResult:
    if tip != request.accepts:
        reason = f"`{branch_of(request.fix)}` is at `{tip[:12]}` and not at `{request.accepts[:12]}` any more"
        return await _ended(request, tip, reason, done=False)
    return await _ended(
        request, tip, f"accepted although it is not small: {request.accepted_because}", done=True
    )


async def _ended(
    request: FixRequest, commit: str, reason: str, *, done: bool, large: bool = False
) -> FixResult:
    if request.anyway:
        reason = f"{reason}; begun although {'; '.join(request.anyway)}"
    await Note(
        PlanEnded(
            plan=request.fix,
            run=request.run,
            succeeded=done,
            reason=reason,
            branch=branch_of(request.fix),
            commit=commit,
        )
    )
    return FixResult(done=done, reason=reason, large=large)


def _phase(request: FixRequest) -> Phase:
    return Phase(
        id=STEP,
        title=request.title,
        kind=PhaseKind.IMPLEMENT,
        files=request.files,
        depends_on=(),
        change_spec=request.request,
    )


def _change(request: FixRequest, phase: Phase, base: str) -> Change:
    limits = request.limits
    objective = (
        "A small change, and nothing beside it: at most "
        f"{counted(limits.max_files, 'file')} and {counted(limits.max_lines, 'line')} added and removed."
    )

    def asked(attempt: int, why: str) -> Prompt:
        return prompts.implement(
            request.fix, phase, attempt=attempt, objective=objective, notes="", problem=why
        )

    return Change(
        plan=request.fix,
        run=request.run,
        step=STEP,
        title=request.title,
        base=base,
        files=request.files,
        prompt=asked,
        content=request.content,
        attempts=request.attempts,
        handoffs=request.handoffs,
        escalate_after=request.escalate_after,
    )
