"""Looking up revisions, steps and what happened to them, by their nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from planforge.actions import Action, Advice, see
from planforge.errors import NotFound, Superseded
from planforge.kernel.events import Event, StepCompleted, VerifyFailed, VerifyOk
from planforge.kernel.evidence import Evidence
from planforge.kernel.graph.queries import Moment, RiskView, StepView
from planforge.kernel.ledger import Ledger
from planforge.kernel.scores import StepScore

Kind = TypeVar("Kind", bound=Event)

REVISION = re.compile(r"(?P<plan>.+?)(?:\.r(?P<number>[1-9][0-9]{0,9}))?")

FIRST = re.compile(r"^(?P<plan>[^:/!]+)\.r1(?=$|[/!])")

STEPS = "(SELECT *, '[]' AS depends_on FROM steps) AS steps"
"""The table has no column for what a step depends on; the edges have it."""
SHOWN = 8
"""How many steps a hint names."""


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of a plan."""

    plan: str
    revision: int
    node: str
    reason: str
    seq: int
    """The event that gave it its steps."""


def revisions(ledger: Ledger, plan: str) -> list[Revision]:
    """All revisions of a plan, oldest first."""
    return ledger.select(Revision, "revisions WHERE plan = ? ORDER BY revision", plan)


def revision(ledger: Ledger, name: str, *, exact: bool = False) -> Revision:
    """The revision that `name` means. A bare plan is its newest, or, as an exact node, its first."""
    found = REVISION.fullmatch(name)
    plan, number = (found["plan"], found["number"]) if found else (name, None)
    known = revisions(ledger, plan)
    if not known:
        raise NotFound(f"there is no plan `{plan}` in the graph", see("plan list"))
    if number is None:
        return known[0 if exact else -1]
    if int(number) > len(known):
        raise NotFound(f"`{plan}` has no revision {number}", f"its newest is `{known[-1].node}`")
    return known[int(number) - 1]


def newest(ledger: Ledger, plan: str) -> str:
    """The node of a plan's newest revision."""
    return revision(ledger, plain(plan)).node


def plain(node: str) -> str:
    """A plan's id without the number of a revision."""
    found = REVISION.fullmatch(node)
    return found["plan"] if found else node


def names(step: str) -> tuple[str, str]:
    """The plan's plain id and the step's name in the plan, from a step's node."""
    node, _, name = step.rpartition("/")
    return plain(node), name


def exact(node: str) -> str:
    """A node as the tables have it: the first revision may also be written with its number."""
    return FIRST.sub(r"\g<plan>", node)


def find(ledger: Ledger, step: str) -> StepView:
    """One step, by its exact node."""
    for view in views(ledger, "WHERE node = ?", exact(step)):
        return view
    plan, name = names(step)
    if not plan or not revisions(ledger, plan):
        raise NotFound(
            f"there is no step `{step}`", Advice("write it like `plan-001/phase-1`; see {}", Action("graph"))
        )
    known = [name for (name,) in ledger.query(IN_ORDER, plan, plan, SHOWN + 1)]
    listed = ", ".join(f"`{step}`" for step in known[:SHOWN]) + (", …" if len(known) > SHOWN else "")
    raise NotFound(
        f"`{plan}` has no step `{name}`",
        Advice("it has {}; see {}", listed, Action("graph", plan)) if known else see("graph", plan),
    )


IN_ORDER = """
SELECT step FROM steps WHERE plan = ? AND revision = (SELECT max(revision) FROM revisions WHERE plan = ?)
ORDER BY ordinal LIMIT ?
"""


def current(ledger: Ledger, step: str) -> StepView:
    """One step, if its revision is the newest of its plan."""
    view = find(ledger, step)
    if later := superseded_by(ledger, view.plan, view.revision):
        raise Superseded(
            f"`{step}` belongs to a revision that was superseded", f"the plan goes on as `{later}`"
        )
    return view


def superseded_by(ledger: Ledger, plan: str, number: int) -> str:
    """The newest revision of the plan; empty if that is the one with this number."""
    statement = "SELECT node, revision FROM revisions WHERE plan = ? ORDER BY revision DESC LIMIT 1"
    for node, revision in ledger.query(statement, plan):
        return str(node) if revision > number else ""
    return ""


def views(ledger: Ledger, where: str, *values: str | int) -> list[StepView]:
    """Steps from the table."""
    return ledger.select(StepView, f"{STEPS} {where}", *values)


def risks(ledger: Ledger, where: str, *values: str | int) -> list[RiskView]:
    """Risks from the table."""
    return ledger.select(RiskView, f"risks {where}", *values)


def happened(ledger: Ledger, node: str, after: int = 0, limit: int = -1) -> list[Moment]:
    """The events of a plan, by its plain id, or of a step, by its node, in order."""
    rest = "history JOIN events USING (seq) WHERE node = ? AND seq > ? ORDER BY history.seq LIMIT ?"
    return ledger.select(Moment, rest, node, after, limit)


def facts(ledger: Ledger, node: str, kind: type[Kind]) -> Iterator[Kind]:
    """The events of one kind that happened to a plan or a step, in order."""
    for moment in happened(ledger, node):
        if moment.kind == kind.__name__ and isinstance(event := moment.event, kind):
            yield event


def event_at(ledger: Ledger, seq: int) -> Event:
    """One event by its number."""
    (recorded,) = ledger.since(seq - 1, 1)
    return recorded.event


def score_of(ledger: Ledger, step: str) -> StepScore | None:
    """The recorded score of a step; None if it is not done or was not scored."""
    completed = find(ledger, step).completed
    if completed is None:
        return None
    event = event_at(ledger, completed)
    return event.score if isinstance(event, StepCompleted) else None


def evidence_of(ledger: Ledger, step: str, attempt: int) -> list[Evidence]:
    """What our checks saw of one attempt, oldest first."""
    events = (item.event for item in happened(ledger, exact(step)))
    return [
        event.evidence
        for event in events
        if isinstance(event, VerifyOk | VerifyFailed) and event.attempt == attempt
    ]
