"""
What the read commands print, without click: loading it takes longer than the answer.

`look` puts these behind click commands; `quick` calls them straight.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from planforge.interfaces.cli.printing import as_document, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planforge.app.overview import Overview
    from planforge.app.project import Project


def here() -> Project:
    """The project that the current directory is in."""
    from planforge.app.project import Project

    return Project.find(Path.cwd())


def status(*, as_json: bool) -> Iterator[str]:
    """The state of the project."""
    from planforge.app.overview import overview

    found = overview(here())
    yield as_document(found) if as_json else _overview(found)


def _overview(found: Overview) -> str:
    parts = [f"{found.root}  ({found.events} events)"]
    runs = [(run.run, run.flow, run.subject, run.status, run.reason) for run in found.runs]
    if runs:
        parts.append("Runs\n" + table(runs, "  "))
    for item in found.plans:
        plan = item.plan
        place = f"  {plan.branch} at {plan.landed[:12]}" if plan.branch else ""
        steps = [
            (
                step.step,
                step.status,
                f"{step.attempts} attempt{'' if step.attempts == 1 else 's'}",
                f"score {'unknown' if step.score is None else step.score}"
                if step.kind == "implement"
                else "",
                step.title,
            )
            for step in item.steps
        ]
        parts.append(f"{plan.plan}  {plan.status}  {plan.title}{place}\n" + table(steps, "  "))
    parts.append("Next\n" + "\n".join(f"  {command}" for command in found.next))
    return "\n\n".join(part.rstrip() for part in parts)


def log(*, last: int, stream: str | None, as_json: bool) -> Iterator[str]:
    """The newest events, oldest first."""
    recorded = here().ledger.last(last if last > 0 else -1, stream)
    if as_json:
        import msgspec

        for item in recorded:
            body = {
                "seq": item.seq,
                "at": item.at,
                "stream": item.stream,
                "version": item.version,
                "key": item.key,
                "kind": item.kind,
                "event": item.event,
                "hash": item.hash,
            }
            yield msgspec.json.encode(body).decode()
        return
    from planforge.interfaces.cli.words import said

    rows = [(str(it.seq), it.at[11:19], it.stream, it.key, it.kind, said(it.event)) for it in recorded]
    yield table(rows) or "nothing has happened yet"
