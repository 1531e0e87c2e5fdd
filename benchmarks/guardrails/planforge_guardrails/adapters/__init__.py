"""
How an orchestrator is driven: as processes, by a person who goes on only after exit code 0 and reads nothing.

An adapter is an object with what `Orchestrator` asks for. Those that come with the benchmark are in a table;
others are found by the entry-point group `planforge.orchestrators`, each a function without arguments that
returns one:

    [project.entry-points."planforge.orchestrators"]
    mine = "my_package.adapter:Mine"
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol

from planforge.errors import NotFound
from planforge_guardrails.oracle import Owned
from planforge_guardrails.person import Person
from planforge_guardrails.shapes import Case, Part, Place, Twin

GROUP = "planforge.orchestrators"
BUILT_IN = {
    "planforge": ("planforge_guardrails.adapters.planforge", "Planforge"),
    "bare": ("planforge_guardrails.adapters.bare", "Bare"),
}
BASELINE = "bare"


class Orchestrator(Protocol):
    """Something that has agents do a task and brings what they did to the target branch."""

    name: str
    owned: Owned
    """What in the repository is its own, and so may change."""

    one_way: bool
    """Whether it does the same whatever the workflow of a case, so that each case is run once."""

    def describe(self) -> str:
        """Which version it is, and what on this machine its guardrails rest on."""

    def when(self, case: Case, part: Part) -> list[list[str]]:
        """Texts that occur in its prompts for this part and in no others; a list for each kind of them."""

    def words(self, case: Case) -> Mapping[str, str]:
        """How a reviewer has to say `@APPROVE@` and `@REJECT@`."""

    def prepare(self, case: Case, place: Place) -> None:
        """Set up everything in a place, so that `place.script` is what its agents play.

        Agents must be started with `PLANFORGE_REHEARSAL_SCRIPT` and `PLANFORGE_REHEARSAL_JOURNAL` in their
        environment, and be able to write to `place.backstage`. What is done here counts as the state before.
        """

    def run(self, case: Case, twin: Twin, place: Place, person: Person) -> None:
        """Have the tasks done and landed on `main`, which is checked out, by a person's commands.

        Where there is something to approve, `case.unapproved` and `case.edited` are about that, for the bad
        twin only.
        """


def names() -> tuple[str, ...]:
    """The orchestrators that there are."""
    return tuple(dict.fromkeys([*BUILT_IN, *(found.name for found in entry_points(group=GROUP))]))


def named(name: str) -> Orchestrator:
    """One of them."""
    if name in BUILT_IN:
        module, called = BUILT_IN[name]
        made: Orchestrator = getattr(import_module(module), called)()
        return made
    for found in entry_points(group=GROUP, name=name):
        other: Orchestrator = found.load()()
        return other
    raise NotFound(f"there is no orchestrator `{name}`", hint=f"one of: {', '.join(names())}")
