from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from planforge.agents.forms import FORMS, schema
from planforge.errors import InvalidInput
from planforge.rules.verdicts import Verdict, parse_audit


def objects(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if found.get("type") == "object":
        yield found
        for inner in found["properties"].values():
            yield from objects(inner)
    elif found.get("type") == "array":
        yield from objects(found["items"])


@pytest.mark.parametrize("name", FORMS)
def test_every_form_keeps_to_what_all_vendors_take(name: str) -> None:
    found = list(objects(json.loads(schema(name))))
    assert found
    for each in found:
        assert each["required"] == list(each["properties"])
        assert each["additionalProperties"] is False


@pytest.mark.parametrize(("worst", "verdict"), [("none", Verdict.APPROVED), ("blocking", Verdict.REVISION)])
def test_what_is_said_in_the_form_of_an_audit_can_be_read_as_one(worst: str, verdict: Verdict) -> None:
    form = FORMS["audit"]["properties"]
    assert worst in form["maxSeverity"]["enum"]
    concern = dict.fromkeys(form["concerns"]["items"]["properties"], "x") | {"severity": worst}
    said = {"maxSeverity": worst, "summary": "s", "concerns": [] if worst == "none" else [concern]}
    assert parse_audit(json.dumps(said)).verdict is verdict


def test_no_form_is_no_schema_and_an_unknown_one_is_refused() -> None:
    assert schema("") == ""
    with pytest.raises(InvalidInput, match="`poem`; there are `audit`"):
        schema("poem")
