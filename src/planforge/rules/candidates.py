"""
Which files of a repository a text is about: what it names, and what its words lead to.

Pure: the text and the paths go in, a short list comes out, the best first. An agent chooses from it, so it is
bounded: a few words are looked for, and a few files are offered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

MOST = 24
"""How many files are offered."""

MOST_TERMS = 8
"""How many words are looked for."""

SHORTEST = 3
QUOTED = re.compile(r"`([^`\n]+)`")
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
PATH = re.compile(r"[^\s`'\"()\[\]<>|,;:*]+")
PARTS = re.compile(r"[/._-]+")
_COMMON = """
about above across add added adding after again all also always and any are because been before below both
but can change changed changes code create current does done each error errors every feature file files
fix for from get give given has have here how into issue its just keep like line lines list make may more
most must need needs new none not now one only other our out over path paths plan please project remove
run same say says see set shall should some step such support task test tests text than that the them then
there these they this those two update use used user users using value values want wants was what when
where which while who will with without work would write you your
"""
COMMON = frozenset(_COMMON.split())
"""Words that lead nowhere."""


def terms(text: str) -> tuple[str, ...]:
    """The words to look for: what stands in backticks first, then the longest of the others."""
    quoted = [word for part in QUOTED.findall(text) for word in _words(part)]
    others = sorted(dict.fromkeys(_words(text)), key=len, reverse=True)
    return tuple(dict.fromkeys([*quoted, *others]))[:MOST_TERMS]


def _words(text: str) -> Iterator[str]:
    for word in WORD.findall(text):
        found = word.strip("._-").lower()
        if len(found) >= SHORTEST and found not in COMMON and not found.isdigit():
            yield found


def named(text: str, paths: Collection[str]) -> tuple[str, ...]:
    """Those of the paths that the text names, in its order."""
    words = (word.rstrip(".!?").removeprefix("./") for word in PATH.findall(text))
    return tuple(dict.fromkeys(word for word in words if word in paths))


def ranked(
    paths: Iterable[str], wanted: Collection[str], holding: Collection[str], first: Iterable[str] = ()
) -> tuple[str, ...]:
    """The files to offer: `first`, then those whose path or text (`holding`) has a word that is wanted."""
    scores = {path: _score(path, wanted) + (6 if path in holding else 0) for path in paths}
    found = sorted((path for path, score in scores.items() if score), key=lambda path: (-scores[path], path))
    return tuple(dict.fromkeys([*first, *found]))[:MOST]


def _score(path: str, wanted: Collection[str]) -> int:
    low = path.lower()
    name = low.rpartition("/")[2]
    parts = set(PARTS.split(low))
    found = 0
    for term in wanted:
        if name.partition(".")[0] == term or name == term:
            found += 12
        elif term in name:
            found += 8
        elif term in parts or term in low:
            found += 4
    return found
