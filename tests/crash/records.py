"""
What a story leaves, so that two tellings of it can be compared.

Because the clock of these stories stands still, commits, fingerprints and objects have the same hashes in
each of them, and are compared as they are. Left out is what cannot be the same, and nothing else; see
`OMITTED`, `LEFT_OUT` and `AGAIN`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import msgspec

from planforge.app.project import Project
from planforge.kernel.events import Payload, Recorded
from planforge.kernel.ledger import Ledger
from planforge.kernel.payloads import unpack
from repositories import git


class Record(NamedTuple):
    """All that can be compared of what was left."""

    refs: tuple[str, ...]
    documents: tuple[tuple[str, str], ...]
    events: dict[str, list[str]]
    """By stream; within one, in order."""


def record(root: Path) -> Record:
    """What was left in a repository."""
    plans = root / "docs" / "plans"
    documents = tuple((path.name, path.read_text()) for path in sorted(plans.glob("*.md")))
    refs = git(root, "for-each-ref", "--format=%(refname) %(objectname) %(tree) %(contents:subject)")
    ledger = Project(root).ledger
    try:
        streams: dict[str, list[str]] = {}
        for item in ledger.since():
            streams.setdefault(item.stream, []).append(shown(ledger, item))
    finally:
        ledger.close()
    return Record(tuple(refs.splitlines()), documents, streams)


def shown(ledger: Ledger, item: Recorded) -> str:
    """An event in a line."""
    body = json.loads(msgspec.json.encode(item.event))
    for name in item.event.__struct_fields__:
        value = getattr(item.event, name)
        if isinstance(value, Payload):
            body[name] = json.loads(unpack(ledger, value))
    return f"{item.key} {type(item.event).__name__} {json.dumps(body, sort_keys=True)}"
