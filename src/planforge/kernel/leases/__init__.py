"""
Who may change which files, and until when.

A lease covers a set of paths and globs, all of them or none, and has a fence: a number
that only rises, the version of the stream `leases` at which it was granted. Whoever
lands shows its fence; once the lease has run out, was taken away or passed on, the fence
opens nothing. No two live leases have a path in common.

Here the ledger is read and written; what a request leads to is decided in `leasing`. The
functions that only look (`held`, `waiting`, `of_path`, `blocking`, `require`) may also be
called by whoever is deciding inside `Ledger.transact`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec

from planforge.actions import see
from planforge.errors import InvalidInput, Locked, NotFound, PlanforgeError, StaleFence
from planforge.kernel.events import LeaseExpired, LeaseGranted, LeasePassed, LeaseReleased, LeaseWaitEnded
from planforge.kernel.leases import rules as leasing
from planforge.kernel.leases import tables
from planforge.kernel.leases.rules import Decision, Held, Lease, Scene, Waiter, Waiting, stamp
from planforge.kernel.ledger import Ledger, Write
from planforge.kernel.paths import exact, matches, normalise, normalise_all

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

LOOK_SECONDS = 1.0
"""How long a waiter sleeps at most before it looks again."""


# Taking


def claim(ledger: Ledger, holder: str, paths: Iterable[str], *, ttl: timedelta) -> Lease:
    """
    Take all of `paths`, or raise `LeaseHeld` naming who has one of them, or is before you in line for it.

    Paths that the holder has already are kept: what overlaps is merged into the new lease, under its fence.
    """
    wanted = _asked(holder, paths, ttl)
    return _granted(ledger, lambda: leasing.claim(tables.scene(ledger, wanted), holder, wanted, ttl))


def line_up(
    ledger: Ledger, holder: str, paths: Iterable[str], *, ttl: timedelta, patience: timedelta
) -> Lease | Waiting:
    """Take all of `paths`, or a place in line for them; raises `WouldDeadlock` if that is no use."""
    wanted = _asked(holder, paths, ttl, patience)

    def decide() -> Decision:
        scene = tables.scene(ledger, wanted)
        # A place for other paths is given up by asking for these, so nobody waits behind it any more.
        line = tuple(place for place in scene.line if place.holder != holder or place.paths == wanted)
        return leasing.line_up(
            scene, holder, wanted, ttl, patience, lambda waiter: tables.behind(ledger, waiter, line)
        )

    made = _settle(ledger, decide)
    found = made.lease or made.waiting
    assert found is not None
    return found


def wait(ledger: Ledger, holder: str, paths: Iterable[str], *, ttl: timedelta, patience: timedelta) -> Lease:
    """
    Take all of `paths` as soon as they are free and it is the holder's turn.

    Raises `LeaseHeld` when patience is over, `WouldDeadlock` when those it waits for wait for it.
    """
    from planforge.kernel.bus import subscribe

    wanted = _asked(holder, paths, ttl, patience)
    deadline = time.monotonic() + patience.total_seconds()  # the clock of leases may stand still
    with subscribe(ledger, streams=(tables.STREAM,), after=ledger.head()) as news:
        try:
            found = line_up(ledger, holder, wanted, ttl=ttl, patience=patience)
            while isinstance(found, Waiting):
                left = deadline - time.monotonic()
                if left > 0 and news.next(min(left, _until_something_is_over(ledger, wanted))):
                    news.poll()
                found = _look_again(ledger, found, ttl, is_last=left <= 0)
        except BaseException as error:
            if not isinstance(error, PlanforgeError):
                with suppress(PlanforgeError):
                    give_up(ledger, holder, f"it was stopped ({type(error).__name__})")
            raise
    return found


def give_up(ledger: Ledger, holder: str, reason: str) -> None:
    """Leave the line, if the holder is in it."""

    def decide() -> list[Write]:
        if not any(waiter.holder == holder for waiter in tables.line(ledger)):
            return []
        return [Write(tables.STREAM, None, [LeaseWaitEnded(holder=holder, reason=reason)])]

    ledger.transact(decide)


def _look_again(ledger: Ledger, place: Waiting, ttl: timedelta, *, is_last: bool) -> Lease | Waiting:
    """The lease, if it is to be had now; otherwise the place in line, as long as patience lasts."""
    holder, paths = place.holder, place.paths
    scene = tables.scene(ledger, paths)
    mine = next((waiter for waiter in scene.line if waiter.holder == holder), None)
    if mine is not None and mine.paths != paths:
        raise Locked(f"`{holder}` now waits for other paths", "give every holder a name of its own")
    obstacles = leasing.in_the_way(scene, holder, paths)
    if not obstacles:
        with suppress(Locked):  # somebody else was quicker
            return claim(ledger, holder, paths, ttl=ttl)
    if is_last or mine is None or scene.is_over(mine.until):
        give_up(ledger, holder, "its patience was over")
        return claim(ledger, holder, paths, ttl=ttl)  # once more, for the refusal that is true now
    if cycle := _closed_circle(ledger, scene, mine, obstacles):
        give_up(ledger, holder, "those it waited for came to wait for it")
        raise leasing.deadlock(cycle)
    return place


def _closed_circle(ledger: Ledger, scene: Scene, mine: Waiter, obstacles: list[Held]) -> tuple[str, ...]:
    """A deadlock that came about while waiting, by a lease passed on, if it is for this waiter to end it."""
    live = {waiter.holder: waiter for waiter in scene.line if not scene.is_over(waiter.until)}
    behind = {
        name: tables.behind(ledger, waiter, scene.line)
        for name, waiter in live.items()
        if name != mine.holder
    }
    cycle = leasing.circle(mine.holder, [held.holder for held in obstacles], behind)
    # One is enough, so it is the one who came last.
    return cycle if all(live[name].place <= mine.place for name in cycle) else ()


def _until_something_is_over(ledger: Ledger, paths: tuple[str, ...]) -> float:
    """How long until a lease or the patience of somebody runs out, as the clock is now."""
    scene = tables.scene(ledger, paths)
    ends = [lease.until for lease in scene.leases] + [waiter.until for waiter in scene.line]
    seconds = [(datetime.fromisoformat(end) - ledger.now()).total_seconds() for end in ends]
    return max(0.01, min([LOOK_SECONDS, *(left for left in seconds if left > 0)]))


# Keeping and ending


def renew(ledger: Ledger, holder: str, fence: int, ttl: timedelta) -> Lease:
    """Make a live lease last at least `ttl` from now, or raise `StaleFence`."""
    return _under(ledger, fence, holder, lambda lease, scene: leasing.renew(lease, scene.now, ttl))


def release(ledger: Ledger, holder: str, fence: int, reason: str = "no longer needed") -> Lease:
    """End a live lease of one's own, or raise `StaleFence`."""
    event = leasing.released(holder, fence, reason)
    return _under(ledger, fence, holder, lambda lease, _: Decision(events=(event,), lease=lease))


def force(ledger: Ledger, fence: int, actor: str, reason: str) -> Lease:
    """Take a live lease away from its holder, or raise `NotFound`. Who did it and why is on record."""
    if not reason.strip():
        raise InvalidInput("a lease is taken away only for a reason", 'say why: `--reason "it hangs"`')
    if not actor.strip():
        raise InvalidInput("a lease is taken away by somebody")

    def decide(lease: Lease, _: Scene) -> Decision:
        event = LeaseReleased(
            holder=lease.holder, fence=fence, forced=True, actor=actor, reason=reason.strip()
        )
        return Decision(events=(event,), lease=lease)

    try:
        return _under(ledger, fence, None, decide)
    except StaleFence as error:
        raise NotFound(error.message, see("lease list")) from error


def transfer(ledger: Ledger, fence: int, successor: str, ttl: timedelta) -> Lease:
    """Give a live lease to a successor under a new fence, or raise `StaleFence`."""
    _named_holder(successor)
    return _under(ledger, fence, None, lambda lease, scene: leasing.transfer(lease, scene, successor, ttl))


def admit(ledger: Ledger, fence: int, holder: str, paths: Iterable[str], grace: timedelta) -> Lease:
    """
    Let a change of `paths` through to its landing: what `require` asks for, and the lease lasts `grace` more.

    Both in one transaction, so the lease cannot run out between this check and the move of the branch.
    """
    changed = [exact(path) for path in paths]

    def decide(lease: Lease, scene: Scene) -> Decision:
        refused = leasing.unleased(lease, changed)
        return Decision(refusal=refused) if refused else leasing.renew(lease, scene.now, grace)

    return _under(ledger, fence, holder, decide)


def _under(
    ledger: Ledger, fence: int, holder: str | None, decide: Callable[[Lease, Scene], Decision]
) -> Lease:
    """Do something with a live lease. That it has run out is put on record, so that it stays so."""

    def guarded() -> Decision:
        lease, scene = tables.with_fence(ledger, fence), tables.scene(ledger)
        refused = leasing.stale(fence, holder, lease, tables.fate(ledger, fence), scene)
        if refused is None:
            assert lease is not None
            return decide(lease, scene)
        expired = lease is not None and scene.is_over(lease.until)
        events = (
            (LeaseExpired(holder=lease.holder, fence=fence, until=lease.until),) if lease and expired else ()
        )
        return Decision(events=events, refusal=refused)

    return _granted(ledger, guarded)


# Looking


def require(ledger: Ledger, fence: int, paths: Iterable[str], holder: str) -> Lease:
    """The live lease of `holder` with this fence, or `StaleFence`; `Unleased` if a path is beyond it."""
    changed = [exact(path) for path in paths]
    lease = tables.with_fence(ledger, fence)
    refused = leasing.stale(fence, holder, lease, tables.fate(ledger, fence), tables.scene(ledger))
    if refused is not None:
        raise refused
    assert lease is not None
    if beyond := leasing.unleased(lease, changed):
        raise beyond
    return lease


def held(ledger: Ledger) -> list[Lease]:
    """Every lease that is live now, the oldest first."""
    now = stamp(tables.moment(ledger)[0])
    return [lease for lease in ledger.select(Lease, "leases ORDER BY fence") if lease.until > now]


def waiting(ledger: Ledger) -> list[Waiting]:
    """Everybody who waits now, in the order of their places, and behind whom."""
    scene = tables.scene(ledger)
    return [
        Waiting(
            holder=waiter.holder,
            paths=waiter.paths,
            behind=tuple(sorted(tables.behind(ledger, waiter, scene.line))),
            since=waiter.since,
            until=waiter.until,
        )
        for waiter in scene.line
        if not scene.is_over(waiter.until)
    ]


def of_path(ledger: Ledger, path: str) -> Lease | None:
    """The live lease that covers the file at `path`."""
    name, now = exact(path), stamp(tables.moment(ledger)[0])
    for lease in tables.candidates(ledger, name, lambda path, glob: matches(glob, path)):
        if lease.until > now and any(matches(own, name) for own in lease.paths):
            return lease
    return None


def find(ledger: Ledger, name: str) -> Lease | None:
    """The live lease that a person means by a fence, one of its paths or globs, or a file that it covers."""
    if name.isdecimal():
        found = [lease for lease in held(ledger) if lease.fence == int(name)]
    else:
        pattern = normalise(name)
        found = [lease for lease in held(ledger) if pattern in lease.paths]
    return found[0] if found else None if name.isdecimal() else of_path(ledger, name)


def blocking(ledger: Ledger, holder: str, paths: Iterable[str]) -> list[Held]:
    """What keeps `holder` from having `paths` now; with fence 0, somebody who is before it in line."""
    wanted = normalise_all(paths)
    return leasing.in_the_way(tables.scene(ledger, wanted), holder, wanted)


# Deciding inside the transaction that records


def _settle(ledger: Ledger, decide: Callable[[], Decision]) -> Decision:
    """Record what was decided, refused or not; then raise the refusal, if it is one."""
    made = Decision()

    def write() -> list[Write]:
        nonlocal made
        made = decide()
        return [Write(tables.STREAM, None, made.events)] if made.events else []

    recorded = ledger.transact(write)
    if made.refusal is not None:
        raise made.refusal
    if made.lease and recorded and isinstance(recorded[-1].event, LeaseGranted | LeasePassed):
        lease = msgspec.structs.replace(made.lease, granted_at=recorded[-1].at)
        return msgspec.structs.replace(made, lease=lease)
    return made


def _granted(ledger: Ledger, decide: Callable[[], Decision]) -> Lease:
    lease = _settle(ledger, decide).lease
    assert lease is not None
    return lease


def _asked(holder: str, paths: Iterable[str], *spans: timedelta) -> tuple[str, ...]:
    """The paths in the one order in which sets are granted, if the request makes sense."""
    _named_holder(holder)
    for span in spans:
        leasing.after(EPOCH, span)
    wanted = normalise_all(paths)
    if not wanted:
        raise InvalidInput("a lease needs at least one path")
    return wanted


def _named_holder(holder: str) -> None:
    if not holder.strip():
        raise InvalidInput("a lease needs a holder with a name")
