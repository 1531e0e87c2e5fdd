"""
Gates: a change that needs a person waits here, as exactly the tree that would land.

A gate is raised with the reasons and the diff. A person's yes opens it for that tree and
for one run; another tree is another gate, and takes the place of the one before. Whoever
made a change does not let it through: not an agent by its name, and not a process that
Planforge has started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice
from planforge.app.decisions import deciders, record
from planforge.app.evidence import diffs
from planforge.app.evidence.diffs import FileDiff
from planforge.errors import GitFailed, InvalidInput, NeedsPerson
from planforge.kernel.effects import Decision, PassGate
from planforge.kernel.events import Choice, DecisionAsked, DecisionKind
from planforge.kernel.ledger import Write
from planforge.kernel.redaction import Redactor
from planforge.kernel.work import decisions
from planforge.kernel.work.decisions import APPROVE, REJECT

if TYPE_CHECKING:
    from planforge.app.project import Project

GATE: DecisionKind = "gate"
LIVE = ("waiting", "decided", "rejected")
CHOICES = (
    Choice(name=APPROVE, consequence="exactly this may go on, once"),
    Choice(name=REJECT, consequence="it is rejected, and whoever tries next is told why"),
)


class GateRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of gates."""

    name: str
    plan: str
    step: str
    attempt: int
    gate: str
    content: str
    commit: str
    base: str
    status: str
    reasons: tuple[str, ...]
    raised_at: str
    actor: str = ""
    reason: str = ""
    decided_at: str = ""
    edited: str = ""
    """The document that was edited since, so that the gate is void."""
    run: str = ""
    """The run that waits at it."""


class GateList(msgspec.Struct, frozen=True, kw_only=True):
    """Every gate that waits for a person, oldest first; or all."""

    schema_version: int = 1
    gates: tuple[GateRow, ...]


class GateView(msgspec.Struct, frozen=True, kw_only=True):
    """What a person looks at to decide."""

    schema_version: int = 1
    gate: GateRow
    files: tuple[FileDiff, ...]


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has decided, and what to do next."""

    schema_version: int = 1
    gate: GateRow
    runs: tuple[str, ...]
    """Runs that can go on now."""


# For runs


def raise_(project: Project, effect: PassGate, run: str) -> GateRow:
    """Have this tree wait for a person; asking again for the same one changes nothing."""
    if project.git.tree_of(effect.commit) != effect.tree:
        raise GitFailed(f"commit `{effect.commit[:12]}` does not have the tree `{effect.tree[:12]}`")
    redact = Redactor.of_environment()
    change = redact.octets(diffs.made(project.git, effect.parent, effect.commit))
    asked = redact.struct(
        DecisionAsked(
            kind=GATE,
            number=0,
            subject=effect.plan,
            name=effect.gate,
            run=run,
            step=effect.step,
            attempt=effect.attempt,
            reasons=effect.reasons,
            choices=CHOICES,
            content=effect.tree,
            commit=effect.commit,
            base=effect.parent,
            diff=project.ledger.objects.put(change),
            documents=effect.documents,
        )
    )

    def decide() -> list[Write]:
        if _live(project, effect):
            return []
        return [Write(effect.plan, None, [decisions.asked(project.ledger, asked)])]

    project.ledger.transact(decide)
    found = _live(project, effect)
    assert found is not None
    return row(project, found)


def take(project: Project, effect: PassGate, run: str) -> Decision | None:
    """
    What a person said about exactly this, for the run that acts on it; None if nobody has.

    A yes is used up, and only the run that used it sees it again. A no stands, whatever is edited after it.
    """
    taken: list[Decision] = []

    def decide() -> list[Write]:
        taken.clear()
        found = decisions.newest(project.ledger, GATE, effect.plan, effect.gate)
        if found is None or not _is_about(found, effect):
            return []
        free = found.status == "decided" and not record.edited(project, effect.documents)
        if free or found.status == "rejected" or (found.status, found.used_by) == ("used", run):
            approved = found.choice == APPROVE
            taken.append(Decision(approved=approved, actor=found.actor, reason=found.reason))
        return [Write(effect.plan, None, [decisions.used(found, run)])] if free else []

    project.ledger.transact(decide)
    return taken[0] if taken else None


def passed(project: Project, effect: PassGate, run: str) -> Decision:
    """What a person decided about this, for the run that acts on it; it waits if nobody has."""
    found = take(project, effect, run)
    if found is not None:
        return found
    if path := record.edited(project, effect.documents):
        return Decision(approved=False, actor="", reason=f"`{path}` was edited", void=True)
    waits = raise_(project, effect, run)
    raise NeedsPerson(
        f"`{waits.name}` must be opened first: {'; '.join(waits.reasons[:3])}",
        Advice("see {}, decide, then run {}", Action("gate show", waits.name), Action("resume", run)),
    )


def _live(project: Project, effect: PassGate) -> decisions.Decision | None:
    """The newest gate of this name, if it is about exactly this and nothing has come of it yet."""
    found = decisions.newest(project.ledger, GATE, effect.plan, effect.gate)
    return found if found and found.status in LIVE and _is_about(found, effect) else None


def _is_about(found: decisions.Decision, effect: PassGate) -> bool:
    return found.content == effect.tree and record.documents(found) == effect.documents


# For people


def waiting(project: Project) -> GateList:
    """The gates that wait for a person."""
    return GateList(gates=tuple(row(project, each) for each in decisions.waiting(project.ledger, GATE)))


def every(project: Project) -> GateList:
    """All gates there have been."""
    return GateList(gates=tuple(row(project, each) for each in decisions.select(project.ledger, GATE)))


def show(project: Project, name: str) -> GateView:
    """A gate with its diff, as it was raised, without secrets."""
    found = record.find(project, GATE, name)
    content = project.ledger.objects.get(found.diff)
    return GateView(gate=row(project, found), files=diffs.read(Redactor.of_environment().octets(content)))


def approve(project: Project, name: str, *, actor: str, reason: str = "", seen: str | None = None) -> Decided:
    """Let exactly this through, once; `seen` is the tree that the person looked at."""
    return _decide(project, name, APPROVE, actor=actor, reason=reason, seen=seen)


def reject(project: Project, name: str, *, actor: str, reason: str, seen: str | None = None) -> Decided:
    """Say no to this; the reason goes to whoever tries next."""
    if not reason.strip():
        raise InvalidInput("a change is rejected only for a reason", 'say why: `--reason "it runs a script"`')
    return _decide(project, name, REJECT, actor=actor, reason=reason, seen=seen)


def row(project: Project, gate: decisions.Decision) -> GateRow:
    """A gate for people and programs; void, if it could be used but for a document that was edited."""
    edited = record.edited(project, record.documents(gate)) if gate.status in ("waiting", "decided") else ""
    reasons = msgspec.json.decode(gate.reasons, type=tuple[str, ...])
    status = "void" if edited else gate.word
    return record.shown(GateRow, gate, status=status, reasons=reasons, edited=edited)


def _decide(
    project: Project, name: str, choice: str, *, actor: str, reason: str, seen: str | None
) -> Decided:
    from planforge.app import runs

    found = record.find(project, GATE, name)
    deciders.require_other_author(project, found.subject, actor)
    decided = record.make(project, found, choice, actor=actor, reason=reason, seen=seen)
    on = [item.run for item in runs.rows(project, unfinished=True) if item.subject == decided.subject]
    return Decided(gate=row(project, decided), runs=tuple(on))
