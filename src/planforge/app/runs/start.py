"""How a run begins: recorded with what it is asked, and driven by nobody yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from planforge.actions import Action, Advice
from planforge.app.runs import table
from planforge.errors import Conflict, Locked, RefusedByGate
from planforge.kernel.ledger import Write

if TYPE_CHECKING:
    import msgspec

    from planforge.app.project import Project
    from planforge.kernel.events import Event, ItemOpened, Payload, RunStarted

    Facts = Callable[[], Sequence[Event]]


def begin(
    project: Project,
    flow: str,
    subject: str,
    request: Callable[[str], msgspec.Struct],
    *also: ItemOpened,
    approved: Facts = tuple,
    alone: bool = False,
) -> str:
    """
    Record that a flow was asked for, with what it is about if that is new, and give the run its name.

    `approved` is the yes to what is new, made within the transaction. `alone` refuses it while another run is
    at the same.
    """
    # The list of runs is quick to load, and this is loaded with it.
    from planforge.kernel.events import RunStarted
    from planforge.kernel.objects import encode
    from planforge.kernel.payloads import pack
    from planforge.kernel.redaction import Redactor
    from planforge.workflows.flows import FLOWS

    redact = Redactor.of_environment()
    while True:
        (count,) = next(project.ledger.query("SELECT count(*) FROM runs"))
        run = f"run-{count + 1:03d}"
        body: Payload = pack(project.ledger, redact.json(encode(request(run))))
        started = RunStarted(
            run=run, flow=flow, flow_version=FLOWS[flow].version, subject=subject, request=body
        )
        created = [redact.struct(event) for event in also]
        try:
            _append(project, started, created, approved, alone=alone)
        except Conflict:
            if also and project.ledger.version(subject):
                raise
            continue  # another process took this number; the next one is ours
        return run


def _append(
    project: Project, begun: RunStarted, created: Sequence[Event], approved: Facts, *, alone: bool
) -> None:
    from planforge.workflows.flows import FLOWS

    def decide() -> list[Write]:
        if alone:
            require_free(project, begun.subject)
        if FLOWS[begun.flow].in_order:
            require_turn(project, begun.subject)
        opened = [Write(begun.subject, 0, [*created, *approved()])] if created else []
        return [Write(begun.run, 0, [begun]), *opened]

    project.ledger.transact(decide)


def require_turn(project: Project, item: str) -> None:
    """Refuse to carry out what comes after something that is not over."""
    from planforge.kernel.work.links import waits_for

    if names := waits_for(project.ledger, item):
        raise RefusedByGate(
            f"`{item}` comes after {' and '.join(f'`{name}`' for name in names)}, which has not landed",
            Advice(
                "carry that out and land it, or say that it need not wait: {}",
                Action("link", item, clear=True),
            ),
        )


def require_free(project: Project, subject: str) -> None:
    """Refuse to begin anything while a run is at the same, and say what can be done about that one."""
    from planforge.workflows.flows import end_of

    for row in table.rows(project, unfinished=True):
        if row.subject != subject:
            continue
        end = end_of(row.flow, row.run, subject)
        if row.status == "running":
            raise Locked(
                f"`{subject}` is being worked on by `{row.run}`",
                Advice("wait for it to end, or end it: {}", end),
            )
        raise RefusedByGate(
            f"`{subject}` has an unfinished run, `{row.run}` ({row.status})",
            Advice("go on with it: {}, or end it: {}", Action("resume", row.run), end),
        )
