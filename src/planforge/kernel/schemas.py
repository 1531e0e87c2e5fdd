"""
The JSON Schema of every fact and of every document that others read.

Each schema stands alone: what it refers to is in its own `$defs`. It describes
today's shape of a fact, which is what readers get whatever revision was written.
"""

from __future__ import annotations

from importlib import import_module
from inspect import cleandoc
from typing import Any

import msgspec

from planforge.kernel.events import EVENTS, Event, Payload, Recorded
from planforge.kernel.filters import named
from planforge.kernel.ledger.upcasts import revision

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

DOCUMENTS = {
    "Evidence": "planforge.kernel.evidence",
    "StepScore": "planforge.kernel.scores",
    "GraphQuery": "planforge.kernel.graph.queries",
    "QueryResult": "planforge.kernel.graph.queries",
    "HandoffSummary": "planforge.kernel.handoff",
}
"""What is not a fact but is handed out, and the module that has it."""

UNIONS = {
    "GraphQuery": "A question to the plan graph; `query` says which.",
    "QueryResult": "What the plan graph answers; `answer` says of which kind.",
}
"""Documents that are one of several structures, which have no description of their own."""


_Payload = msgspec.defstruct(
    Payload.__name__,
    [("inline", Any, None), ("object", str | None, None)],
    namespace={"__doc__": Payload.__doc__},
)
"""What a payload amounts to. The generator of schemas cannot write down the default that the real one has."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What there is a schema of."""

    name: str
    revision: int
    description: str


def names() -> tuple[str, ...]:
    """Everything that has a schema: the facts, a line of the log, the documents."""
    return (*EVENTS, Recorded.__name__, *DOCUMENTS)


def schema(name: str) -> Schema:
    """The schema of what is called so; `PLAN_CREATED` is `ItemOpened`."""
    known = named(name, names(), "schema")
    if known == Recorded.__name__:
        return _recorded()
    if known in EVENTS:
        return _alone(known, _shape(EVENTS[known]), "event", revision(known))
    return _alone(known, getattr(import_module(DOCUMENTS[known]), known), "document", 1)


def every() -> dict[str, Schema]:
    """All of them."""
    return {name: schema(name) for name in names()}


def summaries() -> tuple[Summary, ...]:
    """All of them in short."""
    return tuple(
        Summary(
            name=found["title"], revision=found["revision"], description=found["description"].splitlines()[0]
        )
        for found in every().values()
    )


def _shape(event: type[Event]) -> type[msgspec.Struct]:
    """The event, or its like with a payload that can be described."""
    fields = msgspec.structs.fields(event)
    if all(field.type is not Payload for field in fields):
        return event
    described = [
        (field.name, _Payload) if field.type is Payload else (field.name, field.type, _default(field))
        for field in fields
    ]
    return msgspec.defstruct(event.__name__, described, kw_only=True, namespace={"__doc__": event.__doc__})


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.field(default=field.default)


def _alone(name: str, shape: Any, what: str, number: int) -> Schema:
    """A schema with all that it refers to."""
    (own,), parts = _components([shape])
    body = own
    if "$ref" in own:
        body = parts[own["$ref"].rpartition("/")[2]]
        parts = _referred(body, parts)
    described = {"title": name, "description": UNIONS.get(name) or cleandoc(shape.__doc__)}
    body = {key: value for key, value in body.items() if key not in described}
    head = {"$schema": DIALECT, "$id": f"urn:planforge:{what}:{name}:{number}", "revision": number}
    return head | described | body | ({"$defs": parts} if parts else {})


def _components(shapes: list[Any]) -> tuple[list[Schema], dict[str, Schema]]:
    found, parts = msgspec.json.schema_components(shapes, ref_template="#/$defs/{name}")
    return list(found), parts


def _referred(body: Schema, parts: dict[str, Schema]) -> dict[str, Schema]:
    """The parts that a schema needs, directly or not."""
    needed: dict[str, Schema] = {}
    left = [body]
    while left:
        for name in _references(left.pop()):
            if name not in needed:
                needed[name] = parts[name]
                left.append(parts[name])
    return dict(sorted(needed.items()))


def _references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for part in value for name in _references(part)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"].rpartition("/")[2]] if isinstance(value.get("$ref"), str) else []
    return own + [name for part in value.values() for name in _references(part)]


def _recorded() -> Schema:
    """A line of `planforge log --json`: what the ledger says of an event, with the event of that kind."""
    _, parts = _components([_shape(event) for event in EVENTS.values()])
    texts = {name: {"type": "string"} for name in ("at", "stream", "key", "hash")}
    numbers = {name: {"type": "integer", "minimum": 1} for name in ("seq", "version")}
    properties = numbers | texts | {"kind": {"enum": sorted(EVENTS)}, "event": {"type": "object"}}
    kinds = [
        {"properties": {"kind": {"const": name}, "event": {"$ref": f"#/$defs/{name}"}}} for name in EVENTS
    ]
    return {
        "$schema": DIALECT,
        "$id": "urn:planforge:log:Recorded:1",
        "revision": 1,
        "title": Recorded.__name__,
        "description": cleandoc(Recorded.__doc__ or ""),
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "oneOf": kinds,
        "$defs": parts,
    }
