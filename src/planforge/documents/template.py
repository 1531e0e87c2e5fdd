"""
The file that a plan begins as: a template with tokens, the project's own or the one built in.

A template has the header of a plan, or there is nothing to know the plan by; what is missing of the sections
that Planforge writes itself is added. Tokens are replaced in one pass, so that a title which looks like a
token stays what it is.

A draft is put into the form that its plan began as: the header stays, and so does what the template asks for.
"""

from __future__ import annotations

from planforge.documents import markdown
from planforge.documents import plan as plans
from planforge.documents.plan import TEMPLATE_TOKEN, PlanStatus
from planforge.errors import InvalidDocument
from planforge.rules.findings import Finding, Severity

NAME = ".plan-template.md"
"""What a project's own template is called, in the directory of its plans."""

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
    text = TEMPLATE_TOKEN.sub(
        lambda found: " ".join(values[found["name"]].split()), template.removeprefix("\ufeff")
    )
    if not text.endswith(("\n", "\r")):
        text += markdown.newline_of(text)
    if markdown.open_fence(text):
        raise InvalidDocument("it opens a code fence and never closes it")
    text = _with_our_sections(plans.with_status(text, PlanStatus.DRAFT))
    document = plans.parse(text)
    if document.id != plan:
        raise InvalidDocument(f"it says that its `**ID:**` is `{document.id}`", HINT)
    return text


def is_blank(text: str) -> bool:
    """Whether nobody has written anything into a plan that was made from a template."""
    said = [markdown.body(text, name) for name in plans.REQUIRED]
    return all(body is not None and plans.is_placeholder(markdown.without_rules(body)) for body in said)


def to_fill_in(form: str) -> str:
    """The sections of a form that the drafter writes."""
    return "\n\n".join(form[each.start : markdown.content_end(form, each)] for each in _asked_for(form))


def missing(text: str, form: str) -> tuple[Finding, ...]:
    """Sections that the form of a plan has and the plan has not."""
    return tuple(
        Finding(
            severity=Severity.BLOCKING,
            title=f"the section `## {each.name}` of the template is missing",
            location=f"## {each.name}",
        )
        for each in _asked_for(form)
        if each.name not in plans.REQUIRED and markdown.find(text, each.name) is None
    )


def given_back(drafted: str, form: str) -> str:
    """Why a draft is what the form had before anybody wrote into it; empty if it is not."""
    for name in plans.REQUIRED:
        said, asked = ((markdown.body(text, name) or "").split() for text in (drafted, form))
        if asked and said == asked:
            return f"the draft gives `## {name}` back as the template has it"
    return ""


def _asked_for(form: str) -> list[markdown.Section]:
    """The sections of a form that are not ours to write."""
    return [
        each
        for each in markdown.sections(form)
        if each.name.lower() not in plans.OWNED
        and not (each.name == plans.CONTEXT and plans.is_given(form[each.start : each.end]))
    ]


def _with_our_sections(text: str) -> str:
    """The text with the sections that grow while a plan is audited and carried out."""
    newline = markdown.newline_of(text)
    for name in (plans.AUDIT_LOG, plans.NOTES):
        if markdown.find(text, name) is None:
            text = text.rstrip() + (newline * 2).join(["", "---", f"## {name}"]) + newline
    return text
