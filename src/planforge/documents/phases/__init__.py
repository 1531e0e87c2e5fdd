"""
An approved plan cut into the phases that carry it out.

`decompose` finds the files a plan means to change (`finding.py`, `naming.py`) and deals
them out (`batches.py`): one implementing phase a batch, one audit at the end. The paths
come from a document that an agent wrote, so one that could leave the repository is never
produced. docs/phases.md says what is read out of which Markdown, for people.

A section that is there twice counts as it stands first; `plan audit --structural` says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from planforge.documents import markdown
from planforge.documents.changes import declared, doubtful, entries, manifest
from planforge.documents.file_names import file_path
from planforge.documents.phases.batches import arranged, batches
from planforge.documents.phases.differences import differences, read_phases
from planforge.documents.phases.rendering import PhaseDetail, render_phases
from planforge.documents.phases.shapes import Phase, PhaseKind, description, signature
from planforge.documents.plan import declared_parallel

__all__ = [
    "Phase",
    "PhaseDetail",
    "PhaseKind",
    "decompose",
    "description",
    "differences",
    "doubtful",
    "file_path",
    "named_files",
    "read_phases",
    "render_phases",
    "signature",
]


def decompose(
    plan_text: str, *, max_files: int = 5, parallel: bool | None = None, present: Collection[str] = ()
) -> tuple[Phase, ...]:
    """
    The phases of a plan: a chain, or side by side, and always an audit that waits for all of them.

    Which of the two the plan's header may declare (`**Parallel:** yes`); without, it is a chain. Phases side
    by side wait only for those whose files theirs are declared to come after; in a chain, the declared order
    decides who comes first. Of the `doubtful` names, those that are `present` in the repository are files.
    """
    if max_files < 1:
        raise ValueError(f"a phase needs room for at least one file, not {max_files}")
    plan_text = plan_text.removeprefix("\ufeff")
    if parallel is None:
        parallel = bool(declared_parallel(plan_text))
    changes = markdown.body(plan_text, "Changes") or ""
    found = entries(changes, present)
    files = named_files(plan_text, present)
    if not files:
        return _without_files(changes)
    phases: list[Phase] = []
    described = {path: entry.text for entry in reversed(found) for path in entry.files}
    for batch, needs in arranged(tuple(batches(files, max_files)), declared(found, files)):
        previous = (phases[-1].id,) if phases else ()
        depends_on = tuple(phases[need].id for need in needs) if parallel else previous
        phases.append(_implement(f"phase-{len(phases) + 1}", batch, depends_on, described))
    return (*phases, _audit(f"phase-{len(phases) + 1}", files, tuple(phase.id for phase in phases)))


def named_files(plan_text: str, present: Collection[str] = ()) -> tuple[str, ...]:
    """The files that a plan means to change: those of its manifest, or of its Changes section."""
    found = entries(markdown.body(plan_text, "Changes") or "", present)
    return manifest(plan_text, present) or tuple(
        dict.fromkeys(path for entry in found for path in entry.files)
    )


def _without_files(changes: str) -> tuple[Phase, ...]:
    """For a plan that names no file: read first, then do what the plan says."""
    spec = markdown.without_rules(changes)
    read = Phase(id="phase-1", title="Read and analyse", kind=PhaseKind.READ, change_spec=spec)
    implement = Phase(
        id="phase-2",
        title="Implement the plan",
        kind=PhaseKind.IMPLEMENT,
        depends_on=("phase-1",),
        change_spec=spec,
    )
    return read, implement, _audit("phase-3", (), ("phase-2",))


def _implement(
    phase: str, batch: tuple[str, ...], depends_on: tuple[str, ...], described: Mapping[str, str]
) -> Phase:
    more = f" and {len(batch) - 2} more" if len(batch) > 2 else ""
    return Phase(
        id=phase,
        title=f"Implement {', '.join(batch[:2])}{more}",
        kind=PhaseKind.IMPLEMENT,
        files=batch,
        depends_on=depends_on,
        change_spec=_change_spec(batch, described),
    )


def _audit(phase: str, files: tuple[str, ...], depends_on: tuple[str, ...]) -> Phase:
    return Phase(
        id=phase,
        title="Post-implementation audit",
        kind=PhaseKind.AUDIT,
        files=files,
        depends_on=depends_on,
    )


def _change_spec(batch: tuple[str, ...], described: Mapping[str, str]) -> str:
    """What the plan says first about each file of a batch, every passage once."""
    missing = "- `{}` — as the Objective asks; not described"
    return "\n".join(dict.fromkeys(described.get(path, missing.format(path)) for path in batch))
