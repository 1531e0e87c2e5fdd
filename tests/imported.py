"""What was imported, as the file of a plan."""

from __future__ import annotations

from planforge.documents import markdown, plan
from planforge.documents.imports import Imported


def rendered(found: Imported) -> str:
    """The file of `plan-001`, as an import writes it."""
    return plan.render_new(
        plan="plan-001",
        title=found.title,
        created="2026-01-02",
        project="shop",
        request="",
        body=found.body,
        context=found.context,
        source=found.source,
    )


def body(text: str, name: str) -> str:
    """What a section says."""
    return markdown.without_rules(markdown.body(text, name) or "").strip()
