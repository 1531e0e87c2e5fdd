"""
Files dealt out to phases: modules with their tests, directories, and an order that was declared.

Where a batch would have to be both before and after another one, because of different
files in it, it is cut: an order that the plan declares counts more than who belongs together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from planforge.errors import InvalidDocument
from planforge.kernel.dependencies import cycle, order, waves

Batch: TypeAlias = tuple[str, ...]
Waits: TypeAlias = Mapping[str, frozenset[str]]
"""Files by the files that must be changed before them."""

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
    sequence = order(dict(enumerate(needs)))
    place = {at: number for number, at in enumerate(sequence)}
    return [(cut[at], tuple(sorted(place[need] for need in needs[at]))) for at in sequence]


def _needs(made: Sequence[Batch], waits: Waits) -> list[set[int]]:
    home = {path: at for at, batch in enumerate(made) for path in batch}
    return [
        {home[other] for path in batch for other in waits.get(path, ())} - {at}
        for at, batch in enumerate(made)
    ]


def _levels(waits: Waits) -> dict[str, int]:
    """How many files at most have to be changed one after the other before each of them."""
    needs = {path: sorted(others) for path, others in waits.items()}
    needs |= {other: [] for others in waits.values() for other in others if other not in waits}
    if circle := cycle(needs):
        names = ", ".join(f"`{path}`" for path in circle[:-1])
        raise InvalidDocument(
            f"files wait for each other: {names}", hint="take one of the dependencies in `## Changes` out"
        )
    return {path: number for number, wave in enumerate(waves(needs)) for path in wave}


def _tangled(needs: Sequence[set[int]]) -> set[int]:
    """The batches that are part of a cycle, or between two."""
    sorted_first = order(dict(enumerate(needs)))
    left = set(range(len(needs))).difference(sorted_first)
    needed_by: dict[int, set[int]] = {at: set() for at in left}
    for at in left:
        for need in needs[at] & left:
            needed_by[need].add(at)
    sorted_last = order(needed_by)
    return left.difference(sorted_last)


def _by_level(batch: Batch, levels: Mapping[str, int]) -> list[Batch]:
    by_level: dict[int, list[str]] = {}
    for path in batch:
        by_level.setdefault(levels.get(path, 0), []).append(path)
    return [tuple(by_level[level]) for level in sorted(by_level)]
