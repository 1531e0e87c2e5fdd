"""
What a story leaves, so that two tellings of it can be compared.

Because the clock of these stories stands still, commits, fingerprints and objects have the same hashes in
each of them, and are compared as they are. Left out is what cannot be the same, and nothing else; all of it
is listed here with the reason: `LEFT_OUT`, `MASKED`, `NAMED`, `_again` and `_more`.

Two phases at once record their events in whatever order they get to it. So events are compared in order
within each path of a flow, each reservation and each lease holder, and not across them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from planforge.app.project import Project
from planforge.kernel.events import (
    BudgetReconciled,
    BudgetReserved,
    DriverStarted,
    Event,
    LeaseGranted,
    LeaseReleased,
    LeaseRenewed,
    Payload,
    Recorded,
)
from planforge.kernel.ledger import Ledger
from planforge.kernel.payloads import unpack
from repositories import git

LEFT_OUT = {
    DriverStarted: "each process that takes a run says so, with its number: whoever resumes is one more",
    LeaseRenewed: "a lease is renewed by the clock of the machine, however far the work is",
}
"""Events that are there or not there for no other reason than that a process was there."""

MASKED = {
    "seconds": "how long something took",
    "time_cost_ms": "the same",
    "fence": "fences rise with each lease that anybody gets, so they depend on who came first",
    "new_fence": "the same",
    "reused": "a check that was done, and whose process then died, is found done and not made again",
    "fingerprint": "of an effect: the hash of its body, which is compared itself, with the fence in it",
}
"""Fields whose values are not compared, wherever they are."""

NAMED = {"token": "an approval's token is drawn by lot; it is compared which approval is meant, by number"}
"""Fields whose values are names that nobody chose: they are numbered in the order they are met."""


AGAIN = re.compile(r"#\d+$")
"""How a reservation is called that is made once more for the same call."""


class Record(NamedTuple):
    """All that can be compared of what was left."""

    refs: dict[str, str]
    documents: dict[str, str]
    left: dict[str, str]
    """Files that were left in the checkout, and worktrees, homes and processes that were left behind."""
    events: dict[str, list[str]]
    """By stream and path; within one, in order."""


def record(root: Path) -> Record:
    """What was left in a repository."""
    documents = {path.name: path.read_text() for path in sorted((root / "docs" / "plans").glob("*"))}
    refs = git(root, "for-each-ref", "--format=%(refname) %(objectname) %(tree) %(contents:subject)")
    ledger = Project(root).ledger
    try:
        named = dict(line.split(" ", 1) for line in refs.splitlines())
        return Record(named, documents, left(root), events(ledger))
    finally:
        ledger.close()


def left(root: Path) -> dict[str, str]:
    """What lies around, in the person's checkout and in the places where work is done."""
    found = {"the checkout": git(root, "status", "--porcelain"), "git": git(root, "worktree", "list")}
    for name in ("homes", "processes", "worktrees"):
        found[name] = "\n".join(sorted(path.name for path in (root / ".planforge" / name).glob("*")))
    return found


def events(ledger: Ledger) -> dict[str, list[str]]:
    """What is on record, as it is compared."""
    names: dict[str, str] = {}
    found: dict[str, list[Recorded]] = {}
    for item in ledger.since():
        if type(item.event) not in LEFT_OUT:
            found.setdefault(_path(item), []).append(item)
    return {path: [shown(ledger, item, names) for item in _again(items)] for path, items in found.items()}


def _path(item: Recorded) -> str:
    """Within which order the event has its place."""
    event: Any = item.event
    among = "" if item.key else getattr(event, "reservation", "") or getattr(event, "holder", "")
    among = AGAIN.sub("", among)
    return " ".join(filter(None, (item.stream, item.key.rpartition("/")[0], among)))


def _again(items: list[Recorded]) -> Iterator[Recorded]:
    """
    Without what a repeated try says once more: a call that was under way when its process died is made
    again, so what it may cost is put aside again, and what the first may have cost is counted. A lease that
    a dead process had is taken over under a new fence, so that nothing lands under the old one.
    """
    kept: list[Recorded] = []
    merged = {fence for item in items if (fence := _merged(item.event))}
    for item in items:
        event = item.event
        if _merged(event) or (isinstance(event, LeaseGranted) and event.fence in merged):
            continue
        if isinstance(item.event, BudgetReserved | BudgetReconciled):
            # Of each kind the last: that of the try which came to something.
            kept = [other for other in kept if type(other.event) is not type(item.event)]
        kept.append(item)
    yield from kept


def _merged(event: Event) -> int:
    """The fence of a lease that went into another one of its holder."""
    given_up = isinstance(event, LeaseReleased) and event.reason.startswith("merged into the lease")
    return event.fence if isinstance(event, LeaseReleased) and given_up else 0


def shown(ledger: Ledger, item: Recorded, names: dict[str, str]) -> str:
    """An event in a line."""
    body = json.loads(msgspec.json.encode(item.event))
    for name in item.event.__struct_fields__:
        value = getattr(item.event, name)
        if isinstance(value, Payload):
            body[name] = json.loads(unpack(ledger, value))
    masked = json.dumps(_masked(body, names), sort_keys=True)
    return f"{item.key} {type(item.event).__name__} {masked}".strip()


def _masked(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_masked(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, each in value.items():
        if name == "fingerprint" and '"fence"' not in json.dumps(value):
            found[name] = each
        elif name in NAMED and each:
            found[name] = names.setdefault(each, f"{name} {len(names) + 1}")
        elif name == "reservation":
            found[name] = AGAIN.sub("", each)
        else:
            found[name] = "…" if name in MASKED else _masked(each, names)
    return found


def differences(whole: Record, other: Record) -> list[str]:
    """In what a telling differs from the one that was not cut, in words; nothing if they are the same."""
    return [
        *_compared("ref", whole.refs, _less(whole.refs, other.refs)),
        *_compared("file", whole.documents, other.documents),
        *_compared("left in", whole.left, other.left),
        *_compared("events of", whole.events, other.events),
    ]


KEPT = re.compile(r"refs/planforge/archive/run-\d+/.+")


def _less(whole: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """
    Without what is kept of an agent that was interrupted: nothing of a worktree is ever lost, so what it had
    half done is archived beside what the next one did.
    """
    return {name: value for name, value in other.items() if name in whole or not KEPT.fullmatch(name)}


def _compared(what: str, whole: Mapping[str, object], other: Mapping[str, object]) -> Iterator[str]:
    for name in [*whole, *(name for name in other if name not in whole)]:
        was, became = whole.get(name), other.get(name)
        if was != became:
            yield f"{what} `{name}`: {_apart(was, became)}"


def _apart(was: object, became: object) -> str:
    """Where two things part, so that it can be read."""
    if not isinstance(was, list) or not isinstance(became, list):
        return f"\n    - {was}\n    + {became}"
    missing = [f"\n    - {line}" for line in was if line not in became]
    more = [f"\n    + {line}" for line in became if line not in was]
    return "".join(missing + more) or " in another order, or another number of times"
