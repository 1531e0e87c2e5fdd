"""
Gates: a change that needs a person waits here, as exactly the tree that would land.

A gate is raised with the reasons and the diff. A person's yes opens it for that tree and
for one run; another tree is another gate, and takes the place of the one before. Whoever
made a change does not let it through: not an agent by its name, and not a process that
Planforge has started.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice, see
from planforge.app import deciders, diffs
from planforge.app.deciders import Current
from planforge.app.diffs import FileDiff
from planforge.errors import GitFailed, InvalidInput, NeedsPerson, NotFound, StaleView
from planforge.kernel.effects import Decision, PassGate
from planforge.kernel.events import ApprovalUsed, GateDecided, GateRaised
from planforge.kernel.ledger import Write
from planforge.kernel.redaction import Redactor

if TYPE_CHECKING:
    from planforge.app.project import Project

TABLE = "raised_gates"
LIVE = ("waiting", "approved", "rejected")
WORDS = {
    "superseded": "another tree has taken its place",
    "closed": "its run has ended",
    "used": "the approval was used",
}


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A gate as the ledger has it."""

    number: int
    plan: str
    step: str
    attempt: int
    gate: str
    content: str
    """The tree that would land."""
    proposed: str
    """The commit that has it."""
    base: str
    reasons: str
    diff: str
    status: str
    """waiting, approved, rejected, used, superseded or closed"""
    actor: str
    reason: str
    used_by: str
    raised_at: str
    decided_at: str

    @property
    def name(self) -> str:
        """What people call it."""
        return f"gate-{self.number:03}"


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


def raise_(
    project: Project,
    *,
    plan: str,
    step: str,
    attempt: int,
    gate: str,
    content: str,
    commit: str,
    base: str,
    reasons: Iterable[str],
) -> GateRow:
    """Have this tree wait for a person; asking again for the same one changes nothing."""
    if project.git.tree_of(commit) != content:
        raise GitFailed(f"commit `{commit[:12]}` does not have the tree `{content[:12]}`")
    redact = Redactor.of_environment()
    raised = redact.struct(
        GateRaised(
            plan=plan,
            step=step,
            attempt=attempt,
            gate=gate,
            content=content,
            commit=commit,
            base=base,
            reasons=tuple(reasons),
            diff=project.ledger.objects.put(redact.octets(diffs.made(project.git, base, commit))),
        )
    )

    def decide() -> list[Write]:
        return [] if _live(project, plan, gate, content) else [Write(plan, None, [raised])]

    project.ledger.transact(decide)
    found = _live(project, plan, gate, content)
    assert found is not None
    return row(found)


def decision(project: Project, plan: str, gate: str, content: str) -> Decision | None:
    """What a person said about exactly this tree; None if nobody has, or the yes is used."""
    found = _live(project, plan, gate, content)
    if found is None or found.status == "waiting":
        return None
    return Decision(approved=found.status == "approved", actor=found.actor, reason=found.reason)


def take(project: Project, plan: str, gate: str, content: str, run: str) -> Decision | None:
    """The same for the run that acts on it: a yes is used up, and only the run that used it sees it again."""
    used = project.ledger.select(
        Gate, f"{TABLE} WHERE plan = ? AND gate = ? AND content = ? AND used_by = ?", plan, gate, content, run
    )
    if used:
        return Decision(approved=True, actor=used[-1].actor, reason=used[-1].reason)
    taken: list[Decision] = []

    def decide() -> list[Write]:
        taken.clear()
        found = decision(project, plan, gate, content)
        if found is None:
            return []
        taken.append(found)
        event = ApprovalUsed(plan=plan, gate=gate, content=content, run=run)
        return [Write(plan, None, [event])] if found.approved else []

    project.ledger.transact(decide)
    return taken[0] if taken else None


def passed(project: Project, effect: PassGate, run: str) -> Decision:
    """What a person decided about this tree, for the run that acts on it; it waits if nobody has."""
    found = take(project, effect.plan, effect.gate, effect.tree, run)
    if found is not None:
        return found
    waits = raise_(
        project,
        plan=effect.plan,
        step=effect.step,
        attempt=effect.attempt,
        gate=effect.gate,
        content=effect.tree,
        commit=effect.commit,
        base=effect.parent,
        reasons=effect.reasons,
    )
    raise NeedsPerson(
        f"`{waits.name}` must be opened first: {'; '.join(waits.reasons[:3])}",
        Advice("see {}, decide, then run {}", Action("gate show", waits.name), Action("resume", run)),
    )


def _live(project: Project, plan: str, gate: str, content: str) -> Gate | None:
    """The newest gate of this name, if it is for this tree and nothing has come of it yet."""
    where = f"{TABLE} WHERE plan = ? AND gate = ? ORDER BY number DESC LIMIT 1"
    for found in project.ledger.select(Gate, where, plan, gate):
        if found.content == content and found.status in LIVE:
            return found
    return None


# For people


def waiting(project: Project) -> GateList:
    """The gates that wait for a person."""
    found = project.ledger.select(Gate, f"{TABLE} WHERE status = 'waiting' ORDER BY number")
    return GateList(gates=tuple(map(row, found)))


def every(project: Project) -> GateList:
    """All gates there have been."""
    return GateList(gates=tuple(map(row, project.ledger.select(Gate, f"{TABLE} ORDER BY number"))))


def show(project: Project, name: str) -> GateView:
    """A gate with its diff, as it was raised, without secrets."""
    found = find(project, name)
    content = project.ledger.objects.get(found.diff)
    return GateView(gate=row(found), files=diffs.read(Redactor.of_environment().octets(content)))


def approve(project: Project, name: str, *, actor: str, reason: str = "", seen: str | None = None) -> Decided:
    """Let exactly this tree through, once; `seen` is the tree that the person looked at."""
    return _decide(project, name, approved=True, actor=actor, reason=reason, seen=seen)


def reject(project: Project, name: str, *, actor: str, reason: str, seen: str | None = None) -> Decided:
    """Say no to this tree; the reason goes to whoever tries next."""
    if not reason.strip():
        raise InvalidInput("a change is rejected only for a reason", 'say why: `--reason "it runs a script"`')
    return _decide(project, name, approved=False, actor=actor, reason=reason, seen=seen)


def find(project: Project, name: str) -> Gate:
    """The gate that `name` means: `gate-007`, `gate-7` or `7`."""
    number = re.fullmatch(r"(?:gate-)?0*(\d{1,9})", name.strip())
    if number:
        for found in project.ledger.select(Gate, f"{TABLE} WHERE number = ?", int(number[1])):
            return found
    raise NotFound(f"there is no gate `{name}`", see("gate list"))


def row(gate: Gate) -> GateRow:
    """A gate for people and programs."""
    return GateRow(
        name=gate.name,
        plan=gate.plan,
        step=gate.step,
        attempt=gate.attempt,
        gate=gate.gate,
        content=gate.content,
        commit=gate.proposed,
        base=gate.base,
        status=gate.status,
        reasons=msgspec.json.decode(gate.reasons, type=tuple[str, ...]),
        raised_at=gate.raised_at,
        actor=gate.actor,
        reason=gate.reason,
        decided_at=gate.decided_at,
    )


def _decide(
    project: Project, name: str, *, approved: bool, actor: str, reason: str, seen: str | None
) -> Decided:
    from planforge.app import runs

    said = "approved" if approved else "rejected"
    deciders.require_other_author(project, find(project, name).plan, actor)

    def decide() -> list[Write]:
        found = find(project, name)
        deciders.require_current(seen, _current(project, found))
        if found.status == said and found.actor == actor:
            return []  # said twice
        if found.status != "waiting":
            raise _too_late(project, found)
        event = GateDecided(
            plan=found.plan,
            gate=found.gate,
            content=found.content,
            approved=approved,
            actor=actor,
            reason=reason.strip(),
            number=found.number,
        )
        return [Write(found.plan, None, [event])]

    project.ledger.transact(decide)
    decided = find(project, name)
    on = [item.run for item in runs.rows(project, unfinished=True) if item.subject == decided.plan]
    return Decided(gate=row(decided), runs=tuple(on))


def _too_late(project: Project, gate: Gate) -> StaleView:
    if gate.status in ("approved", "rejected"):
        why = f"it was {gate.status} by {gate.actor}"
    else:
        why = WORDS[gate.status]
    current = _current(project, gate)
    hint = Advice("see {}", current.next if current.what != gate.name else Action("gate list"))
    return StaleView(f"`{gate.name}` is not open to a decision: {why}", hint, current=current)


def _current(project: Project, gate: Gate) -> Current:
    """What a person has to look at: this gate, or the one that has taken its place."""
    where = f"{TABLE} WHERE plan = ? AND gate = ? AND number > ? AND status = 'waiting' ORDER BY number"
    later = project.ledger.select(Gate, where, gate.plan, gate.gate, gate.number)
    now = later[-1] if later else gate
    return Current(
        what=now.name,
        status=now.status,
        hash=now.content,
        actor=now.actor,
        reason=now.reason,
        at=now.decided_at or now.raised_at,
        next=Action("gate show", now.name),
    )
