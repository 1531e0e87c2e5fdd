"""
Files dealt out to phases: modules with their tests, directories, and an order that was declared.

Where a batch would have to be both before and after another one, because of different
files in it, it is cut: an order that the plan declares counts more than who belongs together.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from planforge.errors import InvalidDocument

Batch: TypeAlias = tuple[str, ...]
Waits: TypeAlias = Mapping[str, frozenset[str]]
"""Files by the files that must be changed before them."""

Key = TypeVar("Key", bound=Hashable)

TEST_NAMES = (
    (re.compile(r"(?P<stem>.+)\.(?:test|spec)\.[cm]?[jt]sx?"), "js"),
    (re.compile(r"test_(?P<stem>.+)\.py"), "py"),
    (re.compile(r"(?P<stem>.+)_test\.py"), "py"),
)
MODULE_NAMES = (
    (re.compile(r"(?P<stem>.+)\.[cm]?[jt]sx?"), "js"),
    (re.compile(r"(?P<stem>.+)\.py"), "py"),
)


def batches(files: tuple[str, ...], max_files: int) -> Iterator[Batch]:
    """Modules with their tests first, then the rest a directory at a time."""
    families = _families(files)
    paired = {path for family in families for path in family}
    directories: dict[str, list[str]] = {}
    for path in files:
        if path not in paired:
            directories.setdefault(path.rpartition("/")[0], []).append(path)
    for group in (*families, *directories.values()):
        for at in range(0, len(group), max_files):
            yield tuple(group[at : at + max_files])


def _families(files: tuple[str, ...]) -> list[list[str]]:
    """Each module that has tests in the list, with them."""
    families: dict[str, list[str]] = {}
    modules = [path for path in files if not _stem(path, TEST_NAMES)]
    by_stem: dict[tuple[str, str], _Homes] = {}
    for module in modules:
        if stem := _stem(module, MODULE_NAMES):
            by_stem.setdefault(stem, _Homes()).add(module)
    for path in files:
        tested = _stem(path, TEST_NAMES)
        if tested and (homes := by_stem.get(tested)):
            home = homes.nearest(path)
            families.setdefault(home, [home]).append(path)
    return [families[module] for module in modules if module in families]


class _Homes:
    """The modules of one name, to be found by the directories that they share with a test."""

    def __init__(self) -> None:
        self._modules: list[str] = []
        self._within: list[frozenset[str]] = []
        self._by_directory: dict[str, list[int]] = {}
        self._found: dict[frozenset[str], str] = {}

    def add(self, module: str) -> None:
        within = _directories(module)
        for name in within:
            self._by_directory.setdefault(name, []).append(len(self._modules))
        self._modules.append(module)
        self._within.append(within)

    def nearest(self, test: str) -> str:
        """The module that has most directories of its path in common with the test; the first of several."""
        shared = frozenset(name for name in _directories(test) if name in self._by_directory)
        if shared not in self._found:
            self._found[shared] = self._modules[self._searched(shared)]
        return self._found[shared]

    def _searched(self, shared: frozenset[str]) -> int:
        # Rare names first: what has none of those shares at most the names that are left.
        rare_first = sorted(shared, key=lambda name: len(self._by_directory[name]))
        most, best = 0, 0
        for left, name in zip(range(len(rare_first), 0, -1), rare_first, strict=True):
            if most > left:
                break
            for at in self._by_directory[name]:
                number = len(shared & self._within[at])
                if number > most or (number == most and at < best):
                    most, best = number, at
        return best


def _stem(path: str, names: Iterable[tuple[re.Pattern[str], str]]) -> tuple[str, str] | None:
    name = path.rpartition("/")[2]
    return next(
        ((found["stem"], kind) for pattern, kind in names if (found := pattern.fullmatch(name))), None
    )


def _directories(path: str) -> frozenset[str]:
    return frozenset(path.split("/")[:-1])


def arranged(made: Sequence[Batch], waits: Waits) -> list[tuple[Batch, tuple[int, ...]]]:
    """The batches in an order that the declared one allows, each with those it must wait for, by position."""
    if not waits:
        return [(batch, ()) for batch in made]
    levels = _levels(waits)
    tangled = _tangled(_needs(made, waits))
    cut: list[Batch] = []
    for at, batch in enumerate(made):
        cut += _by_level(batch, levels) if at in tangled else [batch]
    needs = _needs(cut, waits)
    order = _order(needs)
    place = {at: number for number, at in enumerate(order)}
    return [(cut[at], tuple(sorted(place[need] for need in needs[at]))) for at in order]


def _needs(made: Sequence[Batch], waits: Waits) -> list[set[int]]:
    home = {path: at for at, batch in enumerate(made) for path in batch}
    return [
        {home[other] for path in batch for other in waits.get(path, ())} - {at}
        for at, batch in enumerate(made)
    ]


def _levels(waits: Waits) -> dict[str, int]:
    """How many files at most have to be changed one after the other before each of them."""
    levels: dict[str, int] = {}
    for path in _sorted_by_needs({other: () for others in waits.values() for other in others} | dict(waits)):
        levels[path] = max((1 + levels[other] for other in waits.get(path, ())), default=0)
    if left := {path: others for path, others in waits.items() if path not in levels}:
        names = ", ".join(f"`{path}`" for path in _cycle(left))
        raise InvalidDocument(
            f"files wait for each other: {names}", hint="take one of the dependencies in `## Changes` out"
        )
    return levels


def _sorted_by_needs(needs: Mapping[Key, Collection[Key]]) -> list[Key]:
    """Each after all that it needs; what is part of a cycle, or needs one, is left out."""
    needed_by: dict[Key, list[Key]] = {}
    for key, others in needs.items():
        for other in others:
            needed_by.setdefault(other, []).append(key)
    missing = {key: len(others) for key, others in needs.items()}
    ready = [key for key, count in missing.items() if not count]
    for key in ready:  # which grows meanwhile
        for later in needed_by.get(key, ()):
            missing[later] -= 1
            if not missing[later]:
                ready.append(later)
    return ready


def _cycle(left: Mapping[str, frozenset[str]]) -> list[str]:
    """The files of one cycle, of files that all wait for another one of them."""
    path = next(iter(left))
    walked: dict[str, None] = {}
    while path not in walked:
        walked[path] = None
        path = min(left[path] & left.keys())
    found = list(walked)
    return found[found.index(path) :]


def _tangled(needs: Sequence[set[int]]) -> set[int]:
    """The batches that are part of a cycle, or between two."""
    sorted_first = _sorted_by_needs(dict(enumerate(needs)))
    left = set(range(len(needs))).difference(sorted_first)
    needed_by: dict[int, set[int]] = {at: set() for at in left}
    for at in left:
        for need in needs[at] & left:
            needed_by[need].add(at)
    sorted_last = _sorted_by_needs(needed_by)
    return left.difference(sorted_last)


def _by_level(batch: Batch, levels: Mapping[str, int]) -> list[Batch]:
    by_level: dict[int, list[str]] = {}
    for path in batch:
        by_level.setdefault(levels.get(path, 0), []).append(path)
    return [tuple(by_level[level]) for level in sorted(by_level)]


def _order(needs: Sequence[set[int]]) -> list[int]:
    """Each after what it needs, and otherwise as they came."""
    missing = [len(each) for each in needs]
    needed_by: dict[int, list[int]] = {}
    for at, each in enumerate(needs):
        for need in each:
            needed_by.setdefault(need, []).append(at)
    ready = [at for at, count in enumerate(missing) if not count]
    order = []
    while ready:
        order.append(at := heapq.heappop(ready))
        for later in needed_by.get(at, ()):
            missing[later] -= 1
            if not missing[later]:
                heapq.heappush(ready, later)
    return order
