"""From a path and a text to what the scanner sees: the source, and the outline of its tests."""

from __future__ import annotations

from planforge.rules.scanning.languages import Role, language_of, role_of
from planforge.rules.scanning.others import outline as others
from planforge.rules.scanning.outlines import Outline
from planforge.rules.scanning.python import outline as python
from planforge.rules.scanning.source import Source


def opened(path: str, text: str) -> Source | None:
    """A file as the scanner sees it; None if it is none of its business."""
    language = language_of(path, text)
    return None if language is None else Source(path, text, language, role_of(path, text, language))


def outline(source: Source, *, canonical: bool = False) -> Outline:
    """The tests of a file, if it is one that has tests.

    `canonical` makes texts comparable across formatting, which takes longer.
    """
    if source.role not in (Role.TEST, Role.SUPPORT):
        return Outline()
    if source.tree is not None:
        return python.outline(source, canonical=canonical)
    return others.outline(source)
