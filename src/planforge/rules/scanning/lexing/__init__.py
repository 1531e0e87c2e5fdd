"""
Which parts of a source text are code, strings, comments and regular expressions.

The parts together are the text, exactly. `blanked` gives the code alone, with everything
else as spaces of the same length, so that a pattern that is looked for in it is found in
code and nowhere else, at the place it has in the text.
"""

from __future__ import annotations

import re

from planforge.rules.scanning.languages import Language
from planforge.rules.scanning.lexing import braces, markup, scripts
from planforge.rules.scanning.lexing.engine import Dialect, Kind, Token, read

__all__ = ["DIALECTS", "Kind", "Token", "blanked", "tokens"]

DIALECTS: dict[Language, Dialect] = {
    Language.PYTHON: scripts.PYTHON,
    Language.JAVASCRIPT: braces.JAVASCRIPT,
    Language.GO: braces.GO,
    Language.RUST: braces.RUST,
    Language.JAVA: braces.JAVA,
    Language.KOTLIN: braces.KOTLIN,
    Language.CSHARP: braces.CSHARP,
    Language.PHP: braces.PHP,
    Language.RUBY: scripts.RUBY,
    Language.SHELL: scripts.SHELL,
    Language.YAML: markup.YAML,
    Language.MAKE: markup.SETTINGS,
    Language.SETTINGS: markup.SETTINGS,
}

NOT_A_BREAK = re.compile(r"[^\n]")


def tokens(text: str, language: Language) -> list[Token]:
    """The parts of a text, one after the other."""
    return read(text, DIALECTS[language])


def blanked(text: str, parts: list[Token]) -> str:
    """The text with only its code; a string is two quotation marks with blanks in between."""
    return "".join(
        text[part.start : part.end]
        if part.kind is Kind.CODE
        else _blank(text[part.start : part.end], part.kind)
        for part in parts
    )


def _blank(inside: str, kind: Kind) -> str:
    blank = NOT_A_BREAK.sub(" ", inside)
    if kind is Kind.COMMENT:
        return blank
    if len(inside) == 1:
        return '"' if inside != "\n" else inside
    first = '"' if inside[0] != "\n" else "\n"
    last = '"' if inside[-1] != "\n" else "\n"
    return f"{first}{blank[1:-1]}{last}"
