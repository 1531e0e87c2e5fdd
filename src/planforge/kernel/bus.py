"""
Events for whoever wants to hear of them, in any process.

A subscription goes through the events in order, each once: first those on record
after a sequence number, then new ones as they come. It reads the ledger, which is
the only place events are kept, so nobody can be too slow for it and nothing is
ever dropped; a writer's call only says when to look again.

A subscriber with a name has a cursor in the ledger. It acknowledges what it has
dealt with, and whoever comes back under that name goes on from there. One that
answers with events of its own records answer and cursor in one transaction
(`Subscription.answer`): whenever it is killed, nothing is missed and nothing is
answered twice.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Self

import msgspec

from planforge.errors import Conflict, PlanforgeError
from planforge.kernel.events import Recorded
from planforge.kernel.filters import Filter, Page, pages
from planforge.kernel.ledger import PAGE, Ledger, Write
from planforge.kernel.wakeups import Ear

INTERVAL = 1.0
"""How many seconds pass before somebody who is not called looks anyway."""


def subscribe(
    ledger: Ledger,
    wanted: Filter | None = None,
    *,
    kinds: Sequence[str] = (),
    streams: Sequence[str] = (),
    plan: str = "",
    after: int = 0,
    name: str = "",
) -> Subscription:
    """
    The events that match, after `after` and, for a subscriber with a name, after what it has acknowledged.

    What to match is said by a filter or by the keywords.
    """
    if wanted is None:
        wanted = Filter(kinds=tuple(kinds), streams=tuple(streams), plan=plan)
    elif kinds or streams or plan:
        raise TypeError("a filter or keywords, not both")
    start = max(after, wanted.after, ledger.cursor(name) if name else 0)
    return Subscription(ledger, msgspec.structs.replace(wanted, after=start), name)


class Subscription:
    """
    Somebody's way through the events. One thread or task at a time goes it; any may close it.

    `for recorded in subscription` and `async for` go on until it is closed.
    """

    def __init__(self, ledger: Ledger, wanted: Filter, name: str = "") -> None:
        self.name = name
        self.looks = 0
        """How often it has looked whether there is anything new."""
        self._ledger = ledger
        self._filter = wanted
        self._ear: Ear | None = None
        self._found: deque[Recorded] = deque()
        self._pages: Iterator[Page] = iter(())
        self._until = wanted.after
        """As far as it has looked."""
        self._seen = wanted.after
        """As far as the events have been read."""
        self._given = wanted.after
        """The last event that was handed out."""
        self._due = 0.0
        """When to look again if nobody calls."""
        self._state = threading.Lock()
        self._closed = self._waiting = False

    # Going through them

    def poll(self, limit: int = PAGE) -> list[Recorded]:
        """What there is now, at most `limit` events, without waiting."""
        self._due = 0.0
        found: list[Recorded] = []
        while len(found) < limit and (recorded := self._take()) is not None:
            found.append(recorded)
        return found

    def next(self, timeout: float | None = None) -> Recorded | None:
        """The next event, or None if there is none within `timeout` seconds or the subscription is closed."""
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        while not self._closed:
            if (recorded := self._take()) is not None:
                return recorded
            if self._ear is None:
                self._listen()
            elif not self._wait(deadline):
                return None
        return None

    def __iter__(self) -> Iterator[Recorded]:
        while (recorded := self.next()) is not None:
            yield recorded

    async def __aiter__(self) -> AsyncIterator[Recorded]:
        import asyncio

        while not self._closed:
            if not self._found:
                await asyncio.sleep(0)  # others have their turn between two pages
            if (recorded := self._take()) is not None:
                yield recorded
            elif self._ear is None:
                self._listen()
            else:
                await self._wait_async()

    def _take(self) -> Recorded | None:
        if not self._found:
            self._read()
        if not self._found and time.monotonic() >= self._due:
            self._look()
            self._read()
        if not self._found:
            return None
        recorded = self._found.popleft()
        self._given = recorded.seq
        return recorded

    def _look(self) -> None:
        """See how far the ledger goes by now."""
        self.looks += 1
        if self._ear is not None and self._due:
            self._ear.renew()
        now = time.monotonic()
        self._due = now + INTERVAL
        if self._ear is not None and now < self._ear.sure:  # there may be writers that do not call it yet
            self._due = self._ear.sure
        self._until = self._ledger.head()
        if self._until > self._seen:
            wanted = msgspec.structs.replace(self._filter, after=self._seen)
            self._pages = pages(self._ledger, wanted, until=self._until)

    def _read(self) -> None:
        """Read on, until something matches or there is no more."""
        while not self._found and self._seen < self._until:
            try:
                page = next(self._pages)
            except BaseException:
                # The pages after it are lost with it: next time they are read from where this one began.
                self._until = self._seen
                raise
            self._found.extend(page.events)
            self._seen = page.until
            self._pass_by()

    # Waiting

    def _listen(self) -> None:
        """From now on writers call. What they wrote until now is to be looked for once more."""
        self._ear = Ear(self._ledger.directory)
        self._due = 0.0

    def _wait(self, deadline: float) -> bool:
        """Wait until there is a reason to look; False if there is none before the deadline."""
        ear = self._begin_waiting()
        if ear is None:
            return False
        try:
            called = ear.wait(min(self._due, deadline) - time.monotonic())
        finally:
            self._end_waiting()
        return self._called(called, deadline)

    async def _wait_async(self) -> None:
        ear = self._begin_waiting()
        if ear is None:
            return
        try:
            called = await ear.wait_async(self._due - time.monotonic())
        finally:
            self._end_waiting()
        self._called(called, float("inf"))

    def _called(self, called: bool, deadline: float) -> bool:
        if called:
            self._due = 0.0
        now = time.monotonic()
        return now >= self._due or now < deadline

    def _begin_waiting(self) -> Ear | None:
        with self._state:
            self._waiting = not self._closed
            return None if self._closed else self._ear

    def _end_waiting(self) -> None:
        with self._state:
            self._waiting = False
            if self._closed and self._ear is not None:
                self._ear.close()

    def close(self) -> None:
        """Stop. Whoever waits for the next event is told that there is none."""
        with self._state:
            self._closed = True
            if self._ear is None:
                return
            if self._waiting:  # then whoever waits lets go of the ear
                self._ear.call()
            else:
                self._ear.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Acknowledging

    def acknowledge(self, recorded: Recorded) -> None:
        """Say that this event and all before it were dealt with; they do not come again."""
        self._ledger.append_all([], acknowledge={self._named(): self.passed(recorded)})

    def answer(self, recorded: Recorded, writes: Iterable[Write]) -> list[Recorded]:
        """
        Append an answer to this event and acknowledge it: both, or neither.

        If it was acknowledged before, by another process under this name, there is no second answer.
        """
        name, known = self._named(), list(writes)

        def decide() -> list[Write]:
            if self._ledger.cursor(name) >= recorded.seq:
                raise Conflict(f"`{name}` has dealt with event {recorded.seq} already")
            return known

        return self._ledger.transact(decide, {name: self.passed(recorded)})

    def passed(self, recorded: Recorded) -> int:
        """What to acknowledge once this event was dealt with: itself, and what follows and does not match."""
        if recorded.seq != self._given:
            return recorded.seq
        return self._found[0].seq - 1 if self._found else max(recorded.seq, self._seen)

    def _named(self) -> str:
        if not self.name:
            raise TypeError("a subscriber without a name has no cursor to move")
        return self.name

    def _pass_by(self) -> None:
        """Move the cursor past many events that do not match, so that they need not be read again."""
        if not self.name or self._found or self._seen - self._given < PAGE:
            return
        if self._given <= self._ledger.cursor(self.name) <= self._seen - PAGE:  # what was given is dealt with
            with suppress(PlanforgeError):  # it is only to save time later
                self._ledger.append_all([], acknowledge={self.name: self._seen})
