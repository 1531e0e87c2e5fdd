"""What goes in and comes out where other programs use the kernel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta

import msgspec

from planforge.kernel.continuation import TouchedFile
from planforge.kernel.events import Amounts, PlannedStep
from planforge.kernel.evidence import Evidence
from planforge.kernel.ledger import Ledger
from planforge.kernel.redaction import Redactor
from planforge.kernel.scores import StepScore

TTL = timedelta(minutes=10)
"""How long a step keeps its files, unless told otherwise or renewed."""


class Commands:
    """Some of what a kernel can do with its ledger; texts are redacted before they are recorded."""

    def __init__(self, ledger: Ledger, redact: Redactor | None = None) -> None:
        self._ledger = ledger
        self._redact = redact or Redactor.of_environment()


def planned(
    step: str,
    title: str = "",
    *,
    files: Iterable[str] = (),
    depends_on: Iterable[str] = (),
    kind: str = "implement",
    gates: Iterable[str] = (),
    weight: int = 1,
) -> PlannedStep:
    """
    A step to make a plan with.

    `files` are the paths and globs that it may change; a step without any may change nothing.
    """
    return PlannedStep(
        step=step,
        title=title or step,
        kind=kind,
        files=tuple(files),
        depends_on=tuple(depends_on),
        gates=tuple(gates),
        weight=weight,
    )


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at a step, as its holder gets it."""

    step: str
    """The node of the step in the graph."""
    plan: str
    """The plain id of the plan."""
    name: str
    """The step's name in the plan."""
    attempt: int
    holder: str
    files: tuple[str, ...]
    """The paths and globs that it may change."""
    fence: int
    """The lease of those files; 0 where there is none."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A change that somebody made, and what they say about it."""

    files: tuple[TouchedFile, ...]
    tree: str
    """The hash of everything after the change, which the evidence must be about."""
    changed_lines: int
    claim: str = ""
    agent: str = ""
    commit: str = ""
    diff: bytes = b""
    spent: Amounts = Amounts()
    """What making it cost, as far as that is known."""


class StepOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an attempt."""

    step: str
    attempt: int
    accepted: bool
    reason: str
    score: StepScore | None
    """None for an attempt that was not accepted."""
    patch: str
    """The address of the diff among the ledger's objects; empty if there was none."""


Work = Callable[[Assignment], Proposal]
Verify = Callable[[Assignment, Proposal], Evidence]

AnyWork = Callable[[Assignment], Proposal | Awaitable[Proposal]]
AnyVerify = Callable[[Assignment, Proposal], Evidence | Awaitable[Evidence]]
