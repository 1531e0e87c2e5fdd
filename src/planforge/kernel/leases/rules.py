"""
The rules of leases: given what is held and who waits, what a request leads to.

A decision is the events that make the request true, or the refusal; it may have events
either way, because a lease that was found to have run out is put on record even when
the request is refused. Nothing here reads a clock or a database: `leases` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from planforge.actions import TEXT, Action, Advice
from planforge.errors import InvalidInput, LeaseHeld, PlanforgeError, StaleFence, Unleased, WouldDeadlock
from planforge.kernel.events import (
    Event,
    LeaseAwaited,
    LeaseExpired,
    LeaseGranted,
    LeasePassed,
    LeaseReleased,
    LeaseRenewed,
    LeaseWaitEnded,
)
from planforge.kernel.paths import covers, is_glob, matches, overlap

LATE = timedelta(minutes=1)
"""How far the clock may be behind the newest event about leases before people are told."""

NAMED = 5
"""How many paths a refusal names."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right of one holder to change some paths until a time."""

    holder: str
    paths: tuple[str, ...]
    fence: int
    until: str
    granted_at: str


class Waiter(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody in line: those with a lower place come first."""

    holder: str
    place: int
    paths: tuple[str, ...]
    until: str
    since: str


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Who waits for what, behind whom, since when and for how long at most."""

    holder: str
    paths: tuple[str, ...]
    behind: tuple[str, ...]
    since: str
    until: str


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the way: a path, and who has it or, with fence 0, waits for it before."""

    path: str
    holder: str
    fence: int
    until: str


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision about some paths is made from."""

    now: datetime
    """Never earlier than the newest event about leases."""
    late: timedelta
    """How far the clock is behind that."""
    version: int
    """How many events the stream of leases has."""
    leases: tuple[Lease, ...]
    """Those that overlap with the paths and have not been ended, be their time over or not."""
    line: tuple[Waiter, ...]
    """Everybody in line, the first one first."""

    def is_over(self, until: str) -> bool:
        """Whether that time has come."""
        return until <= stamp(self.now)


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is put on record, and what the asker gets: a lease, a place in line, or a no."""

    events: tuple[Event, ...] = ()
    lease: Lease | None = None
    waiting: Waiting | None = None
    refusal: PlanforgeError | None = None


def stamp(moment: datetime) -> str:
    """A time as events have it; later ones sort later."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def after(now: datetime, span: timedelta) -> str:
    """When `span` will be over."""
    if span <= timedelta(0):
        raise InvalidInput("a lease, and the patience to wait for one, must last longer than no time")
    try:
        return stamp(now + span)
    except OverflowError:
        raise InvalidInput(f"{span} is too long a time") from None


def claim(scene: Scene, holder: str, paths: tuple[str, ...], ttl: timedelta) -> Decision:
    """Grant all of `paths`, or say who is in the way."""
    found = found_over(scene)
    obstacles = in_the_way(scene, holder, paths)
    if obstacles:
        return Decision(events=found, refusal=refusal(obstacles[0], scene.late))
    own = [lease for lease in scene.leases if lease.holder == holder and not scene.is_over(lease.until)]
    fence = scene.version + len(found) + len(own) + 1
    why = f"merged into the lease with fence {fence}"
    merged = tuple(released(holder, lease.fence, why) for lease in own)
    until = max([after(scene.now, ttl), *(lease.until for lease in own)])
    every = tuple(sorted({*paths, *(path for lease in own for path in lease.paths)}))
    granted = LeaseGranted(holder=holder, paths=every, fence=fence, until=until)
    lease = Lease(holder=holder, paths=every, fence=fence, until=until, granted_at=stamp(scene.now))
    return Decision(events=(*found, *merged, granted), lease=lease)


def released(holder: str, fence: int, reason: str) -> LeaseReleased:
    """The end of a lease, by its holder."""
    return LeaseReleased(holder=holder, fence=fence, forced=False, actor=holder, reason=reason)


def line_up(
    scene: Scene,
    holder: str,
    paths: tuple[str, ...],
    ttl: timedelta,
    patience: timedelta,
    behind: Callable[[Waiter], Iterable[str]],
) -> Decision:
    """Grant all of `paths`, or give the holder a place in line, unless it would wait for itself."""
    decision = claim(scene, holder, paths, ttl)
    if decision.refusal is None:
        return decision
    before = tuple(dict.fromkeys(held.holder for held in in_the_way(scene, holder, paths)))
    others = [waiter for waiter in scene.line if waiter.holder != holder and not scene.is_over(waiter.until)]
    cycle = circle(holder, before, {waiter.holder: tuple(behind(waiter)) for waiter in others})
    if cycle:
        return Decision(events=decision.events, refusal=deadlock(cycle))
    names, until = tuple(sorted(before)), after(scene.now, patience)
    awaited = LeaseAwaited(holder=holder, paths=paths, behind=names, until=until)
    place = Waiting(holder=holder, paths=paths, behind=names, since=stamp(scene.now), until=until)
    return Decision(events=(*decision.events, awaited), waiting=place)


def found_over(scene: Scene) -> tuple[Event, ...]:
    """What was found to be over and is not on record yet: leases in the way, and anybody's patience."""
    leases = tuple(
        LeaseExpired(holder=lease.holder, fence=lease.fence, until=lease.until)
        for lease in scene.leases
        if scene.is_over(lease.until)
    )
    waits = tuple(
        LeaseWaitEnded(holder=waiter.holder, reason="its patience was over")
        for waiter in scene.line
        if scene.is_over(waiter.until)
    )
    return (*leases, *waits)


def in_the_way(scene: Scene, holder: str, paths: tuple[str, ...]) -> list[Held]:
    """What keeps `holder` from having `paths` now: the leases of others, then those in line before it."""
    live = [lease for lease in scene.leases if not scene.is_over(lease.until)]
    found = [
        Held(path=_named(*pair), holder=lease.holder, fence=lease.fence, until=lease.until)
        for lease in live
        if lease.holder != holder and (pair := common(paths, lease.paths))
    ]
    has = [path for lease in live if lease.holder == holder for path in lease.paths]
    wanted = tuple(path for path in paths if not any(covers(own, path) for own in has))
    for waiter in scene.line:
        if waiter.holder == holder:
            if waiter.paths == paths and not scene.is_over(waiter.until):
                break  # the rest of the line is behind it
        elif not scene.is_over(waiter.until) and (pair := common(wanted, waiter.paths)):
            found.append(Held(path=_named(*pair), holder=waiter.holder, fence=0, until=waiter.until))
    return found


def common(asked: Iterable[str], other: Sequence[str]) -> tuple[str, str] | None:
    """The first two paths that overlap, one out of each."""
    return next(((path, held) for path in asked for held in other if overlap(path, held)), None)


def _named(asked: str, held: str) -> str:
    """The path that says best where the two meet."""
    if is_glob(asked) != is_glob(held):
        return held if is_glob(asked) else asked
    return asked if is_glob(asked) else max(asked, held, key=len)


def refusal(held: Held, late: timedelta) -> LeaseHeld:
    """The refusal for a path that somebody else holds or is next in line for."""
    release = Action("lease release", str(held.fence), reason=TEXT)
    hint = Advice("wait for it, or take it away: {}{}", release, clock_hint(late))
    if not held.fence:
        hint = Advice("wait in line for it; see who waits: {}{}", Action("lease list"), clock_hint(late))
    error = LeaseHeld(held.path, held.holder, held.until, hint)
    if not held.fence:
        error.message = f"`{held.path}` is next for `{held.holder}`, who waits for it until {held.until}"
        error.args = (error.message,)
    return error


def clock_hint(late: timedelta) -> str:
    """What to say where leases cannot run out, because the clock was set back."""
    if late <= LATE:
        return ""
    behind = timedelta(seconds=int(late.total_seconds()))
    return f"; the clock is {behind} behind the newest lease event, and until then no lease runs out"


def circle(holder: str, before: Iterable[str], behind: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Holders, from `holder` back to itself, each of whom would wait for the next, if there are such."""
    open_: list[tuple[str, ...]] = [(holder, name) for name in before]
    seen = {holder}
    while open_:
        trail = open_.pop()
        for name in behind.get(trail[-1], ()):
            if name == holder:
                return (*trail, holder)
            if name not in seen:
                seen.add(name)
                open_.append((*trail, name))
    return ()


def deadlock(cycle: tuple[str, ...]) -> WouldDeadlock:
    """The refusal for a holder that would wait for itself."""
    return WouldDeadlock(
        f"waiting would never end: {' waits for '.join(f'`{name}`' for name in cycle)}",
        "release what you hold, then claim everything at once",
    )


def stale(fence: int, holder: str | None, lease: Lease | None, fate: str, scene: Scene) -> StaleFence | None:
    """Why nothing may be done under `fence`, if so: what became of it, or whose it is."""
    if lease is None:
        problem = fate or f"there is no lease with fence {fence}"
    elif scene.is_over(lease.until):
        problem = f"the lease of `{lease.holder}` with fence {fence} ran out at {lease.until}"
    elif holder is not None and holder != lease.holder:
        problem = f"the lease with fence {fence} is held by `{lease.holder}`, not by `{holder}`"
    else:
        return None
    return StaleFence(
        problem, f"claim the paths again and start from what is there now{clock_hint(scene.late)}"
    )


def unleased(lease: Lease, paths: Iterable[str]) -> Unleased | None:
    """The no for a change beyond the lease, naming every path, if there is one."""
    beyond = sorted({path for path in paths if not any(matches(own, path) for own in lease.paths)})
    if not beyond:
        return None
    more = f" and {len(beyond) - NAMED} more" if len(beyond) > NAMED else ""
    names = ", ".join(f"`{path}`" for path in beyond[:NAMED])
    covered = ", ".join(f"`{path}`" for path in lease.paths[:NAMED])
    return Unleased(
        f"the lease of `{lease.holder}` with fence {lease.fence} does not cover {names}{more}",
        f"it covers {covered}{' and more' if len(lease.paths) > NAMED else ''}; claim the rest too",
    )


def renew(lease: Lease, now: datetime, ttl: timedelta) -> Decision:
    """Make it last at least `ttl` from now."""
    until = after(now, ttl)
    if until <= lease.until:
        return Decision(lease=lease)
    event = LeaseRenewed(holder=lease.holder, fence=lease.fence, until=until)
    return Decision(events=(event,), lease=msgspec.structs.replace(lease, until=until))


def transfer(lease: Lease, scene: Scene, successor: str, ttl: timedelta) -> Decision:
    """Give it to a successor, under a new fence."""
    fence, until = scene.version + 1, after(scene.now, ttl)
    event = LeasePassed(
        holder=lease.holder, fence=lease.fence, successor=successor, new_fence=fence, until=until
    )
    given = Lease(holder=successor, paths=lease.paths, fence=fence, until=until, granted_at=stamp(scene.now))
    return Decision(events=(event,), lease=given)
