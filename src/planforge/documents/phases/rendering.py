"""
The phases file that people read, with every field that a phase has.

It shows what the ledger says and is no truth of its own: what is read from it is only
held against the ledger (`differences.py`). What agents and tools said is put on one line
each, so that nothing in it can begin a phase or change a status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from planforge.documents import markdown
from planforge.documents.phases.shapes import SHORT_HASH, Phase, description, in_backticks
from planforge.kernel.work.lifecycle.tables import PHASE

LONGEST_LINE = 300
"""What is shown of an error or an answer; the whole of it is in the ledger."""


class PhaseDetail(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a phase; what is empty is not shown."""

    commit: str = ""
    error: str = ""
    modified: tuple[str, ...] = ()
    """The files that it changed."""
    evidence: str = ""
    """What was measured, in a line."""
    output: str = ""
    """What its agent said; the first line of it is shown."""


NOTHING = PhaseDetail()


def render_phases(
    plan_id: str,
    plan_path: str,
    plan_hash: str,
    created: str,
    phases: Sequence[Phase],
    statuses: Mapping[str, str],
    *,
    updated: str | None = None,
    details: Mapping[str, PhaseDetail] | None = None,
) -> str:
    """The phases file, with statuses that there are."""
    header = [
        f"# Phases: {plan_id} — {plan_path}",
        f"Created: {created}",
        f"Updated: {updated or created}",
        f"Plan hash: {plan_hash[:SHORT_HASH]}",
    ]
    known = details or {}
    shown = [
        _render_phase(phase, PHASE.check(statuses.get(phase.id, PHASE.initial)), known.get(phase.id, NOTHING))
        for phase in phases
    ]
    return "\n".join(["\n".join(header), "", *shown])


def _render_phase(phase: Phase, status: str, detail: PhaseDetail) -> str:
    lines = [
        f"## {phase.id}: {phase.title}",
        f"**Kind:** {phase.kind}",
        f"**Status:** {status}",
        f"**Context:** {in_backticks(phase.files) or '(none)'}",
        f"**Depends on:** {', '.join(phase.depends_on) or '(none)'}",
        *(f"**{name}:** {said}" for name, said in _came_to(detail).items() if said),
        "",
        description(phase),
        "",
    ]
    if phase.change_spec:
        closing = markdown.open_fence(phase.change_spec)
        lines += ["**Change spec:**", phase.change_spec, *([closing] if closing else []), ""]
    return "\n".join([*lines, "---", ""])


def _came_to(detail: PhaseDetail) -> dict[str, str]:
    first = next((line for each in detail.output.splitlines() if (line := _one_line(each))), "")
    return {
        "Commit": f"`{_one_line(detail.commit)}`" if detail.commit else "",
        "Modified": _one_line(in_backticks(detail.modified), longest=None),
        "Evidence": _one_line(detail.evidence),
        "Error": _one_line(detail.error),
        "Output": first,
    }


def _one_line(said: str, *, longest: int | None = LONGEST_LINE) -> str:
    """The text on one line, without characters that cannot be seen, and cut where it is long."""
    plain = "".join(letter if letter.isprintable() else " " for letter in said)
    line = " ".join(plain.split())
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1].rstrip()}…"
