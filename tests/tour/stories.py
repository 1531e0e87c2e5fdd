"""
What is built on the tour: a small real change for each of three real projects, and the script that plays it.

Every story has the same shape, so that one tour fits all: five new modules with their tests, of which the
third cannot be done at first and the fourth not at all, and a line of documentation that the person thinks of
while the plan is being carried out.
"""

from __future__ import annotations

import json
from typing import NamedTuple

Action = dict[str, object]


class Part(NamedTuple):
    """A module and its test."""

    module: str
    test: str
    asks: str
    """What the plan says of it."""
    code: str
    tests: str
    wrong: str = ""
    """What is written instead by who cannot do it."""


class Story(NamedTuple):
    """A change to one project."""

    project: str
    kind: str
    about: str
    """What the project is, for the page."""
    request: str
    objective: str
    testing: str
    parts: tuple[Part, Part, Part, Part, Part]
    vague: str
    """What the draft says of the first part, which the auditor does not let pass."""
    finding: str
    by_hand: tuple[str, str]
    """What the person puts in the place of what, before approving."""
    reason: str
    """Why the fourth part is left out."""
    readme: str
    readme_asks: str
    readme_edit: tuple[str, str]
    checks: tuple[tuple[str, ...], ...]
    """How the project's own tests are run by its own people."""
    settings: str = ""
    """What `planforge.toml` says about checks, where they are not found."""


def draft(story: Story, *, revised: bool) -> str:
    """The plan as the drafter writes it, or as it is after the first audit."""
    items = []
    for number, part in enumerate(story.parts):
        asks = story.vague if number == 0 and not revised else part.asks
        after = f" (after `{story.parts[number - 1].module}`)" if number > 2 else ""
        items += [f"- `{part.module}` — {asks}{after}", f"- `{part.test}` — its tests."]
    changes = "\n".join(items)
    return f"""\
# Plan: {story.request}

## Objective

{story.objective}

## Scope

New modules, each with its tests. Nothing that exists changes.

## Changes

{changes}

## Risks

Every module stands alone: one that is wrong breaks its own tests and nothing else.

## Testing

{story.testing}
"""


def script(story: Story, plan: str = "plan-001") -> str:
    """What the agents do on the tour, in the order in which scenes are looked for."""
    first, second, third, fourth, fifth = story.parts
    # Who is second waits until the first has landed, so that what is seen is the same each time.
    look = f"git cat-file -e planforge/{plan}:{first.module}"
    wait = f"for i in $(seq 600); do {look} 2>/dev/null && exit 0; sleep 0.2; done; exit 1"
    blocking = _audit("blocking", "The first module is not determined.", (story.finding, "blocking"))
    clean = _audit("none", "Ready to approve.")
    scenes = [
        _scene(("Role: drafter",), {"say": draft(story, revised=False)}),
        _scene(("Role: reviser",), {"say": draft(story, revised=True)}),
        _scene(("Role: auditor", "Step: "), {"say": clean}),
        _scene(("Role: auditor", "Round: 1"), {"say": blocking}),
        _scene(("Role: auditor",), {"say": clean}),
        _scene(_developer(1), *_writes(first)),
        _scene(_developer(2), {"run": ["sh", "-c", wait]}, *_writes(second)),
        _scene((*_developer(3), "Attempt: 1", "not taken"), *_writes(third)),
        _scene(_developer(3), *_writes(third, wrong=True)),
        _scene(_developer(4), *_writes(fourth, wrong=True)),
        _scene(_developer(5), {"sleep": 4}, *_writes(fifth)),
        _scene(_developer(6), *_edits(story)),
    ]
    return json.dumps({"name": f"the tour of {story.project}", "scenes": scenes}, indent=1) + "\n"


def _developer(phase: int) -> tuple[str, ...]:
    return ("Role: developer", f"Step: phase-{phase}")


def _scene(when: tuple[str, ...], *do: Action) -> dict[str, object]:
    return {"when": list(when), "do": [*do, {"usage": {"input": 2000, "output": 300}}]}


def _writes(part: Part, *, wrong: bool = False) -> list[Action]:
    code = part.wrong if wrong else part.code
    return [
        {"write": {"path": part.module, "text": code}},
        {"write": {"path": part.test, "text": part.tests}},
        {"say": f"`{part.module}` is in, and all tests pass."},
    ]


def _edits(story: Story) -> list[Action]:
    old, new = story.readme_edit
    return [
        {"edit": {"path": story.readme, "old": old, "new": new}},
        {"say": f"`{story.readme}` names the new modules."},
    ]


def _audit(severity: str, summary: str, *concerns: tuple[str, str]) -> str:
    found = [
        {"title": title, "severity": each, "detail": "It is not in the text.", "location": "Changes"}
        for title, each in concerns
    ]
    # In one line, as a real program hands on what was asked for in a form.
    said = {"maxSeverity": severity, "summary": summary, "concerns": found}
    return json.dumps(said, separators=(",", ":")) + "\n"
