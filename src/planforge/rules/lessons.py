"""
Lessons: what a project has learned, which of them say the same, and which a piece of work should know.

No meaning is guessed at. Two lessons are alike by the words that they share and by the letters those are made
of; a lesson is relevant by the files it names, by its tags and by its words. The same lessons and the same
work always give the same answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache

import msgspec

from planforge.errors import InvalidInput
from planforge.kernel.paths import matches
from planforge.kernel.tokens import estimate

ALWAYS = "always"
"""The tag of a lesson that is part of every context."""

NEAR = 60
"""Two lessons that are at least this many percent alike count as the same."""

NAMED, NEIGHBOUR, TAGGED = 8, 2, 4
"""The scores of a lesson that names a file of the work, names one beside it, or has its word as a tag."""

FEWEST = 2
"""Fewer shared words than this do not count."""

WITHOUT_SPACES = "\u3040-\u30ff\u3400-\u9fff"
"""Kana and ideographs, of which each is a word: there are no spaces between them."""
WORD = re.compile(rf"[{WITHOUT_SPACES}]|[^\W_{WITHOUT_SPACES}]+")
QUOTED = re.compile(r"`([^`\s]+)`")
APOSTROPHES = dict.fromkeys(map(ord, "'´’‘"))  # noqa: RUF001
NEGATION = "not never no without dont doesnt cannot cant avoid nothing mustnt wont"
NEGATIONS = frozenset(NEGATION.split())
IN_EVERY_TEXT = """
a an and are as at be been before but by can do does each every for from had has have if in into is it its may
must of on one only or our should so than that the their them then there these they this to under use used
using was we were what when where which while who will with would you your always make sure
"""
COMMON = frozenset(IN_EVERY_TEXT.split())
ENDINGS = (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", ""))
"""What is taken off a word so that its forms are one."""


class Status(StrEnum):
    """Whether a lesson holds."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    STALE = "stale"


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was learned."""

    id: str
    date: str
    title: str
    tags: tuple[str, ...] = ()
    lesson: str
    """What was learned, in one to three sentences."""
    source: str = ""
    """The plan, the phase or the run that it comes from."""
    applied: str = ""
    """Where something was done about it."""
    status: Status | None = Status.ACTIVE
    """`None` if the word in the file is unknown."""
    successor: str = ""
    """The lesson that has taken its place."""
    remark: str = ""
    """What else is said beside the status, such as why it is stale."""

    @property
    def is_active(self) -> bool:
        """Whether it holds now."""
        return self.status is Status.ACTIVE


# Which say the same


class Likeness(msgspec.Struct, frozen=True, kw_only=True):
    """How much a lesson is like a text."""

    lesson: Lesson
    percent: int
    contrary: bool
    """One of the two says no where the other says yes."""


def alike(text: str, lessons: Iterable[Lesson], *, title: str = "") -> tuple[Likeness, ...]:
    """The lessons that say nearly the same as a text, most alike first; an active one before others."""
    found = [_likeness(text, title, lesson) for lesson in lessons]
    near = [each for each in found if each.percent >= NEAR]
    return tuple(
        sorted(near, key=lambda each: (-each.percent, not each.lesson.is_active, each.lesson.id)),
    )


def _likeness(text: str, title: str, lesson: Lesson) -> Likeness:
    percent = similarity(text, lesson.lesson)
    if title and content_words(title) and content_words(title) == content_words(lesson.title):
        percent = max(percent, NEAR)
    contrary = negations(text) % 2 != negations(lesson.lesson) % 2
    return Likeness(lesson=lesson, percent=percent, contrary=contrary)


def similarity(one: str, other: str) -> int:
    """
    How much two texts are alike, in hundredths: the mean of the words and the shingles that they share.

    Two that name something in backticks, and not the same, are about different things however alike they are.
    """
    words = _shared(content_words(one), content_words(other))
    letters = _shared(shingles(one), shingles(other))
    named = [frozenset(QUOTED.findall(text)) for text in (one, other)]
    most = NEAR - 1 if all(named) and named[0].isdisjoint(named[1]) else 100
    return min(round(50 * (words + letters)), most)


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of two sets is in both, from 0 to 1."""
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


@lru_cache(4096)
def content_words(text: str) -> frozenset[str]:
    """What a text is about: its words in one form each, without those that every text has."""
    said = (word for word in _words(text) if word not in COMMON and word not in NEGATIONS)
    return frozenset(_stem(word) for word in said)


@lru_cache(4096)
def shingles(text: str) -> frozenset[str]:
    """Every three letters that follow each other in the words of a text."""
    found = f" {' '.join(word for word in _words(text) if word not in COMMON)} "
    return frozenset(found[at : at + 3] for at in range(len(found) - 2)) if found.strip() else frozenset()


def negations(text: str) -> int:
    """How often a text says no."""
    return sum(word in NEGATIONS for word in _words(text))


def _words(text: str) -> list[str]:
    return WORD.findall(unicodedata.normalize("NFKC", text).casefold().translate(APOSTROPHES))


def _stem(word: str) -> str:
    for ending, instead in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            found = word[: -len(ending)] + instead
            doubled = ending in ("ing", "ed") and len(found) > 3 and found[-1] == found[-2]
            return found[:-1] if doubled else found
    return word


# Which matter to a piece of work


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What a piece of work is about."""

    text: str = ""
    files: tuple[str, ...] = ()


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What of the lessons there is room for."""

    lines: tuple[str, ...]
    left_out: tuple[str, ...]
    """The ids of those that there was no room for."""


def relevant(lessons: Iterable[Lesson], work: Work) -> tuple[Lesson, ...]:
    """The active lessons that matter to the work: those that matter most first, and of these the newest."""
    scored = [(relevance(lesson, work), lesson) for lesson in lessons if lesson.is_active]
    scored.sort(key=lambda each: each[1].id)
    scored.sort(key=lambda each: each[1].date, reverse=True)
    scored.sort(key=lambda each: -each[0])
    return tuple(lesson for score, lesson in scored if score > 0)


def relevance(lesson: Lesson, work: Work) -> int:
    """How much a lesson matters to the work; 0 is not at all."""
    if ALWAYS in lesson.tags:
        return 1000
    about = content_words(" ".join((work.text, *work.files)))
    # A path says which file is meant; that two paths have `src` and `py` in them says nothing.
    said = QUOTED.sub(
        lambda quoted: "" if _is_path(quoted[1]) else quoted[0], f"{lesson.title} {lesson.lesson}"
    )
    shared = len(content_words(said) & about)
    tags = sum(_is_about(tag, about) for tag in lesson.tags if not _is_path(tag))
    return _by_paths(lesson, work.files) + TAGGED * tags + (shared if shared >= FEWEST else 0)


def _is_about(tag: str, about: frozenset[str]) -> bool:
    words = content_words(tag)
    return bool(words) and words <= about


def _by_paths(lesson: Lesson, files: Sequence[str]) -> int:
    paths = {tag for tag in lesson.tags if _is_path(tag)}
    paths |= {quoted for quoted in QUOTED.findall(lesson.lesson) if _is_path(quoted)}
    named = sum(any(_stands_for(path, file) for file in files) for path in paths)
    beside = {path.rpartition("/")[0] for path in paths} & {file.rpartition("/")[0] for file in files}
    return NAMED * named + NEIGHBOUR * len(beside - {""})


def _is_path(text: str) -> bool:
    return "/" in text or re.search(r"\w\.[a-z]\w{0,9}$", text) is not None


def _stands_for(pattern: str, path: str) -> bool:
    try:
        return matches(pattern, path) or path.startswith(f"{pattern.rstrip('/')}/")
    except InvalidInput:  # it looks like a path and is none
        return False


def told(lessons: Iterable[Lesson], tokens: int) -> Told:
    """A line for each lesson that there is room for; none is cut, and a shorter one may take a place."""
    lines, left_out = [], []
    for lesson in lessons:
        line = f"- {lesson.id}: {' '.join(lesson.lesson.split())}"
        cost = estimate(len(line) + 1)
        if cost > tokens:
            left_out.append(lesson.id)
            continue
        lines.append(line)
        tokens -= cost
    return Told(lines=tuple(lines), left_out=tuple(left_out))
