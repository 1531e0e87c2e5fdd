"""Any Markdown as a plan."""

from __future__ import annotations

import pytest

from imported import body, rendered
from planforge.documents import markdown, plan
from planforge.documents.imports import LIMIT, Imported, prose
from planforge.documents.phases import decompose
from planforge.errors import InvalidInput

DESIGN = """\
---
author: ada
---
# RFC: Rate limits

A word before all.

## 1. Goals

Callers must not be able to flood the service.

## Non-goals *(for now)*

Other endpoints.

## Proposed changes

1. gateway/limit.py: a token bucket
2. `tests/test_limit.py` — tests of it
- ../../etc/passwd.py: not this
- mind and/or choose

### gateway/config.py

A number.

## Test plan

Run `make test`.

## Open questions:

Clocks that jump back?

## Audit Log

### Review 1 — 2026-01-01

## Appendix

The end.
"""


def read(text: str, source: str = "docs/design.md") -> Imported:
    return prose.read(text.encode(), source)


def test_sections_are_known_by_their_usual_names_and_the_rest_is_quoted() -> None:
    found = read(DESIGN)
    text = rendered(found)
    assert found.title == "Rate limits"
    assert "Callers must not" in body(text, "Objective")
    assert body(text, "Scope") == "### Non-goals *(for now)*\n\nOther endpoints."
    assert body(text, "Testing") == "### Test plan\n\nRun `make test`."
    assert "Clocks that jump back?" in body(text, "Risks")
    quoted = body(text, "Context")
    for said in (
        "author: ada",
        "A word before all.",
        "## Audit Log",
        "### Review 1",
        "## Appendix",
        "The end.",
    ):
        assert f"> {said}" in quoted
    assert not body(text, "Audit Log")


def test_files_that_it_names_become_items_in_backticks_and_those_outside_do_not() -> None:
    phases = decompose(rendered(read(DESIGN)))
    files = [file for phase in phases if phase.kind.value == "implement" for file in phase.files]
    assert sorted(files) == ["gateway/config.py", "gateway/limit.py", "tests/test_limit.py"]


def test_a_plan_is_taken_with_its_body_and_what_we_wrote_in_it_is_quoted() -> None:
    earlier = plan.render_new(
        plan="plan-009",
        title="Old",
        created="2025-01-01",
        project="shop",
        request="the request",
        body="# Plan: Old\n\n"
        + "".join(f"## {name}\n\nThe {name} as it was.\n\n" for name in plan.REQUIRED)
        + '## Change Manifest\n\n["a/b.py", "../c.py"]\n',
    )
    earlier = plan.with_audit_round(earlier, 1, "2025-01-02", "it blocks")
    text = rendered(read(earlier))
    assert plan.parse(text).id == "plan-001"
    assert body(text, "Changes") == "The Changes as it was."
    assert decompose(text)[0].files == ("a/b.py",)
    for said in ("**ID:** plan-009", "### Review 1 — 2025-01-02", "> it blocks", "> the request"):
        assert f"> {said}" in body(text, "Context")
    assert plan.next_round(text) == 1


def test_a_note_without_any_heading_is_the_objective() -> None:
    found = read("Make it faster.\n\nMuch faster.\n")
    assert found.title == "Make it faster."
    assert body(rendered(found), "Objective") == "Make it faster.\n\nMuch faster."
    assert "To be written" in body(rendered(found), "Changes")


def test_sections_may_be_at_any_level() -> None:
    text = rendered(read("# Goal\n\nFaster.\n\n# Files\n\n- a/b.py: it\n"))
    assert body(text, "Objective").endswith("Faster.")
    assert "- `a/b.py`: it" in body(text, "Changes")


def test_tokens_of_a_template_and_open_fences_are_only_text() -> None:
    text = rendered(read("# {{TITLE}}\n\n## Goal\n\n{{PLAN_ID}} it is\n\n## Files\n\n```\n## Audit Log\n"))
    assert "{ {PLAN_ID}} it is" in text
    assert body(text, "Changes").endswith("```\n## Audit Log\n```")
    assert [each.name for each in markdown.sections(text)].count("Audit Log") == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"x" * (LIMIT + 1), f"at most {LIMIT}"),
    ],
)
def test_what_cannot_be_read_is_refused_and_why_is_said(content: bytes, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        prose.read(content, "x.md")
    assert problem in refused.value.message


@pytest.mark.parametrize(
    ("name", "usual"),
    [
        ("Goal", "Objective"),
        ("2.1 Problem Statement", "Objective"),
        ("🎯 Overview", "Objective"),
        ("Out of Scope:", "Scope"),
        ("Files to modify (draft)", "Changes"),
        ("**Risks & Mitigations**", "Risks"),
        ("Verification", "Testing"),
        ("Appendix", ""),
        ("Goalkeeper", ""),
        ("", ""),
    ],
)
def test_names_are_known_with_whatever_people_add_to_them(name: str, usual: str) -> None:
    assert prose.usual(name) == usual
