"""
Which status may follow which.

Every set of statuses that people see is a table in `tables.py`. A status is only ever left along a row of
its table; anything else is an error that names what would be possible. Every status that is not final has a
row that a person can take, so that nothing is ever stuck. A final one is left by a person who reopens it, and
by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from planforge.actions import Action, Advice
from planforge.errors import InvalidInput


class IllegalTransition(InvalidInput):
    """A status cannot follow another one."""


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """One row: from where, by what, to where."""

    source: str
    event: str
    target: str
    person: bool = False
    """Whether a person can make it happen."""
    action: Action | None = None
    """How they do, if there is a way; its blank stands for what has the status."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The statuses of one kind of thing."""

    name: str
    about: str
    initial: str
    final: frozenset[str]
    transitions: tuple[Transition, ...]

    @property
    def states(self) -> tuple[str, ...]:
        """Every status, the first one first, in the order of the table."""
        named = (name for row in self.transitions for name in (row.source, row.target))
        return tuple(dict.fromkeys((self.initial, *named)))

    def leaving(self, state: str) -> Iterator[Transition]:
        """The rows that lead out of a status."""
        return (row for row in self.transitions if row.source == state)

    def check(self, state: str) -> str:
        """The status itself, if there is one of that name."""
        if state not in self.states:
            raise IllegalTransition(
                f"a {self.name} cannot be `{state}`", f"it can be {', '.join(self.states)}"
            )
        return state

    def after(self, state: str, event: str, of: str = "") -> str:
        """The status that an event leads to; `of` is what it happens to, for the actions that are named."""
        for row in self.leaving(self.check(state)):
            if row.event == event:
                return row.target
        raise self._refusal(f"`{event}` cannot happen to a {self.name} that is `{state}`", state, of)

    def move(self, state: str, target: str, of: str = "") -> str:
        """The status `target`, if it may follow `state` directly; a final one is left only by its event."""
        found = {row.target for row in self.leaving(self.check(state))}
        if self.check(target) in found and state not in self.final:
            return target
        raise self._refusal(f"a {self.name} that is `{state}` cannot become `{target}`", state, of)

    def way(self, state: str, target: str) -> tuple[Transition, ...]:
        """
        The shortest way from one status to another. A row that a person takes can be at its end at most, and
        a status that only a person leaves is not on it.
        """
        ways: dict[str, tuple[Transition, ...]] = {self.check(state): ()}
        for source in (reached := [state]):
            rows = list(self.leaving(source))
            if source != state and all(row.person for row in rows):
                continue
            for row in rows:
                if row.target not in ways and (row.target == target or not row.person):
                    ways[row.target] = (*ways[source], row)
                    reached.append(row.target)
        if self.check(target) in ways:
            return ways[target]
        raise self._refusal(f"a {self.name} that is `{state}` cannot become `{target}`", state, "")

    def _refusal(self, problem: str, state: str, of: str) -> IllegalTransition:
        found = self._actions(state, of)
        events = {f"`{row.event}`": [row.target] for row in self.leaving(state)}
        ways = ", ".join(f"{{}} → {'/'.join(targets)}" for targets in (found or events).values())
        if state not in self.final:
            return IllegalTransition(problem, Advice(f"possible are {ways}", *(found or events)))
        back = f", unless a person takes it back: {ways}" if ways else ""
        return IllegalTransition(problem, Advice(f"`{state}` is final{back}", *(found or events)))

    def _actions(self, state: str, of: str) -> dict[Action, list[str]]:
        """What a person does with it to leave a status, and where that leads; not how to end a run."""
        found: dict[Action, list[str]] = {}
        for row in self.leaving(state):
            if row.action and row.action.items == (self.name.upper(),):
                items = (of,) if of else row.action.items
                action = Action(row.action.verb, *items, **row.action.options)
                found.setdefault(action, []).append(row.target)
        return found
