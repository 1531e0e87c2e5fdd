"""
Answers an agent that asks before it does something.

The role decides: whoever reads may read, whoever changes files may change those that are leased to it, inside
its worktree, and may run programs there. The rest is denied, or put to the person if the settings say so and
somebody is there. None of this is the wall: the sandbox is, and a look at what was changed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from planforge.agents.protocol import ToolRequest
from planforge.errors import InvalidInput
from planforge.kernel.effects import Access, ToolUse
from planforge.kernel.paths import exact, matches

READING = frozenset({"read", "search", "think", "fetch"})
CHANGING = frozenset({"edit", "delete", "move"})
KEPT = 20
"""How many answers are on record one by one; of all of them, how many there were."""

ALLOWED, DENIED = "allowed", "denied"

Ask = Callable[[str], Awaitable[bool]]
"""Puts a question to the person at the terminal."""


class Permissions:
    """Answers for one call of one agent."""

    def __init__(
        self,
        agent: str,
        access: Access,
        *,
        cwd: Path,
        own: Sequence[Path] = (),
        leased: Sequence[str] | None = None,
        person: Ask | None = None,
    ) -> None:
        self._agent = agent
        self._access = access
        self._cwd = cwd.resolve()
        self._own = tuple(place.resolve() for place in own)
        """The agent's own directories, in which it may do as it likes."""
        self._leased = leased
        """The paths and globs that it may change; None is everything in its worktree."""
        self._person = person
        self._counts: Counter[str] = Counter()
        self._last: deque[ToolUse] = deque(maxlen=KEPT)

    async def __call__(self, request: ToolRequest) -> bool:
        """Whether it may, this once."""
        why_not = self._why_not(request)
        may = not why_not
        if why_not and self._person is not None:
            what = f"{request.kind}: {request.title}" if request.title else request.kind
            may = await self._person(f"agent `{self._agent}` wants to {what} ({why_not}). Allow it?")
        status = ALLOWED if may else DENIED
        self._counts[status] += 1
        self._last.append(ToolUse(kind=request.kind, title=request.title[:200], status=status))
        return may

    @property
    def answered(self) -> tuple[ToolUse, ...]:
        """What was asked and answered: the last of it, and how much it was if that is not all."""
        if not self._counts:
            return ()
        if sum(self._counts.values()) <= KEPT:
            return tuple(self._last)
        said = ", ".join(f"{count} {status}" for status, count in sorted(self._counts.items()))
        return (ToolUse(kind="other", title=f"asked for permission: {said}", status=""), *self._last)

    def _why_not(self, request: ToolRequest) -> str:
        """Why the role does not allow it; empty if it does."""
        if request.kind in READING:
            return ""
        if request.kind in CHANGING:
            if outside := [path for path in request.paths if not self._is_own(path)]:
                return self._why_not_change(outside)
            # What names no path is confined by the sandbox, and looked at before it lands.
            return "" if self._access is Access.WRITE or request.paths else "it may only read"
        if request.kind == "execute":
            return "" if self._access is Access.WRITE else "it may only read"
        return "no role allows that"

    def _why_not_change(self, paths: Sequence[str]) -> str:
        if self._access is not Access.WRITE:
            return "it may only read"
        for path in paths:
            place = (self._cwd / path).resolve()
            if not place.is_relative_to(self._cwd):
                return f"`{path}` is not in its worktree"
            if self._leased is None:
                continue
            try:
                name = exact(place.relative_to(self._cwd).as_posix())
            except InvalidInput:
                return f"`{path}` is no file"
            if not any(matches(pattern, name) for pattern in self._leased):
                return f"`{name}` is not leased to it"
        return ""

    def _is_own(self, path: str) -> bool:
        place = (self._cwd / path).resolve()
        return any(place.is_relative_to(own) for own in self._own)
