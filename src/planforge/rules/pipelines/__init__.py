"""
A pipeline is data: stages one after the other, each with a role, a gate, and what follows from its verdict.

`builtin.py` has those of the documents, others come from `planforge.toml`. `checking.py` looks for what
cannot work; `proving.py` goes through everything that could happen and shows a way to landing that misses
a review, if there is one.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from planforge.errors import InvalidInput
from planforge.rules.gates.grammar import After, Gate, Kind, parse

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

Source = Literal["", "audit", "review", "polish", "module", "evidence", "person"]
"""Who says what a stage came to: one of the four kinds of reviews, our own checks, or a person."""


class InvalidPipeline(InvalidInput):
    """A pipeline that makes no sense."""


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One box of a pipeline."""

    name: str
    role: str
    gate: str = ""
    """Directives that must hold before it begins."""
    outputs: str = ""
    """Directives about what it must leave behind."""
    verdict: Source = ""
    """Where its verdict comes from; empty if it has none."""
    judges: tuple[str, ...] = ()
    """What its verdict is about, such as `plan` or `code`: a change of that voids it."""
    writes: tuple[str, ...] = ()
    """What it changes."""
    on_revision: str = ""
    """Where a revision goes back to; empty is the nearest stage before that writes something."""
    max_iterations: int = 3
    """How often it may ask for a revision before a person has to look."""
    policy: str = "max-iterations"
    """What decides whether it goes round once more; see `planforge policy list`."""
    limits: dict[str, int | bool] = {}
    """Settings of the policy over its defaults; that of `max-iterations` is `max_iterations`."""
    revised_by: str = ""
    """The role that is asked when the stage is come back to; empty is the same one."""
    tier: str = ""
    model: str = ""
    architecture: bool | None = None
    """Whether the architecture is part of its context; None is as its role has it."""
    summaries: Literal["", "none", "delta", "all"] = ""
    document: str = ""
    """The file that it leaves beneath the task's directory; empty is its name in capitals."""
    lands: bool = False
    """Whether it brings the work to its branch."""

    @property
    def leaves(self) -> str:
        """The name of the file that it leaves."""
        return self.document or f"{self.name.upper().replace('-', '_')}.md"

    @property
    def entry(self) -> Gate:
        """What must hold before it begins."""
        return parse(self.gate, self.name)

    @property
    def exit(self) -> Gate:
        """What must hold after it has ended."""
        return parse(self.outputs, self.name, Kind.OUTPUTS)

    @property
    def afters(self) -> tuple[After, ...]:
        """The verdicts that must have been reached before."""
        return tuple(item for item in self.entry.directives if isinstance(item, After))


class Pipeline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Stages in the order in which they are gone through."""

    name: str = ""
    """In the settings this is the name of its table."""
    about: str = ""
    stages: tuple[Stage, ...]
    requires: tuple[str, ...] = ()
    """The stages that must have approved exactly what lands."""
    gates: str = ""
    """A Markdown file of the project with gates in fences, for stages that have none of their own."""

    def index(self, name: str) -> int:
        """Where a stage stands."""
        for index, stage in enumerate(self.stages):
            if stage.name == name:
                return index
        raise InvalidPipeline(
            f"pipeline `{self.name}` has no stage `{name}`",
            f"it has {', '.join(stage.name for stage in self.stages)}",
        )

    def back_to(self, index: int) -> int:
        """Where a stage goes back to when it asks for a revision."""
        stage = self.stages[index]
        if stage.on_revision:
            return self.index(stage.on_revision)
        for before in range(index - 1, -1, -1):
            if self.stages[before].writes:
                return before
        raise InvalidPipeline(f"stage `{stage.name}` of `{self.name}` has nothing to go back to")
