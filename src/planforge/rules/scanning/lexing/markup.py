"""How YAML and plain settings are written: quotes count only where a value begins."""

from __future__ import annotations

import re

from planforge.rules.scanning.lexing.engine import Cursor, Kind, comment, dialect

BLOCK = re.compile(
    r"(?P<indent>[ \t]*)(?P<dashes>(?:-[ \t]+)*)(?P<key>[^\s#\-\"'][^\n#]*?:|[\"'][^\n]*?[\"'][ \t]*:)?"
    r"[ \t]*(?:[!&]\S+[ \t]+)*[|>][+\-]?\d?[+\-]?[ \t]*(?:#[^\n]*)?\r?\n"
)
LINE = re.compile(r"[^\n]*\n?")


def _block(cursor: Cursor, found: re.Match[str]) -> None:
    """A block scalar: every following line that is empty or further to the right than its key."""
    opening = BLOCK.match(cursor.text, cursor.text.rfind("\n", 0, found.start()) + 1)
    if opening is None:
        cursor.take(Kind.CODE, found.end())
        return
    indent = len(opening["indent"]) + len(opening["dashes"])
    if not opening["key"] and opening["dashes"]:
        indent -= 1
    cursor.take(Kind.CODE, opening.end())
    end = opening.end()
    for line in LINE.finditer(cursor.text, end):
        content = line[0].lstrip(" ")
        if content.strip() and len(line[0]) - len(content) <= indent - (0 if opening["key"] else 1):
            break
        end = line.end()
        if not line[0].endswith("\n"):
            break
    cursor.take(Kind.STRING, end)


def _value(cursor: Cursor, found: re.Match[str]) -> None:
    """A quoted value; what was found begins before its quote."""
    whole = found[0]
    quote = min((at for mark in "\"'" if (at := whole.find(mark)) >= 0), default=0)
    cursor.take(Kind.CODE, found.start() + quote)
    cursor.take(Kind.STRING, found.end())


QUOTED = r"(?:\"(?s:[^\"\\]|\\.){0,5000}+\"|\"[^\n]*|'(?:[^']|''){0,5000}+'|'[^\n]*)"
"""One without an end is taken to end with its line, so that a stray quote does not hide the rest."""

YAML = dialect(
    {
        "hash": (r"(?<![^\s])\#[^\n]*", comment),
        "block": (r"(?<=[:\-\w])[ \t]+[|>][+\-]?\d?[+\-]?[ \t]*(?:\#[^\n]*)?\r?$", _block),
        "line": (rf"^[ \t]*{QUOTED}", _value),
        "value": (rf"(?:[:\-?][ \t]+|[\[{{,][ \t]*)(?:[!&][^\s,\[\]{{}}]{{1,80}}[ \t]+)?{QUOTED}", _value),
    },
)

SETTINGS = dialect(
    {
        "hash": (r"^[ \t]*[#;][^\n]*", comment),
    }
)
"""INI, TOML and make: only comments matter here."""
