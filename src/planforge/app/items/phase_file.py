"""
The phases file beside a plan: written from the ledger, and never read back.

But for a look whether somebody has edited it: then theirs is put aside under another name before it is
written again, and what differs is said in words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from planforge.app.items import phase_views, plans
from planforge.app.items.phase_views import Made, PhaseView
from planforge.documents import phases as documents
from planforge.documents.plan import content_hash
from planforge.kernel import events
from planforge.kernel.files import read_regular
from planforge.kernel.graph.steps import happened
from planforge.kernel.objects import address, write_atomically

if TYPE_CHECKING:
    from pathlib import Path

    from planforge.app.items.plans import PlanRow
    from planforge.app.project import Project

SEALED = "<!-- planforge: {hash} -->"
"""The last line of the file: the hash of all before it, by which an edit is noticed."""
SEAL = re.compile(r"<!-- planforge: [0-9a-f]{16} -->\s*\Z")


def write(project: Project, plan: str) -> None:
    """Write the file as the ledger has the phases now; one that somebody has edited is put aside first."""
    row, made = plans.row(project, plan), phase_views.made_last(project, plan)
    if made is None:
        return
    path = _file(project, row)
    _put_aside(path)
    write_atomically(path, _sealed(_rendered(project, row, made)).encode())


def catch_up(project: Project, plan: str) -> None:
    """Write the file if it lags behind the ledger; one that somebody has touched, or their plan, is left."""
    row, made = plans.row(project, plan), phase_views.made_last(project, plan)
    if made is None or content_hash(plans.text(project, row)) != made.event.content:
        return
    path = _file(project, row)
    if path.is_file() and not path.is_symlink() and _is_ours(path.read_bytes()):
        write(project, plan)


def _rendered(project: Project, plan: PlanRow, made: Made) -> str:
    shown = phase_views.shown(project, plan, made.event)
    return documents.render_phases(
        plan.plan,
        plan.path,
        made.event.content,
        made.at[:10],
        shown,
        {phase.id: phase.status for phase in shown},
        updated=plan.updated_at[:10],
        details=_details(project, plan.plan, shown, made.seq),
    )


SHOWN = ("StepStarted", "PatchProposed", "VerifyOk", "VerifyFailed", "AuditRecorded")
"""The facts that the file tells of a phase."""


def _details(
    project: Project, plan: str, shown: Sequence[PhaseView], since: int
) -> dict[str, documents.PhaseDetail]:
    """What became of each phase since they were made: what it changed and what was measured of it."""
    found = {
        phase.id: documents.PhaseDetail(
            commit=phase.commit, error=phase.reason if phase.status == "failed" else ""
        )
        for phase in shown
    }
    for item in happened(project.ledger, plan, since):
        if item.kind not in SHOWN:
            continue
        event = item.event
        step = getattr(event, "step", "")
        if step in found:
            found[step] = msgspec.structs.replace(found[step], **_told(event))
    return found


def _told(event: events.Event) -> dict[str, object]:
    """What one fact says of its phase; a new attempt begins with nothing."""
    match event:
        case events.StepStarted():
            return {"modified": (), "evidence": ""}
        case events.PatchProposed(files=files):
            return {"modified": files}
        case events.VerifyOk(evidence=seen) | events.VerifyFailed(evidence=seen):
            return {"evidence": f"{seen.outcome.value}: {seen.reason} (tree {seen.tree[:12]})"}
        case events.AuditRecorded(verdict=verdict, decision_reason=reason):
            return {"evidence": f"audit: {verdict}; {reason}"}
    return {}


def _file(project: Project, plan: PlanRow) -> Path:
    return project.root / plans.phases_path(plan)


def _sealed(text: str) -> str:
    return f"{text}{SEALED.format(hash=address(text.encode())[:16])}\n"


def _put_aside(path: Path) -> None:
    """Keep what somebody made of the file, under a name of its own."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    except IsADirectoryError:
        content = os.urandom(8)  # there may be others that were put aside
    if not _is_ours(content):
        path.rename(path.with_name(f"{path.stem}.edited-{address(content)[:8]}.md"))


def _is_ours(content: bytes) -> bool:
    """Whether a file is as it was written, and nobody has touched it since."""
    body, _, _ = content.rstrip(b"\n").rpartition(b"\n")
    return content == _sealed((body + b"\n").decode("utf-8", "replace")).encode()


def edited(project: Project, plan: PlanRow) -> tuple[str, ...]:
    """In what a file that somebody has changed differs from the ledger, in words."""
    path, made = _file(project, plan), phase_views.made_last(project, plan.plan)
    try:
        content = read_regular(path)
    except FileNotFoundError:
        return (f"`{path.name}` is gone; it is written again with the next change",)
    except OSError as error:
        return (f"`{path.name}` cannot be read: {error.strerror}",)
    if _is_ours(content):
        return ()
    said = SEAL.sub("", content.decode("utf-8", "replace"))
    return documents.differences(said, _rendered(project, plan, made)) if made else ()
