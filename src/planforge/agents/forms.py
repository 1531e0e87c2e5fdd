"""
The forms an answer can have to have, as JSON Schema.

A role names a form; an agent that can be held to a schema is, the others are told in the prompt. The schemas
keep to what every vendor takes: each property is required and nothing else may be there.
"""

from __future__ import annotations

import json
from typing import Any

from planforge.errors import InvalidInput

SEVERITIES = ("blocking", "medium", "minor", "suggestion")


def _record(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _concerns(title: str, detail: str, location: str) -> dict[str, Any]:
    severity = _one_of(*SEVERITIES)
    return _list_of(
        _record(title=_text(title), severity=severity, detail=_text(detail), location=_text(location))
    )


FORMS: dict[str, dict[str, Any]] = {
    "audit": _record(
        maxSeverity=_one_of(*SEVERITIES, "none"),
        summary=_text("One or two sentences: what was looked at and what it comes to."),
        concerns=_concerns(
            title="What is wrong, in one sentence.",
            detail="The text or the code that shows it, and what would settle it.",
            location="The file and line, or the section of the plan; empty if there is none.",
        ),
    ),
    "tests": _record(
        summary=_text("What is covered now, and what is not."),
        written=_list_of(_text("The path of a test file that was written or changed.")),
        failures=_list_of(_record(test=_text("The test's name."), reason=_text("Why it fails, as seen."))),
    ),
    "acceptance": _record(
        maxSeverity=_one_of(*SEVERITIES, "none"),
        summary=_text("What the work as a whole comes to."),
        criteria=_list_of(
            _record(
                id=_text("The criterion's id, such as F-001/AC1."),
                outcome=_one_of("pass", "fail", "cannot_tell"),
                evidence=_text("The test or the observation that shows it."),
            )
        ),
        concerns=_concerns(
            title="What is missing or wrong, in one sentence.",
            detail="What shows it.",
            location="Where it is.",
        ),
    ),
}
"""Each form by name."""


def schema(name: str) -> str:
    """The JSON Schema of a form, as text; of no form, nothing."""
    if not name:
        return ""
    return json.dumps(require(name, "an effect"), separators=(",", ":"))


def require(name: str, who: str) -> dict[str, Any]:
    """The form of that name, or an error that says who asked for it."""
    if name not in FORMS:
        known = ", ".join(f"`{form}`" for form in FORMS)
        raise InvalidInput(f"{who} wants an answer of form `{name}`; there are {known}")
    return FORMS[name]
