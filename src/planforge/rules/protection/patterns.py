"""Many patterns at once: most are looked up, and of the others only those that may match are tried."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from planforge.kernel.paths import is_glob, matches, normalise, parents
from planforge.rules.protection.names import same


class Patterns:
    """A set of paths and globs, compared as a file system does that knows no capitals."""

    def __init__(self, patterns: Iterable[str]) -> None:
        spelled = {normalise(same(pattern)) for pattern in patterns}
        self._paths = frozenset(pattern for pattern in spelled if not is_glob(pattern))
        self._names = frozenset(_plain(spelled, "**/", ""))
        self._directories = frozenset(_plain(spelled, "**/", "/**"))
        known = {f"**/{name}" for name in self._names} | {f"**/{name}/**" for name in self._directories}
        self._globs = tuple(sorted(spelled - self._paths - known))

    def match(self, path: str) -> bool:
        """Whether one of them stands for the file at `path`, or for a directory that it lies in."""
        spelled = same(path)
        names = spelled.split("/")
        if names[-1] in self._names or not self._directories.isdisjoint(names):
            return True
        if not self._paths.isdisjoint((spelled, *parents(spelled))):
            return True
        return any(stands_for(pattern, spelled) for pattern in self._globs)

    def below(self, path: str) -> bool:
        """Whether one of them is below `path`, so that a file or a link there takes its place."""
        return any(pattern.startswith(f"{same(path)}/") for pattern in self._paths)


def _plain(patterns: Iterable[str], start: str, end: str) -> Iterator[str]:
    """The names that are all there is to a pattern, but for how it starts and ends."""
    for pattern in patterns:
        name = pattern.removeprefix(start).removesuffix(end)
        if pattern == f"{start}{name}{end}" and not is_glob(name) and "/" not in name:
            yield name


def stands_for(pattern: str, path: str) -> bool:
    """Whether a glob matches; what it says without wildcards is looked for first, which is quick."""
    return _fixed_part(pattern) in path and matches(pattern, path)


@lru_cache(1024)
def _fixed_part(pattern: str) -> str:
    return max(re.split(r"\*\*/|/\*\*|[*?]|\[.*\]", pattern), key=len)
