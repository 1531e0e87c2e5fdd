"""
Which files a path or a glob stands for, and whether two of them stand for a common one.

A pattern is a path of the repository, `/` between its segments. Without wildcards it
stands for that path and, should it be a directory, everything below. `*`, `?` and
`[...]` match within a segment, `**` any number of segments. A segment with brackets
also stands for itself as it is written, because directories called `[id]` exist.

`overlap` walks both patterns at once and is exact: it says yes if and only if some path
matches both. Its cost is bounded by the product of their lengths, whatever the wildcards.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from planforge.errors import InvalidInput

ANYWHERE = "**"
"""A segment that stands for any number of segments, none included."""

WILD = frozenset("*?[")

Range = tuple[int, int]

UNIVERSE: tuple[Range, ...] = ((1, 0x2E), (0x30, 0x5B), (0x5D, 0xD7FF), (0xE000, 0x10FFFF))
"""What a segment can consist of: every character but NUL, the slash, the backslash and half of a pair."""

DOT = ord(".")


class Characters(NamedTuple):
    """One character out of some, or, if `repeated`, any number of any."""

    ranges: tuple[Range, ...]
    repeated: bool = False


STAR = Characters(UNIVERSE, repeated=True)

Name = tuple[Characters, ...]
"""What the name of one file or directory can be, character by character."""


class Segment(NamedTuple):
    """A part of a pattern between two slashes; `wild` if it is not to be taken as it is written."""

    text: str
    wild: bool


SOME, ANY = Segment(ANYWHERE, wild=True), Segment("*", wild=True)


def normalise(pattern: str) -> str:
    """The one spelling of a path or glob, or `InvalidInput`. `.` is the whole repository."""
    problem = _problem(pattern)
    if problem:
        raise InvalidInput(
            f"{pattern!r} {problem}", "name files from the top of the repository, such as `src/app.py`"
        )
    segments = [segment for segment in pattern.split("/") if segment not in ("", ".")]
    if not segments:
        return ANYWHERE
    segments = [name for name, before in pairwise([*segments, ""]) if (name, before) != (ANYWHERE, ANYWHERE)]
    if pattern.endswith("/") and any(map(is_glob, segments)) and segments[-1] != ANYWHERE:
        segments.append(ANYWHERE)  # a directory, so what is below is meant too
    for segment in segments:
        _ways(segment, is_glob(segment))
    return "/".join(segments)


def normalise_all(patterns: Iterable[str]) -> tuple[str, ...]:
    """Each once, in the one order in which sets are granted."""
    return tuple(sorted({normalise(pattern) for pattern in patterns}))


def exact(path: str) -> str:
    """The one spelling of the path of a file, which is no pattern whatever characters it has."""
    problem = _problem(path)
    if not problem and not (found := "/".join(part for part in path.split("/") if part not in ("", "."))):
        problem = "is not a file"
    if problem:
        raise InvalidInput(f"{path!r} {problem}", "name files from the top of the repository")
    return found


def _problem(pattern: str) -> str:
    checks = {
        "is empty, which is no path": not pattern,
        "is an absolute path": pattern.startswith("/"),
        "leads out of the repository or back": ".." in pattern.split("/"),
        "has a NUL in it": "\0" in pattern,
        "has a backslash in it": "\\" in pattern,
        "is not text": any("\ud800" <= character <= "\udfff" for character in pattern),
    }
    return next((problem for problem, found in checks.items() if found), "")


def is_glob(pattern: str) -> bool:
    """Whether it has wildcards."""
    return not WILD.isdisjoint(pattern)


def parents(path: str) -> list[str]:
    """The directories above a path, the nearest first."""
    found = []
    while "/" in path:
        path = path.rpartition("/")[0]
        found.append(path)
    return found


def fixed(pattern: str) -> str:
    """The directory below which all that it stands for lies, as far as no wildcard is needed to say so."""
    segments = pattern.split("/")
    wild = next((index for index, segment in enumerate(segments) if is_glob(segment)), len(segments))
    return "/".join(segments[:wild])


def matches(pattern: str, path: str) -> bool:
    """Whether a normalised pattern stands for the file at `path`, a path as `exact` gives it."""
    if not is_glob(pattern):
        return path == pattern or path.startswith(f"{pattern}/")
    return _walk(_read(pattern), tuple(Segment(name, wild=False) for name in path.split("/")))


def covers(pattern: str, other: str) -> bool:
    """Whether all that `other` stands for is surely covered by `pattern`; a no may be a cautious one."""
    if pattern in (other, ANYWHERE):
        return True
    below = pattern.endswith("/**") or not is_glob(pattern)
    return below and not is_glob(other) and matches(pattern, other)


@lru_cache(4096)
def overlap(one: str, other: str) -> bool:
    """Whether some path matches both of two normalised patterns."""
    return _walk(_read(one), _read(other))


def _read(pattern: str) -> tuple[Segment, ...]:
    segments = tuple(Segment(text, is_glob(text)) for text in pattern.split("/"))
    return segments if is_glob(pattern) else (*segments, SOME)


def _walk(left: tuple[Segment, ...], right: tuple[Segment, ...]) -> bool:
    """Whether both can be read to their ends along one path."""
    reached, open_ = {(0, 0)}, [(0, 0)]
    while open_:
        at, to = open_.pop()
        if (at, to) == (len(left), len(right)):
            return True
        one = left[at] if at < len(left) else None
        other = right[to] if to < len(right) else None
        for state in _steps(one, other, at, to):
            if state not in reached:
                reached.add(state)
                open_.append(state)
    return False


def _steps(one: Segment | None, other: Segment | None, at: int, to: int) -> list[tuple[int, int]]:
    """Where a walk over both can go, having come as far as these two segments."""
    if SOME in (one, other):
        # What stands for any number of segments ends here, or takes in the segment on the other side.
        ways = [(at + 1, to)] if one == SOME or (one and _meet(one, ANY)) else []
        return [*ways, (at, to + 1)] if other == SOME or (other and _meet(other, ANY)) else ways
    return [(at + 1, to + 1)] if one and other and _meet(one, other) else []


def _meet(one: Segment, other: Segment) -> bool:
    """Whether both can stand for one name."""
    if not one.wild and not other.wild:
        return one.text == other.text
    if not one.wild and other == ANY:
        return True
    return any(_common_name(first, second) for first in _ways(*one) for second in _ways(*other))


def _common_name(one: Name, other: Name) -> bool:
    """Whether some name of a file or directory, which `.` and `..` are not, matches both."""
    start = (0, 0, 0)
    reached, open_ = {start}, [start]
    while open_:
        at, to, dots = open_.pop()
        if (at, to, dots) == (len(one), len(other), NAME):
            return True
        for state in _moves(one, other, at, to, dots):
            if state not in reached:
                reached.add(state)
                open_.append(state)
    return False


NAME = 3
"""What follows upon no, one and two dots: anything else, and that is a name."""


def _moves(one: Name, other: Name, at: int, to: int, dots: int) -> list[tuple[int, int, int]]:
    found = []
    first = one[at] if at < len(one) else None
    second = other[to] if to < len(other) else None
    if first is not None and first.repeated:
        found.append((at + 1, to, dots))
    if second is not None and second.repeated:
        found.append((at, to + 1, dots))
    if first is None or second is None:
        return found
    common = _common(first.ranges, second.ranges)
    after = (at if first.repeated else at + 1, to if second.repeated else to + 1)
    if any(low <= DOT <= high for low, high in common):
        found.append((*after, min(dots + 1, NAME)))
    if any((low, high) != (DOT, DOT) for low, high in common):
        found.append((*after, NAME))
    return found


def _common(one: tuple[Range, ...], other: tuple[Range, ...]) -> tuple[Range, ...]:
    return tuple(
        (max(low, bottom), min(high, top))
        for low, high in one
        for bottom, top in other
        if max(low, bottom) <= min(high, top)
    )


@lru_cache(4096)
def _ways(text: str, wild: bool) -> tuple[Name, ...]:
    """The ways to read a segment: with its brackets as a choice of characters, and as they are written."""
    if not wild:
        return (tuple(Characters(((ord(character), ord(character)),)) for character in text),)
    chosen, written = tuple(_tokens(text, brackets=True)), tuple(_tokens(text, brackets=False))
    return (chosen,) if chosen == written else (chosen, written)


def _tokens(text: str, *, brackets: bool) -> list[Characters]:
    tokens: list[Characters] = []
    at = 0
    while at < len(text):
        character = text[at]
        end = _bracket_end(text, at) if brackets and character == "[" else 0
        if end:
            tokens.append(Characters(_choice(text[at + 1 : end])))
            at = end
        elif character == "*":
            if not tokens or not tokens[-1].repeated:
                tokens.append(STAR)
        elif character == "?":
            tokens.append(Characters(UNIVERSE))
        else:
            tokens.append(Characters(((ord(character), ord(character)),)))
        at += 1
    return tokens


def _bracket_end(text: str, start: int) -> int:
    """Where the bracket that opens at `start` closes; 0 if it does not and is an ordinary character."""
    at = start + 1
    if text[at : at + 1] in ("!", "^"):
        at += 1
    return max(text.find("]", at + 1), 0)


def _choice(body: str) -> tuple[Range, ...]:
    negated = body[0] in "!^"
    body = body[1:] if negated else body
    ranges: list[Range] = []
    at = 0
    while at < len(body):
        low = high = ord(body[at])
        if body[at + 1 : at + 2] == "-" and at + 2 < len(body):
            high = ord(body[at + 2])
            at += 2
        if low > high:
            raise InvalidInput(f"`[{body}]` has a range that runs backwards")
        ranges.append((low, high))
        at += 1
    return _common(UNIVERSE, _without(ranges) if negated else tuple(sorted(set(ranges))))


def _without(ranges: list[Range]) -> tuple[Range, ...]:
    found, at = [], 0
    for low, high in sorted(ranges):
        if at < low:
            found.append((at, low - 1))
        at = max(at, high + 1)
    return (*found, (at, 0x10FFFF)) if at <= 0x10FFFF else tuple(found)
