"""One state of a set of changed files: their tests together, and how those of two states correspond."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple, TypeVar

from planforge.rules.scanning.inspection import opened, outline
from planforge.rules.scanning.languages import Language, Role
from planforge.rules.scanning.outlines import Case, Helper, Outline, Skip
from planforge.rules.scanning.python.outline import helpers
from planforge.rules.scanning.source import Source

DEPTH = 6
"""How deep helpers that call helpers are followed."""

ALIKE = 0.6
"""How much of two tests must be the same for one to be the other under a new name."""

MOST_COMPARED = 400
"""How many tests are compared by their text; with more of them gone, names must do."""


class Placed(NamedTuple):
    """A test and its file."""

    path: str
    case: Case

    @property
    def short(self) -> str:
        """Its name without its classes."""
        return self.case.name.rpartition("::")[2]


class PlacedSkip(NamedTuple):
    """A skip, its file and its line."""

    path: str
    line: int
    skip: Skip


class Suite:
    """The tests of some files in one state."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.known: dict[tuple[str, int], int] = {}
        self.sources: dict[str, Source] = {}
        for path, text in sorted(texts.items()):
            source = opened(path, text)
            if source is not None:
                self.sources[path] = source

    @cached_property
    def outlines(self) -> dict[str, Outline]:
        """The outline of every file."""
        return {path: outline(source, canonical=True) for path, source in self.sources.items()}

    @cached_property
    def cases(self) -> list[Placed]:
        """Every test."""
        return [Placed(path, case) for path, found in self.outlines.items() for case in found.cases]

    @cached_property
    def skips(self) -> list[PlacedSkip]:
        """Every skip."""
        return [
            PlacedSkip(path, self.sources[path].line(skip.at), skip)
            for path, found in self.outlines.items()
            for skip in found.skips
        ]

    @cached_property
    def helpers(self) -> dict[str, Helper]:
        """What tests may call, of all files."""
        found: dict[str, Helper] = {}
        for path, source in self.sources.items():
            if source.language is Language.PYTHON:
                found |= helpers(source)
            else:
                found |= self.outlines[path].helpers
        return found

    def has_tests(self, path: str) -> bool:
        """Whether a file is one of tests."""
        source = self.sources.get(path)
        return source is not None and source.role in (Role.TEST, Role.SUPPORT)

    def asserted_by(self, name: str, depth: int = DEPTH) -> int:
        """How many assertions a call of this name makes."""
        helper = self.helpers.get(name)
        if helper is None or not depth:
            return 0
        known = self.known.get((name, depth))
        if known is None:
            inner = sum(self.asserted_by(other, depth - 1) for other in helper.calls)
            known = self.known[name, depth] = helper.assertions + inner
        return known

    def asserted(self, case: Case) -> int:
        """How many assertions a test makes once, those in what it calls included."""
        own = sum(assertion.weight for assertion in case.assertions)
        return own + sum(times * self.asserted_by(name) for name, times in case.calls.items())

    @cached_property
    def uncalled(self) -> int:
        """Assertions in functions that no test calls by name: fixtures, set-up, what is handed over."""
        called = {name for placed in self.cases for name in placed.case.calls}
        for _ in range(DEPTH):
            called |= {inner for name in called if name in self.helpers for inner in self.helpers[name].calls}
        return sum(helper.assertions for name, helper in self.helpers.items() if name not in called)


def changed_suites(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Suite, Suite]:
    """The tests of the files that are not the same before and after."""
    changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    old, new = ({path: text for path, text in texts.items() if path in changed} for texts in (before, after))
    return Suite(old), Suite(new)


Item = TypeVar("Item")


def beyond(items: Iterable[Item], others: Iterable[Item], key: Callable[[Item], Hashable]) -> list[Item]:
    """The items that the others do not have, each as often as it is missing."""
    left = Counter(map(key, others))
    found = []
    for item in items:
        if left[key(item)]:
            left[key(item)] -= 1
        else:
            found.append(item)
    return found


def pairs(before: list[Placed], after: list[Placed]) -> list[tuple[Placed, Placed]]:
    """Which test of the earlier state is which of the later: by place, by name, then by what it says."""
    found: list[tuple[Placed, Placed]] = []
    ways: tuple[Callable[[Placed], Hashable], ...] = (
        lambda item: (item.path, item.case.name),
        lambda item: item.case.name,
        lambda item: (item.path, item.short),
        lambda item: item.short,
        lambda item: item.case.body or object(),
    )
    for way in ways:
        waiting: dict[Hashable, list[Placed]] = defaultdict(list)
        for item in reversed(after):
            waiting[way(item)].append(item)
        missing = []
        for item in before:
            others = waiting.get(way(item))
            if others:
                found.append((item, others.pop()))
            else:
                missing.append(item)
        before, after = missing, [item for others in waiting.values() for item in others]
    return [*found, *_alike(before, after)]


def _alike(before: list[Placed], after: list[Placed]) -> Iterable[tuple[Placed, Placed]]:
    """Tests with new names whose texts are mostly the old ones."""
    if len(before) > MOST_COMPARED or len(after) > MOST_COMPARED:
        return
    words = {id(item): Counter(item.case.body.split()) for item in (*before, *after)}
    for item in before:
        best = max(after, key=lambda other: _likeness(words[id(item)], words[id(other)]), default=None)
        if best is not None and _likeness(words[id(item)], words[id(best)]) >= ALIKE:
            after = [other for other in after if other is not best]
            yield item, best


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    together = (one | other).total()
    return (one & other).total() / together if together else 0.0
