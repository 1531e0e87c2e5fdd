"""The schemas say what is printed, and no more: checked with a small validator of the keywords they use."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.histories import EXAMPLES, FAILED, PASSED
from kernel.ledger_contract import tell
from planforge.errors import InvalidInput
from planforge.interfaces.cli.typed import text
from planforge.kernel import schemas
from planforge.kernel.events import EVENTS
from planforge.kernel.graph.answers import run_query
from planforge.kernel.graph.queries import Blocked, NextSteps
from planforge.kernel.ledger import Ledger
from planforge.kernel.ledger.upcasts import revision
from planforge.kernel.scores import score

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}

ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description", "revision", "default", "discriminator"}


class Validator:
    """As much of JSON Schema as is used here; a keyword that it does not know is an error."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root

    def problems(self, value: Any, schema: dict[str, Any] | None = None, at: str = "") -> list[str]:
        own = self._root if schema is None else schema
        found = []
        for keyword, wanted in own.items():
            if keyword not in ANNOTATIONS:
                found += getattr(self, f"_{keyword.lstrip('$')}")(wanted, value, at, own)
        return found

    def _ref(self, wanted: str, value: Any, at: str, own: dict[str, Any]) -> list[str]:
        assert wanted.startswith("#/$defs/")
        return self.problems(value, self._root["$defs"][wanted.rpartition("/")[2]], at)

    def _type(self, wanted: str, value: Any, at: str, own: dict[str, Any]) -> list[str]:
        fits = isinstance(value, TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
        return [] if fits else [f"{at}: not of type {wanted}"]

    def _properties(self, wanted: dict[str, Any], value: Any, at: str, own: dict[str, Any]) -> list[str]:
        if not isinstance(value, dict):
            return []
        return [
            problem
            for name, schema in wanted.items()
            if name in value
            for problem in self.problems(value[name], schema, f"{at}/{name}")
        ]

    def _required(self, wanted: list[str], value: Any, at: str, own: dict[str, Any]) -> list[str]:
        return [f"{at}: no {name}" for name in wanted if isinstance(value, dict) and name not in value]

    def _additionalProperties(  # noqa: N802
        self, wanted: bool | dict[str, Any], value: Any, at: str, own: dict[str, Any]
    ) -> list[str]:
        if isinstance(wanted, dict):
            assert "properties" not in own
            held = value.items() if isinstance(value, dict) else ()
            return [problem for name, item in held for problem in self.problems(item, wanted, f"{at}/{name}")]
        assert wanted is False
        return [f"{at}: unexpected {name}" for name in dict(value) if name not in own["properties"]]

    def _items(self, wanted: dict[str, Any], value: Any, at: str, own: dict[str, Any]) -> list[str]:
        return [
            problem
            for number, item in enumerate(value if isinstance(value, list) else ())
            for problem in self.problems(item, wanted, f"{at}/{number}")
        ]

    def _enum(self, wanted: list[Any], value: Any, at: str, own: dict[str, Any]) -> list[str]:
        return [] if value in wanted else [f"{at}: not one of {wanted}"]

    def _const(self, wanted: Any, value: Any, at: str, own: dict[str, Any]) -> list[str]:
        return [] if value == wanted else [f"{at}: not {wanted}"]

    def _minimum(self, wanted: int, value: Any, at: str, own: dict[str, Any]) -> list[str]:
        return [] if value >= wanted else [f"{at}: less than {wanted}"]

    def _maximum(self, wanted: int, value: Any, at: str, own: dict[str, Any]) -> list[str]:
        return [] if value <= wanted else [f"{at}: more than {wanted}"]

    def _anyOf(self, wanted: list[dict[str, Any]], value: Any, at: str, own: dict[str, Any]) -> list[str]:  # noqa: N802
        return [] if self._fitting(wanted, value, at) else [f"{at}: fits none"]

    def _oneOf(self, wanted: list[dict[str, Any]], value: Any, at: str, own: dict[str, Any]) -> list[str]:  # noqa: N802
        fitting = self._fitting(wanted, value, at)
        return [] if fitting == 1 else [f"{at}: fits {fitting} of those it must fit one of"]

    def _fitting(self, wanted: list[dict[str, Any]], value: Any, at: str) -> int:
        return sum(not self.problems(value, schema, at) for schema in wanted)


def problems(name: str, value: object) -> list[str]:
    return Validator(schemas.schema(name)).problems(json.loads(msgspec.json.encode(value)))


def test_every_event_and_document_has_a_schema_that_stands_alone() -> None:
    every = schemas.every()
    assert set(EVENTS) < set(every)
    assert {"Recorded", "GraphQuery", "QueryResult", "HandoffSummary"} < set(every)
    identities = {found["$id"] for found in every.values()}
    assert len(identities) == len(every)
    for name, found in every.items():
        assert found["title"] == name
        assert found["$schema"] == schemas.DIALECT
        assert found["$id"].endswith(f":{name}:{found['revision']}")
        assert found["description"]
        references = set(schemas._references(found))
        assert references == set(found.get("$defs", {})) or name == "Recorded"


@pytest.mark.parametrize("kind", EVENTS)
def test_every_example_is_valid_and_spoilt_ones_are_not(kind: str) -> None:
    event = EXAMPLES[kind]
    assert problems(kind, event) == []
    fields = json.loads(msgspec.json.encode(event))
    for field in msgspec.structs.fields(event):
        if field.required:
            rest = {name: value for name, value in fields.items() if name != field.name}
            assert problems(kind, rest) == [f": no {field.name}"]
        assert problems(kind, fields | {field.name: [{}]}) != []


def test_the_revision_is_the_one_that_is_written_today() -> None:
    for kind in EVENTS:
        assert schemas.schema(kind)["revision"] == revision(kind)


def test_a_line_of_the_log_is_valid_only_with_the_event_of_its_kind(ledger: Ledger) -> None:
    (recorded, *_) = tell(ledger)
    line: dict[str, Any] = {
        "seq": recorded.seq,
        "at": recorded.at,
        "stream": recorded.stream,
        "version": recorded.version,
        "key": recorded.key,
        "kind": recorded.kind,
        "event": recorded.event,
        "hash": recorded.hash,
    }
    assert problems("Recorded", line) == []
    for spoilt in ({"kind": "ItemOpened"}, {"kind": "MoonRose"}, {"seq": 0}, {"event": None}, {"at": 5}):
        assert problems("Recorded", line | spoilt) != []


def test_documents_are_described_as_they_are_printed(ledger: Ledger) -> None:
    tell(ledger)
    for query in (NextSteps(plan="plan-001"), Blocked(step="plan-001.r2/phase-3")):
        assert problems("GraphQuery", query) == []
        assert problems("QueryResult", run_query(ledger, query)) == []
    assert problems("GraphQuery", {"query": "nonsense"}) != []
    for evidence in (PASSED, FAILED):
        assert problems("Evidence", evidence) == []
        assert problems("StepScore", score(evidence, 12)) == []


def test_a_schema_is_found_by_any_spelling_and_an_unknown_one_is_refused() -> None:
    assert schemas.schema("PLAN_CREATED")["title"] == "ItemOpened"
    with pytest.raises(InvalidInput, match="there is no schema `ItemOpene`") as refused:
        schemas.schema("ItemOpene")
    assert "`ItemOpened`" in text(refused.value.hint)


def test_the_list_names_all() -> None:
    listed = schemas.summaries()
    assert tuple(item.name for item in listed) == schemas.names()
    assert all(item.description and "\n" not in item.description for item in listed)


def test_the_page_about_events_names_every_kind_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "events.md").read_text()
    assert set(re.findall(r"`((?:[A-Z][a-z]+){2,})`", page)) == set(EVENTS)
