"""Decisions of people as facts: those of an approval, those of one kind, and the gate that a run asks for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from planforge.kernel.effects import PassGate
from planforge.kernel.events import Choice, DecisionAsked, DecisionMade, Event
from planforge.kernel.work import decisions

Fact = TypeVar("Fact", bound=Event)


def approval(
    plan: str, content: str, actor: str = "ada", *, number: int = 1, gate: str = "plan"
) -> tuple[DecisionAsked, DecisionMade]:
    """A person's yes to a plan, as it is recorded."""
    choices = (Choice(name=decisions.APPROVE),)
    asked = DecisionAsked(
        kind="approval", number=number, subject=plan, name=gate, choices=choices, content=content
    )
    asked = decisions.hashed(asked)
    return asked, decisions.made(asked, decisions.APPROVE, actor)


def of(found: Iterable[Fact], kind: str) -> list[Fact]:
    """Those facts that are about decisions of one kind."""
    return [each for each in found if getattr(each, "kind", "") == kind]


def at(plan: str, gate: str, tree: str) -> PassGate:
    """What a run asks for that has this tree at a gate."""
    return PassGate(plan=plan, step="", attempt=1, gate=gate, commit="", tree=tree, parent="", reasons=())
