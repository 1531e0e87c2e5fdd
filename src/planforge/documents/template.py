"""
The file that a plan begins as: a template with tokens, the project's own or the one built in.

A template has the header of a plan, or there is nothing to know the plan by; what is missing of the sections
that Planforge writes itself is added. Tokens are replaced in one pass, so that a title which looks like a
token stays what it is.
"""

from __future__ import annotations

import re

from planforge.documents import markdown
from planforge.documents import plan as plans
from planforge.documents.plan import PlanStatus
from planforge.errors import InvalidDocument

NAME = ".plan-template.md"
"""What a project's own template is called, in the directory of its plans."""

TOKEN = re.compile(r"\{\{\s*(?P<name>TITLE|PLAN_ID|TASK_ID|DATE|PROJECT)\s*\}\}")

HINT = "it begins like this: `# Plan: {{TITLE}}`, `**ID:** {{PLAN_ID}}`, `**Status:** DRAFT`"

BUILT_IN = """\
# Plan: {{TITLE}}

**ID:** {{PLAN_ID}}
**Task:** {{TASK_ID}}
**Created:** {{DATE}}
**Status:** DRAFT
**Project:** {{PROJECT}}

---

## Objective

_What problem this solves, and why, in one paragraph._

## Scope

_What is part of it, and what is expressly not._

## Changes

_One item for each file: its path in backticks, then what changes in it._

## Risks

_What may go wrong, and what is done about it._

## Testing

_How it is verified: what to run, and what to look for._

---

## Audit Log

---

## Implementation Notes
"""


def filled(template: str, *, plan: str, title: str, task: str, date: str, project: str) -> str:
    """The template as the file of one plan; refused if it is not the beginning of one."""
    values = {"TITLE": title, "PLAN_ID": plan, "TASK_ID": task, "DATE": date, "PROJECT": project}
    text = TOKEN.sub(lambda found: " ".join(values[found["name"]].split()), template.removeprefix("\ufeff"))
    if not text.endswith(("\n", "\r")):
        text += markdown.newline_of(text)
    if markdown.open_fence(text):
        raise InvalidDocument("it opens a code fence and never closes it")
    text = _with_our_sections(plans.with_status(text, PlanStatus.DRAFT))
    document = plans.parse(text)
    if document.id != plan:
        raise InvalidDocument(f"it says that its `**ID:**` is `{document.id}`", HINT)
    return text


def _with_our_sections(text: str) -> str:
    """The text with the sections that grow while a plan is audited and carried out."""
    newline = markdown.newline_of(text)
    for name in (plans.AUDIT_LOG, plans.NOTES):
        if markdown.find(text, name) is None:
            text = text.rstrip() + (newline * 2).join(["", "---", f"## {name}"]) + newline
    return text
