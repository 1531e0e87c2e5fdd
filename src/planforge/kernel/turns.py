"""
Whose turn it is, of several that go at once.

Each may wait for others to end, and no more than a limit are under way. Whoever is
ready begins as soon as there is a place, in the order given; whoever waits holds no
place. The driver, a replay and a backtest all ask here, so that they agree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from planforge.kernel.dependencies import order


class Turns:
    """Names, of which each begins once and ends once."""

    def __init__(
        self, names: Iterable[str], limit: int, after: Mapping[str, Collection[str]] | None = None
    ) -> None:
        self._left = list(names)
        self._limit = limit
        self._waits = waiting(self._left, after)
        self._ended: set[str] = set()
        self._under_way: set[str] = set()

    def begin(self) -> list[str]:
        """Those that begin now: they are under way from here on."""
        beginning: list[str] = []
        for name in self._left:
            if len(self._under_way) >= self._limit:
                break
            if self._ended.issuperset(self._waits.get(name, ())):
                beginning.append(name)
                self._under_way.add(name)
        if beginning:
            self._left = [name for name in self._left if name not in self._under_way]
        return beginning

    def end(self, name: str) -> None:
        """It has ended, well or not, and leaves its place."""
        self._under_way.remove(name)
        self._ended.add(name)

    def stop(self) -> None:
        """Nobody begins any more."""
        self._left = []


def waiting(
    names: Collection[str], after: Mapping[str, Collection[str]] | None
) -> dict[str, tuple[str, ...]]:
    """Which of `names` wait for which, sorted; a ValueError if one is unknown or all would wait for ever."""
    waits = {name: tuple(sorted(set(before))) for name, before in sorted((after or {}).items()) if before}
    known = set(names)
    for name, before in waits.items():
        if unknown := sorted({name, *before} - known):
            raise ValueError(f"`{name}` is to begin after {', '.join(before)}: there is no `{unknown[0]}`")
    if left := known.difference(order({name: waits.get(name, ()) for name in names})):
        raise ValueError(f"these would wait for each other for ever: {', '.join(sorted(left))}")
    return waits
