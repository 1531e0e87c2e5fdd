"""
What waits for what: cycles, an order, waves, and the heaviest chain.

Pure, for the steps of a plan or anything else; among equals the given order decides.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from heapq import heapify, heappop, heappush
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def cycle(needs: Mapping[Key, Collection[Key]]) -> list[Key]:
    """Steps of which each depends on the next, the last being the first again; empty if there are none."""
    finished: set[Key] = set()
    for start in needs:
        path: list[Key] = []
        place: dict[Key, int] = {}
        open_ = [(start, iter(needs[start]))] if start not in finished else []
        while open_:
            step, rest = open_[-1]
            if step not in place:
                place[step] = len(path)
                path.append(step)
            following = next((needed for needed in rest if needed in needs and needed not in finished), None)
            if following is None:
                open_.pop()
                path.pop()
                del place[step]
                finished.add(step)
            elif following in place:
                return [*path[place[following] :], following]
            else:
                open_.append((following, iter(needs[following])))
    return []


def order(needs: Mapping[Key, Collection[Key]]) -> list[Key]:
    """Each step after all it depends on, otherwise as planned. Those in a cycle are left out."""
    ordinal = {step: number for number, step in enumerate(needs)}
    names = list(needs)
    left = {step: len({needed for needed in needs[step] if needed in ordinal}) for step in needs}
    dependents = _dependents(needs)
    ready = [ordinal[step] for step, count in left.items() if not count]
    heapify(ready)
    found = []
    while ready:
        step = names[heappop(ready)]
        found.append(step)
        for dependent in dependents[step]:
            left[dependent] -= 1
            if not left[dependent]:
                heappush(ready, ordinal[dependent])
    return found


def waves(needs: Mapping[Key, Collection[Key]]) -> list[list[Key]]:
    """What could be done at once: each wave needs only the ones before it."""
    level: dict[Key, int] = {}
    for step in order(needs):
        level[step] = 1 + max((level[needed] for needed in needs[step] if needed in level), default=-1)
    found: list[list[Key]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for step in needs:
        if step in level:
            found[level[step]].append(step)
    return found


def heaviest(
    needs: Mapping[Key, Collection[Key]], weights: Mapping[Key, int], among: Collection[Key] | None = None
) -> tuple[tuple[Key, ...], int]:
    """The chain with the most weight among some steps; of several, the first in the plan's order."""
    inside = {step: needs[step] for step in needs if among is None or step in among}
    ordinal = {step: number for number, step in enumerate(inside)}
    dependents = _dependents(inside)
    total: dict[Key, int] = {}
    following: dict[Key, Key | None] = {}

    def better(step: Key) -> tuple[int, int]:
        return -total[step], ordinal[step]

    for step in reversed(order(inside)):
        best = min((next_ for next_ in dependents[step] if next_ in total), key=better, default=None)
        following[step] = best
        total[step] = weights[step] + (total[best] if best is not None else 0)
    step_ = min(total, key=better, default=None)
    weight = total[step_] if step_ is not None else 0
    chain = []
    while step_ is not None:
        chain.append(step_)
        step_ = following[step_]
    return tuple(chain), weight


def _dependents(needs: Mapping[Key, Collection[Key]]) -> dict[Key, list[Key]]:
    found: dict[Key, list[Key]] = {step: [] for step in needs}
    for step, needed in needs.items():
        for name in dict.fromkeys(needed):
            if name in found:
                found[name].append(step)
    return found
