"""A section of a document with another body, to test with."""

from __future__ import annotations

from planforge.documents import markdown


def replaced(text: str, name: str, content: str) -> str:
    section = markdown.find(text, name)
    assert section is not None, name
    return f"{text[: section.body_start]}\n{content}\n\n{text[section.end :]}"
