"""One phase of a plan: its fields, its description and its signature."""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec

SHORT_HASH = 16


class PhaseKind(StrEnum):
    """What a phase does, and so which tools it gets."""

    IMPLEMENT = "implement"
    READ = "read"
    AUDIT = "audit"


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of a plan."""

    id: str
    title: str
    kind: PhaseKind
    files: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    change_spec: str = ""


DESCRIPTIONS = {
    PhaseKind.READ: "Read what the plan is about and report what has to change.",
    PhaseKind.AUDIT: "Audit all changes against the plan.",
}


def description(phase: Phase) -> str:
    """What the phase does, in a sentence."""
    implementing = (
        f"Implement changes for: {in_backticks(phase.files)}" if phase.files else "Implement the plan."
    )
    return DESCRIPTIONS.get(phase.kind, implementing)


def in_backticks(paths: tuple[str, ...]) -> str:
    """Files in a line, as a plan has them."""
    return ", ".join(f"`{path}`" for path in paths)


def signature(phase: Phase) -> str:
    """
    What the phase says, as a short hash: title, kind, description, sorted files and change spec.

    Its number and what it waits for are no part of it, so a phase that says the same after the plan was cut
    anew is known again wherever it stands then.
    """
    said = (phase.title, phase.kind.value, description(phase), sorted(phase.files), phase.change_spec)
    return hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:SHORT_HASH]
