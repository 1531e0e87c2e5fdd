"""
Which dependencies a change adds, loosens, moves or takes from elsewhere.

Both versions of a manifest are read and compared, so a comment or a new order is
nothing, and a new dependency is named whatever else was changed around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from planforge.rules.protection.manifests import Entries, Unreadable, entries, reader

HELD = re.compile(
    r"(?:overrides|resolutions|pnpm overrides|patch|replace|exclude|(?:constraint|override)-dependencies)\b|"
    r"option -(?:c|-constraint|-require-hashes|-only-binary)\b"
)
"""What keeps others from being installed: to take it away is to loosen."""

SOURCE = re.compile(
    r"""(?P<source>(?:git@|git\+|https?://|file:|ssh://|link:|npm:|github:|workspace:|\.{0,2}/)[^\s"'|,;]*|"""
    r""""?\b(?:git|path|url|registry|index|source|branch|rev|tag|file)"?\s*[:=]+>?\s*"?[^\s"',}]+)"""
)
EXACT = re.compile(r"""(?:===?\s*v?\d|^"?v?\d+\.\d+\.\d+(?:[-+][\w.]+)?"?$|^=\s*\d)""")
UPPER = re.compile(r"[<^~]|==.*\*|~=|~>")
ANY = re.compile(r"""^["']?(?:\*|latest|x|>=?\s*0(?:\.0)*)?["']?$""", re.IGNORECASE)


def is_manifest(path: str) -> bool:
    """Whether a file at this path, in small letters, says what is installed."""
    return reader(path) is not None


def compared(path: str, before: str | None, after: str | None) -> Iterator[str]:
    """What a person should know of what is installed after the change, each as a clause."""
    read = reader(path)
    if read is None:
        return
    try:
        old = entries(read, before or "") if before else {}
    except Unreadable:
        old = {}
    try:
        new = entries(read, after) if after else {}
    except Unreadable as error:
        yield f"what it installs cannot be read ({' '.join(str(error).split())[:80]})"
        return
    holds = "constraints" in path.rpartition("/")[2]
    yield from _differences(old, new, holds=holds)


def _differences(old: Entries, new: Entries, *, holds: bool) -> Iterator[str]:
    for name, bound in new.items():
        if name not in old:
            yield f"`{_short(name)}` is new{f' (`{_short(bound)}`)' if bound else ''}"
        elif old[name] != bound:
            yield f"`{_short(name)}` {_how(old[name], bound)}: `{_short(old[name])}` → `{_short(bound)}`"
    for name, bound in old.items():
        if name not in new and (holds or HELD.match(name)):
            yield f"`{_short(name)}` is not held any more (`{_short(bound)}`)"


def _how(old: str, new: str) -> str:
    if SOURCE.findall(old) != SOURCE.findall(new):
        return "comes from elsewhere"
    if ANY.match(new) and not ANY.match(old):
        return "is loosened"
    if EXACT.search(old) and not EXACT.search(new):
        return "is loosened"
    if UPPER.search(old) and not UPPER.search(new) and not EXACT.search(new):
        return "is loosened"
    return "is changed"


def _short(text: str) -> str:
    plain = " ".join(text.split()).replace("`", "'")
    return plain if len(plain) <= 80 else plain[:79] + "…"
