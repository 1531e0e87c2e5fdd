"""
Flows that go at once in a telling, and whether each goes when it went in the recording.

What one flow does to a branch, the others see; so who comes first must be known. It
is known of flows that began when they began in the recording and did what they did
there, and of a flow that has nobody beside it. Under other settings more may go at
once, or fewer, or one may go on where it stopped: then the recording does not say
which of them would have been first.
"""

from __future__ import annotations

import msgspec

from planforge.kernel.effects import Together
from planforge.kernel.replay.tape import Tape, Watching, path_of


class _Group(msgspec.Struct, kw_only=True):
    """The flows of one `Together`, by their paths: where each one begins and ends in the recording."""

    recorded: dict[str, tuple[int, int]]
    begun: set[str] = msgspec.field(default_factory=set)
    ended: set[str] = msgspec.field(default_factory=set)
    late: set[str] = msgspec.field(default_factory=set)
    """Those that do not go when they went then."""


class Company(Watching):
    """Follows the flows of a telling as they begin and end."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._groups: dict[str, _Group] = {}
        self._group_of: dict[str, _Group] = {}

    def gathered(self, key: str, asked: Together[object]) -> None:
        """Flows are about to go at once."""
        paths = [path_of(key, name) for name in asked.flows]
        spans = {path: self._tape.span(path) for path in paths}
        group = _Group(recorded={path: span for path, span in spans.items() if span is not None})
        self._groups[key] = group
        self._group_of |= dict.fromkeys(paths, group)

    def begins(self, path: str) -> None:
        """A flow begins; it is late unless exactly those have ended that had ended then, as they did then."""
        group = self._group_of[path]
        group.begun.add(path)
        span = group.recorded.get(path)
        before = {other for other, (_, last) in group.recorded.items() if span and last < span[0]}
        if span is None or before != group.ended or group.ended & group.late:
            group.late.add(path)

    def ends(self, path: str, last: str) -> None:
        """A flow has ended, with the question under the key `last`."""
        group = self._group_of[path]
        group.ended.add(path)
        entry, span = self._tape.entries.get(last), group.recorded.get(path)
        if entry is None or span is None or entry.last != span[1]:
            group.late.add(path)

    def stops(self, path: str) -> None:
        """The recording ends in a flow, which would have gone on: it is beside the others, unseen."""
        self._group_of[path].late.add(path)

    def is_first(self, key: str) -> bool:
        """Whether the flow that asks under `key` is known to come before all others that run now."""
        path = key.rpartition("/")[0]
        while path in self._group_of:
            group = self._group_of[path]
            beside = group.begun - group.ended - {path}
            if beside and (path in group.late or beside & group.late):
                return False
            path = path.rpartition("/")[0].rpartition("/")[0]
        return True
