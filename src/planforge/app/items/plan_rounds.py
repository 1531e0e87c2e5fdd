"""
What a plan said in each round of its audit, what changed between two of them, and why.

A round's text is the one that was audited in it. What the auditor found in a round is why the next one is
different. The last text of all is the one on disk, with whatever a person has made of it.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice
from planforge.app.items import plans
from planforge.errors import InvalidInput
from planforge.kernel.events import AuditRecorded, PlanWritten, RecordedFinding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planforge.app.project import Project
    from planforge.kernel.events import Event

ON_DISK = "now"


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One round: what was audited, and what came of it."""

    round: str
    """Its number, or `now` for the file as it is."""
    object: str = ""
    by: str = ""
    verdict: str = ""
    findings: tuple[RecordedFinding, ...] = ()
    decision: str = ""


class PlanDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What changed from one round to another, and why."""

    schema_version: int = 1
    plan: str
    before: Round
    after: Round
    lines: tuple[str, ...]
    """A unified diff; none if nothing changed."""
    reasons: tuple[RecordedFinding, ...]
    """What was found in between."""


def rounds(project: Project, name: str) -> list[Round]:
    """Every round of a plan's audit, oldest first, and the file as it is now."""
    found: list[Round] = []
    written = ""
    for event in history(project, plans.row(project, name).plan):
        match event:
            case PlanWritten(cause="draft" | "revision"):
                written = event.object
            case PlanWritten(cause="audit") if found:
                # It holds what was audited, which a person may have edited since it was written.
                found[-1] = msgspec.structs.replace(found[-1], object=event.object)
            case AuditRecorded(step=""):
                found.append(
                    Round(
                        round=str(len(found) + 1),
                        object=written,
                        by=event.by,
                        verdict=event.verdict,
                        findings=event.findings,
                        decision=event.decision_reason,
                    )
                )
    return [*found, Round(round=ON_DISK)]


def history(project: Project, plan: str) -> Iterator[Event]:
    """Everything that happened to a plan and in the runs about it, in order."""
    runs = project.ledger.query("SELECT run FROM runs WHERE subject = ?", plan)
    streams = [plan, *(run for (run,) in runs)]
    recorded = [item for stream in streams for item in project.ledger.stream(stream)]
    yield from (item.event for item in sorted(recorded, key=lambda item: item.seq))


def diff(project: Project, name: str, before: str = "", after: str = "") -> PlanDiff:
    """What changed between two rounds; without any, from the one before the last change to the file."""
    plan, known = plans.row(project, name), rounds(project, name)
    if not plan.path:
        raise plans.without_file(plan)
    names = [each.round for each in known]
    if len(names) < 2:
        raise InvalidInput(
            f"`{plan.plan}` was never audited, so there is nothing to compare",
            Advice("have it audited: {}", Action("forge", plan.plan)),
        )
    for given in filter(None, (before, after)):
        if given not in names:
            raise InvalidInput(f"`{plan.plan}` has no round {given}", f"it has {', '.join(names)}")
    first = names.index(before) if before else len(names) - 2
    last = names.index(after) if after else len(names) - 1
    if first > last:
        raise InvalidInput(f"round {before} comes after round {after}", "name the earlier one first")
    texts = [_text(project, plan, each) for each in (known[first], known[last])]
    names = [known[at].round for at in (first, last)]
    labels = [f"{plan.plan} {'as it is now' if name == ON_DISK else f'round {name}'}" for name in names]
    lines = difflib.unified_diff(texts[0], texts[1], labels[0], labels[1], lineterm="")
    reasons = [finding for each in known[first:last] for finding in each.findings]
    return PlanDiff(
        plan=plan.plan,
        before=known[first],
        after=known[last],
        lines=tuple(lines),
        reasons=tuple(reasons),
    )


def _text(project: Project, plan: plans.PlanRow, of: Round) -> list[str]:
    """The part of a plan that is audited, as lines."""
    from planforge.documents.plan import approvable

    if of.round == ON_DISK:
        text = plans.text(project, plan)
    else:
        text = project.ledger.objects.get(of.object).decode()
    return approvable(text).splitlines()
