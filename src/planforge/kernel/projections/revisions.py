"""
Revisions of plans, and the rows of their steps.

A plan that changes gets a new revision with rows of its own; the rows of the one
before stay as they were. How many things a step waits for is counted here once,
when its row is made, and from then on goes up and down with the events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from planforge.kernel.events import PlannedRisk, PlannedStep
from planforge.kernel.objects import address
from planforge.kernel.work.items import Query

TABLES = """
CREATE TABLE nodes(
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, plan TEXT NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL,
  seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE edges(
  kind TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL, hash TEXT NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY(source, kind, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_by_target ON edges(target, kind);
CREATE TABLE revisions(
  plan TEXT NOT NULL, revision INTEGER NOT NULL, node TEXT NOT NULL, planned TEXT NOT NULL,
  content TEXT NOT NULL, reason TEXT NOT NULL, unfinished INTEGER NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY(plan, revision)
) STRICT, WITHOUT ROWID;
CREATE INDEX revisions_by_node ON revisions(node);
CREATE TABLE steps(
  node TEXT PRIMARY KEY, plan TEXT NOT NULL, revision INTEGER NOT NULL, ordinal INTEGER NOT NULL,
  step TEXT NOT NULL, title TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL,
  attempts INTEGER NOT NULL, landed TEXT NOT NULL, score INTEGER, reason TEXT NOT NULL,
  weight INTEGER NOT NULL, waiting INTEGER NOT NULL, content TEXT NOT NULL, files TEXT NOT NULL,
  holder TEXT, verified INTEGER, completed INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX steps_in_order ON steps(plan, revision, ordinal);
CREATE INDEX steps_that_are_ready ON steps(plan, revision, ordinal) WHERE status = 'pending' AND waiting = 0;
CREATE TABLE risks(
  node TEXT PRIMARY KEY, revision TEXT NOT NULL, risk TEXT NOT NULL, description TEXT NOT NULL,
  severity TEXT NOT NULL, open INTEGER NOT NULL, reason TEXT NOT NULL, actor TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX risks_by_revision ON risks(revision);
CREATE TABLE gates(
  node TEXT NOT NULL, gate TEXT NOT NULL, open INTEGER NOT NULL, actor TEXT NOT NULL, PRIMARY KEY(node, gate)
) STRICT, WITHOUT ROWID;
"""

NAMES = ("nodes", "edges", "revisions", "steps", "risks", "gates")

_encode = msgspec.json.Encoder(order="deterministic").encode


class Revision(NamedTuple):
    """One revision of a plan."""

    plan: str
    node: str
    number: int
    planned: str
    """The hash of its steps; empty until they are known."""
    content: str
    """The content of the plan file that it was begun with; empty if there is none."""


class Kept(NamedTuple):
    """A step that need not be done again: how it stands, and its name in the revision before."""

    status: str
    was: str


MET = ("done", "skipped")
"""The statuses of a step that nothing waits for any more."""


class _Before(NamedTuple):
    """How far a step of the former revision had come."""

    content: str
    attempts: int
    landed: str
    score: int | None
    verified: int | None
    completed: int | None


_NOTHING = _Before("", 0, "", None, None, None)


def content_of(step: PlannedStep) -> str:
    """The hash that an opened gate is bound to."""
    return address(_encode(step))


def planned_hash(steps: Sequence[PlannedStep]) -> str:
    """The hash of all steps of a revision."""
    return address(_encode(steps))


def newest(db: apsw.Connection, plan: str) -> Revision | None:
    """The newest revision of a plan; None if nothing is known of the plan."""
    columns = "plan, node, revision, planned, content"
    statement = f"SELECT {columns} FROM revisions WHERE plan = ? ORDER BY revision DESC LIMIT 1"  # noqa: S608
    found = rows(db, statement, plan)
    return Revision(*found[0]) if found else None


def rows(db: apsw.Connection, statement: str, *values: str | int) -> list[Any]:
    """All rows at once: a statement that is still read from would be in the way of the next write."""
    return db.execute(statement, values).fetchall()


def open_unplanned(db: apsw.Connection, plan: str, seq: int) -> None:
    """The first revision of a plan whose steps are not known yet."""
    _insert_revision(db, Revision(plan, plan, 1, "", ""), "", 0, seq)


def add(
    db: apsw.Connection,
    plan: str,
    former: Revision | None,
    steps: Sequence[PlannedStep],
    seq: int,
    *,
    risks: Sequence[PlannedRisk] = (),
    kept: Collection[str] | Mapping[str, Kept] = (),
    content: str = "",
    reason: str = "",
) -> None:
    """
    The first steps of a plan, or the revision that supersedes the former one.

    Its number is counted and not read from the event, so that no event can write over a revision.
    """
    number = former.number + 1 if former else 1
    name = f"{plan}.r{number}" if former else plan
    revision = Revision(plan, name, number, planned_hash(steps), content)
    if former is None:  # it may be there already, without steps
        db.execute("DELETE FROM revisions WHERE plan = ? AND revision = 1", (plan,))
    _insert(db, revision, former, steps, _kept(kept), reason, seq)
    for risk in risks:
        raise_risk(db, revision, risk, seq)
    if former is not None:
        edge(db, "PLAN_SUPERSEDES", revision.node, former.node, seq)


def _kept(kept: Collection[str] | Mapping[str, Kept]) -> Mapping[str, Kept]:
    """Names alone are steps that are done and are called what they were called; nothing else can be kept."""
    if isinstance(kept, Mapping):
        return {name: step for name, step in kept.items() if step.status in MET}
    return {name: Kept("done", name) for name in kept}


def open_risks(query: Query, revision: str, steps: Iterable[PlannedStep]) -> list[PlannedRisk]:
    """The open risks of a revision, as far as they concern `steps`: a new plan does not settle them."""
    known = {step.step for step in steps}
    raised = "SELECT node, risk, description, severity FROM risks WHERE revision = ? AND open ORDER BY risk"
    blocked = "SELECT source FROM edges WHERE target = ? AND kind = 'STEP_BLOCKED_BY' ORDER BY source"
    start = len(revision) + 1
    risks = []
    for node, risk, description, severity in query(raised, revision):
        blocks = tuple(name[start:] for (name,) in query(blocked, node) if name[start:] in known)
        risks.append(PlannedRisk(risk=risk, description=description, severity=severity, blocks=blocks))
    return risks


def node(db: apsw.Connection, name: str, kind: str, plan: str, shown: str, content: str, seq: int) -> None:
    """A node, unless it is there: nothing of a node ever changes."""
    values = (name, kind, plan, shown, content, seq)
    db.execute("INSERT OR IGNORE INTO nodes VALUES (?, ?, ?, ?, ?, ?)", values)


def edge(
    db: apsw.Connection, kind: str, source: str, target: str, seq: int, *, content: str | None = None
) -> None:
    """An edge, unless it is there; if the content at its end is known, the newest."""
    statement = "INSERT INTO edges VALUES (?, ?, ?, ?, ?) ON CONFLICT(source, kind, target)"
    change = "DO NOTHING" if content is None else "DO UPDATE SET hash = excluded.hash, seq = excluded.seq"
    db.execute(f"{statement} {change}", (kind, source, target, content or "", seq))


def raise_risk(db: apsw.Connection, revision: Revision, risk: PlannedRisk, seq: int) -> None:
    """A risk of a revision, unless it is there: the steps it blocks wait for one thing more."""
    name = f"{revision.node}!{risk.risk}"
    values = (name, revision.node, risk.risk, risk.description, risk.severity, 1, "", "")
    db.execute("INSERT OR IGNORE INTO risks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    if not db.changes():
        return
    node(db, name, "risk", revision.plan, risk.risk, "", seq)
    for step in dict.fromkeys(risk.blocks):
        source = f"{revision.node}/{step}"
        if rows(db, "SELECT 1 FROM steps WHERE node = ?", source):
            edge(db, "STEP_BLOCKED_BY", source, name, seq)
            db.execute("UPDATE steps SET waiting = waiting + 1 WHERE node = ?", (source,))


def _insert(
    db: apsw.Connection,
    revision: Revision,
    former: Revision | None,
    steps: Sequence[PlannedStep],
    kept: Mapping[str, Kept],
    reason: str,
    seq: int,
) -> None:
    unique = list({step.step: step for step in reversed(steps)}.values())[::-1]
    met = {step.step for step in unique}.intersection(kept)
    contents = {step.step: content_of(step) for step in unique}
    before = _before(db, former)
    gates = list(_gates(db, revision, former, unique, contents, before))
    closed = Counter(name for name, _, is_open, _ in gates if not is_open)

    def row(ordinal: int, step: PlannedStep) -> tuple[str | int | None, ...]:
        name = f"{revision.node}/{step.step}"
        found = kept.get(step.step)
        past = before.get(found.was, _NOTHING) if found else _NOTHING
        waiting = len(set(step.depends_on) - met) + closed[name]
        return (
            *(name, revision.plan, revision.number, ordinal, step.step, step.title, step.kind),
            *(
                found.status if found else "pending",
                past.attempts,
                past.landed,
                past.score,
                "",
                step.weight,
                waiting,
            ),
            *(contents[step.step], _encode(step.files).decode(), None, past.verified, past.completed),
        )

    _insert_revision(db, revision, reason, len(unique) - len(met), seq)
    insert = f"INSERT OR IGNORE INTO steps VALUES ({', '.join('?' * 19)})"  # noqa: S608  (a constant)
    db.executemany(insert, [row(ordinal, step) for ordinal, step in enumerate(unique)])
    db.executemany("INSERT OR IGNORE INTO gates VALUES (?, ?, ?, ?)", gates)
    _insert_graph(db, revision, unique, contents, seq)


def _gates(
    db: apsw.Connection,
    revision: Revision,
    former: Revision | None,
    steps: Iterable[PlannedStep],
    contents: Mapping[str, str],
    before: Mapping[str, _Before],
) -> Iterator[tuple[str, str, int, str]]:
    """The gates of a revision. One that was opened stays open if its step is planned exactly as it was."""
    statement = (
        "SELECT step, gate, actor FROM steps JOIN gates USING (node) WHERE plan = ? AND revision = ? AND open"
    )
    found = rows(db, statement, former.plan, former.number) if former else []
    opened = {
        (step, gate): actor for step, gate, actor in found if before[step].content == contents.get(step)
    }
    for step in steps:
        for gate in dict.fromkeys(step.gates):
            actor = opened.get((step.step, gate))
            yield f"{revision.node}/{step.step}", gate, int(actor is not None), actor or ""


def _insert_revision(db: apsw.Connection, revision: Revision, reason: str, unfinished: int, seq: int) -> None:
    plan = revision.plan
    values = (plan, revision.number, revision.node, revision.planned, revision.content, reason)
    db.execute("INSERT INTO revisions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*values, unfinished, seq))
    node(db, revision.node, "plan", plan, plan, revision.planned, seq)


def _insert_graph(
    db: apsw.Connection,
    revision: Revision,
    steps: Sequence[PlannedStep],
    contents: Mapping[str, str],
    seq: int,
) -> None:
    def name(step: str) -> str:
        return f"{revision.node}/{step}"

    nodes = [(name(step.step), "step", revision.plan, step.step, contents[step.step], seq) for step in steps]
    files = dict.fromkeys(path for step in steps for path in step.files)
    nodes += [(f"file:{path}", "file", "", path, "", seq) for path in files]
    edges = [("PLAN_HAS_STEP", revision.node, name(step.step), "", seq) for step in steps]
    for step in steps:
        edges += [("STEP_DEPENDS_ON", name(step.step), name(needed), "", seq) for needed in step.depends_on]
        edges += [("STEP_TOUCHES_FILE", name(step.step), f"file:{path}", "", seq) for path in step.files]
    db.executemany("INSERT OR IGNORE INTO nodes VALUES (?, ?, ?, ?, ?, ?)", nodes)
    db.executemany("INSERT OR IGNORE INTO edges VALUES (?, ?, ?, ?, ?)", edges)


def _before(db: apsw.Connection, former: Revision | None) -> dict[str, _Before]:
    if former is None:
        return {}
    columns = "step, content, attempts, landed, score, verified, completed"
    statement = f"SELECT {columns} FROM steps WHERE plan = ? AND revision = ?"  # noqa: S608  (constants)
    return {step: _Before(*rest) for step, *rest in db.execute(statement, (former.plan, former.number))}
