"""
Files dealt out to phases: modules with their tests, directories, and an order that was declared.

Where a batch would have to be both before and after another one, because of different
files in it, it is cut: an order that the plan declares counts more than who belongs together.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from planforge.errors import InvalidDocument

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
    by_stem: dict[tuple[str, str] | None, list[str]] = {}
    for module in modules:
        by_stem.setdefault(_stem(module, MODULE_NAMES), []).append(module)
    for path in files:
        tested = _stem(path, TEST_NAMES)
        homes = by_stem.get(tested, []) if tested else []
        if homes:
            home = max(homes, key=lambda module: _shared_parts(module, path))
            families.setdefault(home, [home]).append(path)
    return [families[module] for module in modules if module in families]


def _stem(path: str, names: Iterable[tuple[re.Pattern[str], str]]) -> tuple[str, str] | None:
    name = path.rpartition("/")[2]
    return next(
        ((found["stem"], kind) for pattern, kind in names if (found := pattern.fullmatch(name))), None
    )


def _shared_parts(module: str, test: str) -> int:
    """How near two files lie: how many directories their paths have in common."""
    return len(set(module.split("/")[:-1]) & set(test.split("/")[:-1]))


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
    left = {path: set(others) for path, others in waits.items()}
    levels = dict.fromkeys({other for others in waits.values() for other in others} - left.keys(), 0)
    while free := [path for path, others in left.items() if not others & left.keys()]:
        levels |= {path: 1 + max(levels[other] for other in left[path]) for path in free}
        for path in free:
            del left[path]
    if left:
        names = ", ".join(f"`{path}`" for path in _cycle(left))
        raise InvalidDocument(
            f"files wait for each other: {names}", hint="take one of the dependencies in `## Changes` out"
        )
    return levels


def _cycle(left: Mapping[str, set[str]]) -> list[str]:
    """One way around, of files that all wait for another one of them."""
    path = next(iter(left))
    walked: list[str] = []
    while path not in walked:
        walked.append(path)
        path = min(left[path] & left.keys())
    return walked[walked.index(path) :]


def _tangled(needs: Sequence[set[int]]) -> set[int]:
    """The batches that lie on a way around, or between two."""
    left = set(range(len(needs)))
    while True:
        needed = {need for at in left for need in needs[at]}
        loose = {at for at in left if not needs[at] & left or at not in needed}
        if not loose:
            return left
        left -= loose


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
