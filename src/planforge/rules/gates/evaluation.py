"""
Holding a gate against the facts.

The facts are handed in: how large a file is, what a record says, what verdict a stage came to. A file or
a verdict that is not there never passes. The first directive that fails decides, with a code for programs
and words for people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

from planforge.actions import Hint
from planforge.rules.gates.grammar import (
    PLACEHOLDER,
    After,
    Artifact,
    Forbid,
    Gate,
    InvalidGate,
    Kind,
    Require,
)

ENGINEERING = "docs"
"""The directory of a project for what is written about its code."""


class Reason(StrEnum):
    """Why a gate is closed, for programs."""

    ARTIFACT_MISSING = "artifact-missing"
    PREDECESSOR_VERDICT_MISSING = "predecessor-verdict-missing"
    ILLEGAL_STATUS = "illegal-status"
    TOOL_ERROR = "tool-error"
    OUTPUT_MISSING = "output-missing"
    OUTPUT_STUB = "output-stub"
    REQUIRE_FAILED = "require-failed"


VOID = "void"
"""The verdict of a stage that judged something else than is there now."""


class Facts(Protocol):
    """What is true, as far as it is known."""

    def size(self, path: str) -> int | None:
        """How many bytes a file of the project has; None if there is no such file."""

    def field(self, name: str) -> str | None:
        """What the record says; None if it says nothing. `KeyError` if a record has no such field."""

    def verdict(self, stage: str) -> str | None:
        """
        What a stage came to last; None if it came to nothing, `void` if what it judged has changed since.
        `KeyError` if there is no such stage.
        """


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Whether a gate is open; closed, it says why and what to do."""

    phase: str
    ok: bool = False
    reason_code: Reason | None = None
    detail: str = ""
    remediation: Hint = ""


def evaluate(gate: Gate, facts: Facts, places: Mapping[str, str]) -> Result:
    """Hold every directive against the facts; the first that fails closes the gate."""
    for directive in gate.directives:
        try:
            match directive:
                case Artifact():
                    failed = _artifact(gate, directive, facts, places)
                case Require():
                    failed = _require(gate, directive, facts)
                case Forbid():
                    failed = _forbid(directive, facts)
                case After():
                    failed = _after(directive, facts)
        except OSError as error:
            failed = (
                Reason.TOOL_ERROR,
                f"the facts cannot be read: {error.strerror or error}",
                "fix that first",
            )
        if failed:
            reason, detail, remediation = failed
            return Result(phase=gate.stage, reason_code=reason, detail=detail, remediation=remediation)
    return Result(phase=gate.stage, ok=True)


Failed = tuple[Reason, str, str] | None


def _artifact(gate: Gate, directive: Artifact, facts: Facts, places: Mapping[str, str]) -> Failed:
    path = resolved(directive.path, places)
    size = facts.size(path)
    after = gate.kind is Kind.OUTPUTS
    if size is None:
        reason = Reason.OUTPUT_MISSING if after else Reason.ARTIFACT_MISSING
        return (
            reason,
            f"`{path}` is not there",
            f"`{gate.stage}` must write it" if after else "run the stage that writes it",
        )
    if size < directive.least:
        reason = Reason.OUTPUT_STUB if after else Reason.ARTIFACT_MISSING
        return (
            reason,
            f"`{path}` has {size} bytes, fewer than {directive.least}",
            "write the rest of it",
        )
    return None


def _require(gate: Gate, directive: Require, facts: Facts) -> Failed:
    predicate = directive.predicate
    value = _known(facts.field, predicate.field, "field")
    if predicate.holds(value):
        return None
    reason = Reason.REQUIRE_FAILED if gate.kind is Kind.OUTPUTS else Reason.ILLEGAL_STATUS
    return reason, f"`{predicate}` does not hold: it is `{value}`", f"change `{predicate.field}` first"


def _forbid(directive: Forbid, facts: Facts) -> Failed:
    predicate = directive.predicate
    value = _known(facts.field, predicate.field, "field")
    if not predicate.holds(value):
        return None
    return (
        Reason.ILLEGAL_STATUS,
        f"`{predicate}` holds, and must not",
        f"`{predicate.field}` has to change first",
    )


def _after(directive: After, facts: Facts) -> Failed:
    verdict = _known(facts.verdict, directive.stage, "stage")
    if verdict == directive.verdict:
        return None
    if verdict == VOID:
        return (
            Reason.PREDECESSOR_VERDICT_MISSING,
            f"what `{directive.stage}` judged has changed since",
            f"run `{directive.stage}` again",
        )
    came = f"came to `{verdict}`" if verdict else "came to no verdict"
    return (
        Reason.PREDECESSOR_VERDICT_MISSING,
        f"`{directive.stage}` {came}, not `{directive.verdict}`",
        f"run `{directive.stage}` first",
    )


def _known(look: Callable[[str], str | None], name: str, what: str) -> str | None:
    try:
        return look(name)
    except KeyError:
        raise InvalidGate(f"there is no {what} `{name}`") from None


def places(*, task: str = "", plan: str = "") -> dict[str, str]:
    """What the names in braces stand for: in a run and in `planforge gate check` the same."""
    found = {"engineering": ENGINEERING, "task": task, "plan": plan.removesuffix(".md")}
    return {name: path for name, path in found.items() if path}


def resolved(path: str, places: Mapping[str, str]) -> str:
    """The path with its places filled in; one that this subject does not have is an error."""

    def place(name: str) -> str:
        if name not in places:
            raise InvalidGate(f"`{path}` needs `{{{name}}}`, which there is none of here")
        return places[name]

    return PLACEHOLDER.sub(lambda found: place(found[1]), path)
