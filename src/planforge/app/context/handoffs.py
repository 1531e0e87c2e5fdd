"""Handoffs: written when an agent's context is full, shown to people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import see
from planforge.app.history import graphs
from planforge.errors import NotFound
from planforge.kernel import graph, handoff
from planforge.kernel.continuation import TouchedFile
from planforge.kernel.effects import HandOver, Handover, Leased
from planforge.kernel.handoff import AgentContext
from planforge.kernel.ledger import Ledger
from planforge.kernel.objects import encode

if TYPE_CHECKING:
    from planforge.app.project import Project


class HandoffRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of handoffs."""

    handoff: str
    holder: str
    successor: str
    used: int
    threshold: int
    estimated: bool


def write(
    ledger: Ledger,
    effect: HandOver,
    files: Iterable[tuple[str, str]],
    commit: str,
    lease: Leased,
) -> Handover:
    """Record the handoff that a step's flow asks for, and say what the next agent is told."""
    found = handoff.emit(
        ledger,
        f"{graph.newest(ledger, effect.plan)}/{effect.step}",
        effect.context,
        holder=effect.lease.holder,
        successor=lease.holder,
        passed=lease.fence,  # whoever renews the lease has passed it on
        files=[TouchedFile(path=path, hash=content) for path, content in files],
    )
    context = handoff.load(ledger, found.handoff, lease.holder)
    text = msgspec.json.format(encode(context), indent=1).decode()
    return Handover(handoff=found.handoff, text=text, commit=commit, lease=lease)


def listed(project: Project) -> list[HandoffRow]:
    """Every handoff, oldest first."""
    return msgspec.convert(handoff.emitted(project.ledger), list[HandoffRow], from_attributes=True)


def show(project: Project, name: str) -> AgentContext:
    """A handoff by its name, or the newest one of a step, written as people do, such as `1/phase-1`."""
    named, numbered, number = name.rpartition("#") if "#" in name else (name, "", "")
    step = graph.find(project.ledger, graphs.node(project, named)).node
    if numbered:
        return handoff.load(project.ledger, f"{step}#{number}")
    found = handoff.emitted(project.ledger, step)
    if not found:
        raise NotFound(f"nobody has handed over `{step}`", see("handoff list"))
    return handoff.load(project.ledger, found[-1].handoff)
