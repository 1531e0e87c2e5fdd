"""
The file leases of one run: claimed by its steps, renewed while the run is driven, checked when they land.

A lease lasts a few minutes and is renewed for as long as this process is there, so a
crash blocks nobody for long. So does a place in line. Whoever takes a run up claims
its leases anew, under fences of its own: what is left of the process before it can
land nothing. Work that was done under a lease lands only if nobody else has had its
files since; otherwise the attempt is lost and the next one leases anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from planforge.actions import Action, Advice
from planforge.errors import (
    CannotPerform,
    InvalidInput,
    LeaseHeld,
    LeaseLost,
    PlanforgeError,
    StaleFence,
    Unleased,
)
from planforge.kernel import leases
from planforge.kernel.bus import Subscription, subscribe
from planforge.kernel.effects import ClaimLease, HandOver, Handover, Land, Leased, ReleaseLease, RunAgent
from planforge.kernel.events import (
    EffectCompleted,
    EffectIntended,
    Event,
    LeaseGranted,
    LeasePassed,
    LeaseReleased,
)
from planforge.kernel.leases.rules import Lease, Waiting
from planforge.kernel.leases.tables import STREAM
from planforge.kernel.paths import normalise_all, overlap
from planforge.kernel.payloads import unpack

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.kernel.driver import Call
    from planforge.kernel.ledger import Ledger

LANDING = timedelta(seconds=60)
"""How long a lease lasts at least once its change is let through to the branch."""

LOOK_SECONDS = 1.0
"""How long whoever waits goes without looking, should nobody wake it."""

GONE = "somebody else has had its files since"


class Kept(NamedTuple):
    """What a holder had leased when it was last heard of."""

    paths: tuple[str, ...]
    fence: int


class Leasing:
    """Performs what a run asks about leases."""

    def __init__(self, project: Project, run: str) -> None:
        self._project = project
        self._ledger = project.ledger
        self._run = run
        self._held: dict[str, Kept] = {}
        """What this process has, by holder."""
        self._before: dict[str, Kept] = {}
        """What the processes before it had, and what it could not have yet."""
        self._lost: dict[str, str] = {}
        """Why what was done under a lease until now cannot land, by holder."""
        self._renewing: asyncio.Task[None] | None = None

    @property
    def _ttl(self) -> timedelta:
        # Not before there is a lease: a demo makes the settings that it is run under.
        return timedelta(seconds=self._project.settings.run.lease_seconds)

    @asynccontextmanager
    async def attended(self) -> AsyncIterator[None]:
        """Take up what the run had, renew what it has, and give all of it back, however it ends."""
        self._take_up()
        reason = "its run has ended"
        try:
            yield
        except BaseException as error:
            said = error.message if isinstance(error, PlanforgeError) else "it was told to"
            reason = f"its run has stopped: {said}"
            raise
        finally:
            if self._renewing is not None:
                self._renewing.cancel()
            for holder in list(self._held):
                with suppress(PlanforgeError):  # it runs out by itself
                    self._give_back(holder, reason)

    def _take_up(self) -> None:
        known = outstanding(self._ledger, self._run)
        for lease in _live(self._ledger, self._run):
            known[lease.holder] = Kept(lease.paths, lease.fence)
        for holder, kept in known.items():
            self._before[holder] = kept
            if not _is_untouched(self._ledger, kept, own=f"{self._run}/"):
                self._lost[holder] = GONE
            with suppress(LeaseHeld):  # whoever needs it will wait for it
                self._have(leases.claim(self._ledger, holder, kept.paths, ttl=self._ttl))

    def _have(self, lease: Lease) -> None:
        self._held[lease.holder] = Kept(lease.paths, lease.fence)
        self._before.pop(lease.holder, None)
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._ttl.total_seconds() / 3)
            for holder in list(self._held):
                with suppress(PlanforgeError):  # one that is lost is found out by whoever needs it
                    self._keep(holder)

    def _keep(self, holder: str) -> None:
        """Make a lease last, or raise why it is lost. One that ran out unnoticed by anybody is had again."""
        kept = self._held[holder]
        try:
            leases.renew(self._ledger, holder, kept.fence, self._ttl)
        except StaleFence as error:
            try:
                if not _is_untouched(self._ledger, kept):
                    raise
                self._have(leases.claim(self._ledger, holder, kept.paths, ttl=self._ttl))
            except (StaleFence, LeaseHeld):
                self._lost[holder] = error.message
                del self._held[holder]
                raise error from None

    # Effects

    async def claim(self, effect: ClaimLease, call: Call) -> Leased:
        """Take the paths, or wait for them."""
        del call
        lease = await self._take(effect.holder, effect.paths)
        self._lost.pop(effect.holder, None)
        return Leased(holder=lease.holder, fence=lease.fence)

    async def hold(self, effect: RunAgent) -> None:
        """Make sure that an agent has the files it is going to change."""
        if effect.lease is None:
            return
        holder = effect.lease.holder
        if effect.turn <= 1:  # it starts from the beginning, so nothing was done without the lease
            self._lost.pop(holder, None)
        if holder in self._before and holder not in self._lost:
            await self._take(holder, self._before[holder].paths)
        self._require(holder)

    def paths(self, effect: RunAgent) -> tuple[str, ...] | None:
        """What an agent may change under its lease; None where it works without one."""
        kept = self._held.get(effect.lease.holder) if effect.lease else None
        return kept.paths if kept else None

    async def release(self, effect: ReleaseLease, call: Call) -> None:
        """Give it back, unless it is gone."""
        del call
        self._lost.pop(effect.lease.holder, None)
        self._before.pop(effect.lease.holder, None)
        self._give_back(effect.lease.holder, effect.reason)

    def pass_on(self, lease: Leased, successor: str) -> Leased:
        """Hand a lease to a successor; asking again after a crash finds it done."""
        if successor not in self._held:
            self._require(lease.holder)
            fence = self._held.pop(lease.holder).fence
            self._have(leases.transfer(self._ledger, fence, successor, self._ttl))
        return Leased(holder=successor, fence=self._held[successor].fence)

    def admit(self, effect: Land) -> None:
        """Make sure that every path of the change is leased to whoever lands it, until it has landed."""
        holder = effect.lease.holder
        self._require(holder)
        try:
            leases.admit(self._ledger, self._held[holder].fence, holder, effect.files, LANDING)
        except (StaleFence, Unleased, InvalidInput) as error:
            raise LeaseLost(f"it cannot land: {error.message}", error.hint) from error

    def _require(self, holder: str) -> None:
        """Raise `LeaseLost` unless all that was done for the holder until now was done under its lease."""
        if kept := self._held.get(holder):
            try:
                leases.require(self._ledger, kept.fence, (), holder)
            except StaleFence:
                with suppress(StaleFence):
                    self._keep(holder)
        if holder in self._lost or holder not in self._held:
            raise LeaseLost(f"the lease of `{holder}` is lost: {self._lost.get(holder, GONE)}")

    def _give_back(self, holder: str, reason: str) -> None:
        if kept := self._held.pop(holder, None):
            with suppress(StaleFence):
                leases.release(self._ledger, holder, kept.fence, reason)

    # Waiting

    async def _take(self, holder: str, paths: tuple[str, ...]) -> Lease:
        """Take the paths as soon as they are free and it is the holder's turn; others go on meanwhile."""
        try:
            with subscribe(self._ledger, streams=(STREAM,), after=self._ledger.head()) as news:
                lease = await self._in_line(holder, paths, news)
        except InvalidInput as error:
            raise CannotPerform(f"its files cannot be leased: {error.message}", error.hint) from error
        except BaseException as error:
            with suppress(PlanforgeError):
                said = "its patience was over" if isinstance(error, LeaseHeld) else "it was stopped"
                leases.give_up(self._ledger, holder, said)
            raise
        self._have(lease)
        return lease

    async def _in_line(self, holder: str, paths: tuple[str, ...], news: Subscription) -> Lease:
        deadline = time.monotonic() + self._project.settings.run.lease_patience
        span = self._ttl.total_seconds() / 3
        while True:
            # A place in line lasts no longer than a lease does, for one who dies must not block the line.
            found = leases.line_up(self._ledger, holder, paths, ttl=self._ttl, patience=self._ttl)
            again = time.monotonic() + span
            while isinstance(found, Waiting):
                if time.monotonic() >= deadline:
                    raise self._still_held(holder, paths)
                if time.monotonic() >= again or not leases.blocking(self._ledger, holder, paths):
                    break
                await _heard(news, min(LOOK_SECONDS, span, deadline - time.monotonic()))
            if isinstance(found, Lease):
                return found

    def _still_held(self, holder: str, paths: tuple[str, ...]) -> LeaseHeld:
        path, other, until = paths[0], "somebody else", "now"
        for held in leases.blocking(self._ledger, holder, paths)[:1]:
            path, other, until = held.path, held.holder, held.until
        resume = Action("resume", self._run)
        hint = Advice("when it is free, run {}; who holds what: {}", resume, Action("lease list"))
        return LeaseHeld(path, other, until, hint)


def give_back(ledger: Ledger, run: str, reason: str) -> None:
    """End every lease of a run that nobody drives, and its waiting for others."""
    for lease in _live(ledger, run):
        with suppress(StaleFence):
            leases.release(ledger, lease.holder, lease.fence, reason)
    for waiting in leases.waiting(ledger):
        if waiting.holder.startswith(f"{run}/"):
            leases.give_up(ledger, waiting.holder, reason)


def outstanding(ledger: Ledger, run: str) -> dict[str, Kept]:
    """What a run has leased and not given back, by what it has recorded itself, whether it is live or not."""
    kept: dict[str, Kept] = {}
    for intended, completed in _performed(ledger, run):
        if completed is None:
            kept.pop(_given_back(ledger, intended), None)  # what is live still is found so
            continue
        body, outcome = unpack(ledger, intended.body), unpack(ledger, completed.outcome)
        match intended.effect:
            case ClaimLease.__name__:
                claim = msgspec.json.decode(body, type=ClaimLease)
                leased = msgspec.json.decode(outcome, type=Leased)
                kept[leased.holder] = Kept(normalise_all(claim.paths), leased.fence)
            case HandOver.__name__:
                before = msgspec.json.decode(body, type=HandOver).lease
                after = msgspec.json.decode(outcome, type=Handover).lease
                if before.holder in kept:
                    kept[after.holder] = Kept(kept.pop(before.holder).paths, after.fence)
            case ReleaseLease.__name__:
                kept.pop(_given_back(ledger, intended), None)
    return kept


def _given_back(ledger: Ledger, intended: EffectIntended) -> str:
    return msgspec.json.decode(unpack(ledger, intended.body), type=ReleaseLease).lease.holder


def _performed(ledger: Ledger, run: str) -> Iterator[tuple[EffectIntended, EffectCompleted | None]]:
    """What a run did about leases; last what it was about to give back, which may be given back or not."""
    wanted = {kind.__name__ for kind in (ClaimLease, HandOver, ReleaseLease)}
    intents: dict[str, EffectIntended] = {}
    for recorded in ledger.stream(run):
        match recorded.event:
            case EffectIntended(effect=effect) as intended if effect in wanted:
                intents[recorded.key] = intended
            case EffectCompleted() as completed if recorded.key in intents:
                yield intents.pop(recorded.key), completed
    for intended in intents.values():
        if intended.effect == ReleaseLease.__name__:
            yield intended, None


def _live(ledger: Ledger, run: str) -> list[Lease]:
    return [lease for lease in leases.held(ledger) if lease.holder.startswith(f"{run}/")]


def _is_untouched(ledger: Ledger, kept: Kept, own: str = "") -> bool:
    """
    Whether nobody else has had the files since they were leased, and nobody took the lease away.

    For whoever takes a run up, what holders with names that begin with `own` did was the run's own doing.
    """
    return not any(_touches(item.event, kept, own) for item in ledger.stream(STREAM, after=kept.fence))


def _touches(event: Event, kept: Kept, own: str) -> bool:
    match event:
        case LeaseGranted(holder=holder, paths=paths) if not own or not holder.startswith(own):
            return any(overlap(mine, other) for mine in kept.paths for other in paths)
        case LeaseReleased(fence=kept.fence, forced=forced):
            return forced or not own
        case LeasePassed(fence=kept.fence):
            return not own
    return False


async def _heard(news: Subscription, seconds: float) -> None:
    """Wait until something happens to leases, at most so long."""

    async def listen() -> None:
        async with aclosing(aiter(news)) as events:  # type: ignore[type-var]
            async for _ in events:
                return

    listening = asyncio.ensure_future(listen())
    try:
        await asyncio.wait([listening], timeout=max(seconds, 0))
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    news.poll()
