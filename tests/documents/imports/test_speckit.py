"""The documents of spec-kit as a plan."""

from __future__ import annotations

import pytest

from imported import body, rendered
from planforge.documents.imports import Imported, speckit
from planforge.documents.phases import decompose
from planforge.errors import InvalidInput

SPEC = """\
# Feature Specification: Photo albums

**Feature Branch**: `001-photo-albums`
**Created**: 2026-01-05
**Input**: User description: "Albums by date"

## User Scenarios & Testing *(mandatory)*

### User Story 1 - Make an album (Priority: P1)

Someone makes an album.

**Why this priority**: Nothing works without.

**Independent Test**: Make one and look.

**Acceptance Scenarios**:

1. **Given** none, **When** one is made, **Then** it is listed
2. **Given** one, **When** it is opened, **Then** its photos show

---

### Edge Cases

- A photo in two albums?

## Requirements *(mandatory)*

### Functional Requirements

- **FR-001**: System MUST keep albums

### Key Entities *(include if feature involves data)*

- **Album**: a name and photos

## Success Criteria *(mandatory)*

### Measurable Outcomes

- **SC-001**: It opens within a second

## Clarifications

- Q: Nested? A: No
"""

PLAN = """\
# Implementation Plan: Photo albums

## Summary

A small local program.

## Technical Context

**Language/Version**: Python 3.12

## Complexity Tracking

A table that is missing.
"""

TASKS = """\
---
description: "Task list"
---

# Tasks: Photo albums

## Phase 1: Setup

**Purpose**: A beginning

- [X] T001 Create the project in `src/__init__.py`
- [ ] T002 [P] Configure linting

## Phase 3: User Story 1 - Make an album (Priority: P1)

### Implementation for User Story 1

- [ ] T012 [P] [US1] Create Album in src/models/album.py and `src/models/photo.py`
- [ ] T013 [US1] Contract test POST /albums and/or more in tests/contract/test_albums.py.
  - keep it small
- [ ] T014 [US1] Never write to ../../etc/passwd.py or /etc/hosts.txt or https://x.org/a.py
- [ ] T015 Add .github/workflows/ci.yml (depends on T012)

## Dependencies & Execution Order

- Setup first
"""

FEATURE = {"spec.md": SPEC, "plan.md": PLAN, "tasks.md": TASKS, "research.md": "# Research\n\n## Audit Log\n"}


def read(**documents: str) -> Imported:
    named = {f"{name}.md": text for name, text in documents.items()} or FEATURE
    return speckit.read(named, "specs/001-photo-albums")


def test_every_block_goes_to_the_section_that_it_is_about() -> None:
    found = read()
    text = rendered(found)
    assert (found.title, found.kind) == ("Photo albums", "spec-kit")
    objective = body(text, "Objective")
    assert objective.startswith('User description: "Albums by date"\n\n### User Story 1 - Make an album')
    assert "**Why this priority**: Nothing works without." in objective
    assert "A small local program." in objective
    assert "**FR-001**" in body(text, "Scope")
    assert "- **Album**: a name" in body(text, "Scope")
    assert "A photo in two albums?" in body(text, "Risks")
    assert "A table that is missing." in body(text, "Risks")
    testing = body(text, "Testing")
    assert "1. **Given** none, **When** one is made, **Then** it is listed\n2. **Given** one" in testing
    assert "**Independent Test**: Make one and look." in testing
    assert "**SC-001**" in testing
    context = body(text, "Context")
    for said in ("`001-photo-albums`", "Nested?", "Python 3.12", "Task list", "Setup first", "## Audit Log"):
        assert said in context
    assert not body(text, "Audit Log")


def test_tasks_become_changes_with_their_files_first() -> None:
    changes = body(rendered(read()), "Changes").splitlines()
    assert changes == [
        "### Phase 1: Setup",
        "",
        "- done already, T001: Create the project in src/__init__.py",
        "- T002 [P]: Configure linting",
        "",
        "### Phase 3: User Story 1 - Make an album (Priority: P1)",
        "",
        "**Implementation for User Story 1**:",
        "",
        "- `src/models/photo.py`, `src/models/album.py` — T012 [P] [US1]: "
        "Create Album in src/models/album.py and `src/models/photo.py`",
        "- `tests/contract/test_albums.py` — T013 [US1]: "
        "Contract test POST /albums and/or more in tests/contract/test_albums.py.",
        "  - keep it small",
        "- T014 [US1]: Never write to ../../etc/passwd.py or /etc/hosts.txt or https://x.org/a.py",
        "- `.github/workflows/ci.yml` — T015: Add .github/workflows/ci.yml (depends on T012)",
    ]


def test_what_is_done_and_what_lies_outside_is_no_file_of_a_phase() -> None:
    files = {file for phase in decompose(rendered(read())) for file in phase.files}
    assert files == {
        "src/models/album.py",
        "src/models/photo.py",
        "tests/contract/test_albums.py",
        ".github/workflows/ci.yml",
    }


@pytest.mark.parametrize("name", speckit.READ)
def test_any_one_of_the_documents_is_enough(name: str) -> None:
    found = speckit.read({name: FEATURE[name]}, "specs/001-photo-albums")
    assert found.title == "Photo albums"
    assert rendered(found)


def test_a_title_that_is_another_in_each_document_is_not_lost() -> None:
    text = rendered(read(spec=SPEC, plan=PLAN.replace("Plan: Photo albums", "Plan: Collections")))
    assert "> Collections" in text


def test_without_any_title_the_directory_gives_one() -> None:
    assert read(tasks="- [ ] T001 Do it in a/b.py\n").title == "Photo albums"


def test_a_directory_without_any_of_the_documents_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"has no `spec\.md`"):
        speckit.read({"README.md": "x"}, "docs")
