"""The leases of a run: waited for, renewed, taken up after a crash, and asked for at every landing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planforge.app.project import Project
from planforge.app.runs.leasing import Leasing, give_back
from planforge.errors import CannotPerform, LeaseHeld, LeaseLost, NeedsPerson
from planforge.interfaces.cli.typed import text
from planforge.kernel import leases
from planforge.kernel.driver import Call, Driver, Performers
from planforge.kernel.effects import Access, ClaimLease, Land, Leased, ReleaseLease, RunAgent
from planforge.kernel.events import (
    EffectIntended,
    Event,
    LeaseGranted,
    LeaseReleased,
    LeaseRenewed,
    LeaseWaitEnded,
)
from planforge.kernel.ledger import Ledger
from planforge.kernel.objects import encode
from planforge.kernel.payloads import pack
from repositories import repository

CALL = Call(run="run-001", key="/0", intended_at="2026-01-02T03:04:05+00:00", resumed=False)
OURS, THEIRS = "run-001/phase-1", "run-002/phase-1"
HOUR = timedelta(hours=1)


class Clock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def project(place: Path, clock: Clock | None = None, **run: int) -> Project:
    """A project with these settings of `[run]`, in which it is as late as the clock says."""
    root = repository(place)
    lines = "".join(f"{name} = {value}\n" for name, value in run.items())
    (root / "planforge.toml").write_text(f"[run]\n{lines}")
    made = Project.create(root)
    if clock:
        made.ledger = Ledger.open(made.state, clock)
    return made


def claiming(holder: str = OURS, *paths: str) -> ClaimLease:
    return ClaimLease(holder=holder, paths=paths or ("app.py",))


def landing(lease: Leased, *files: str) -> Land:
    return Land(
        branch="planforge/plan-001", commit="c", expected="p", lease=lease, files=files or ("app.py",)
    )


def asking(lease: Leased, turn: int = 1) -> RunAgent:
    return RunAgent(
        role="developer",
        access=Access.WRITE,
        worktree="phase-1-1",
        base="b",
        prompt="p",
        lease=lease,
        turn=turn,
    )


def told(ledger: Ledger, kind: type[Event]) -> list[Event]:
    return [item.event for item in ledger.stream("leases") if isinstance(item.event, kind)]


async def until(holds: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        await asyncio.sleep(0.01)


def test_a_claim_waits_for_another_run_and_everything_else_goes_on_meanwhile(tmp_path: Path) -> None:
    place = project(tmp_path)
    theirs = leases.claim(place.ledger, THEIRS, ["app.py"], ttl=HOUR)

    async def story() -> Leased:
        leasing = Leasing(place, "run-001")
        async with leasing.attended():
            claim = asyncio.create_task(leasing.claim(claiming(), CALL))
            await until(lambda: leases.waiting(place.ledger))
            for _ in range(50):  # a loop that is held up would not come round
                await asyncio.sleep(0)
            assert not claim.done()
            leases.release(place.ledger, THEIRS, theirs.fence)
            return await asyncio.wait_for(claim, 20)

    leased = asyncio.run(story())
    assert leased.fence > theirs.fence
    assert leases.waiting(place.ledger) == []


def test_a_claim_that_waited_long_enough_says_who_has_the_file_and_how_to_go_on(tmp_path: Path) -> None:
    place = project(tmp_path, lease_patience=0)
    leases.claim(place.ledger, THEIRS, ["app.py"], ttl=HOUR)
    with pytest.raises(LeaseHeld, match=f"`app.py` is leased to `{THEIRS}`") as refused:
        asyncio.run(Leasing(place, "run-001").claim(claiming(), CALL))
    assert "planforge resume run-001" in text(refused.value.hint)
    assert leases.waiting(place.ledger) == []


def test_somebody_who_is_told_to_stop_waiting_stops_at_once_and_leaves_the_line(tmp_path: Path) -> None:
    place = project(tmp_path)
    leases.claim(place.ledger, THEIRS, ["app.py"], ttl=HOUR)

    async def story() -> float:
        claim = asyncio.create_task(Leasing(place, "run-001").claim(claiming(), CALL))
        await until(lambda: leases.waiting(place.ledger))
        stopped = time.monotonic()
        claim.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claim
        return time.monotonic() - stopped

    assert asyncio.run(story()) < 20
    assert leases.waiting(place.ledger) == []
    assert told(place.ledger, LeaseWaitEnded) == [LeaseWaitEnded(holder=OURS, reason="it was stopped")]


def test_a_place_in_line_lasts_no_longer_than_a_lease_and_is_kept_while_somebody_waits(
    tmp_path: Path,
) -> None:
    place = project(tmp_path, lease_seconds=1)
    leases.claim(place.ledger, THEIRS, ["app.py"], ttl=HOUR)

    async def story() -> None:
        claim = asyncio.create_task(Leasing(place, "run-001").claim(claiming(), CALL))
        await until(lambda: leases.waiting(place.ledger))
        (first,) = leases.waiting(place.ledger)
        assert datetime.fromisoformat(first.until) - place.ledger.now() <= timedelta(seconds=1)
        await until(lambda: place.ledger.now() > datetime.fromisoformat(first.until))
        (later,) = leases.waiting(place.ledger)
        assert later.until > first.until
        assert later.since == first.since
        claim.cancel()
        await asyncio.gather(claim, return_exceptions=True)

    asyncio.run(story())


def test_a_run_is_not_held_up_by_what_is_left_of_itself(tmp_path: Path) -> None:
    clock = Clock()
    place = project(tmp_path, clock, lease_patience=0)
    leases.claim(place.ledger, OURS, ["app.py"], ttl=HOUR)
    leases.line_up(place.ledger, "run-001/phase-2", ["app.py", "b.py"], ttl=HOUR, patience=HOUR)

    async def story() -> Leased:
        leasing = Leasing(place, "run-001")
        leased = await leasing.claim(claiming(), CALL)
        await leasing.release(ReleaseLease(lease=leased, reason="done"), CALL)
        return await leasing.claim(claiming("run-001/phase-2", "app.py", "b.py"), CALL)

    assert asyncio.run(story()).holder == "run-001/phase-2"


def test_a_lease_is_renewed_for_as_long_as_the_run_is_driven(tmp_path: Path) -> None:
    place = project(tmp_path, lease_seconds=1)

    async def story() -> None:
        leasing = Leasing(place, "run-001")
        async with leasing.attended():
            leased = await leasing.claim(claiming(), CALL)
            (first,) = leases.held(place.ledger)
            await until(
                lambda: place.ledger.now() > datetime.fromisoformat(first.until) + timedelta(seconds=1)
            )
            (lease,) = leases.held(place.ledger)
            assert (lease.holder, lease.fence) == (OURS, leased.fence)
            leasing.admit(landing(leased))

    asyncio.run(story())
    assert len(told(place.ledger, LeaseRenewed)) >= 2


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, "its run has ended"),
        (NeedsPerson("Shall we?"), "its run has stopped: Shall we?"),
        (KeyboardInterrupt(), "its run has stopped: it was told to"),
    ],
)
def test_however_a_run_stops_it_gives_its_leases_back_and_says_why(
    tmp_path: Path, error: BaseException | None, reason: str
) -> None:
    place = project(tmp_path)

    async def story() -> None:
        leasing = Leasing(place, "run-001")
        async with leasing.attended():
            await leasing.claim(claiming(), CALL)
            if error:
                raise error

    if error:
        with pytest.raises(type(error)):
            asyncio.run(story())
    else:
        asyncio.run(story())
    assert leases.held(place.ledger) == []
    (released,) = told(place.ledger, LeaseReleased)
    assert isinstance(released, LeaseReleased)
    assert released.reason == reason


# After a crash


def test_whoever_takes_a_run_up_has_its_leases_and_the_one_before_can_land_nothing(tmp_path: Path) -> None:
    place = project(tmp_path)

    async def story() -> None:
        before, after = Leasing(place, "run-001"), Leasing(place, "run-001")
        leased = await before.claim(claiming(), CALL)
        async with after.attended():
            await after.hold(asking(leased))
            after.admit(landing(leased))
            with pytest.raises(LeaseLost, match="merged into the lease"):
                before.admit(landing(leased))
            with pytest.raises(LeaseLost):  # nor does it get it back
                before.admit(landing(leased))
            after.admit(landing(leased))

    asyncio.run(story())


def given_a_dead_run(place: Project) -> Leased:
    """A lease that the process before this one had, was granted and did not put on record as its own."""
    return asyncio.run(Leasing(place, "run-001").claim(claiming(), CALL))


def test_a_lease_that_is_live_is_taken_up_although_the_run_has_no_record_of_it(tmp_path: Path) -> None:
    place = project(tmp_path, lease_patience=0)
    given_a_dead_run(place)

    async def story() -> Leased:
        leasing = Leasing(place, "run-001")
        async with leasing.attended():
            return await leasing.claim(claiming(), CALL)

    asyncio.run(story())
    assert leases.held(place.ledger) == []


def test_a_lease_that_was_given_back_before_the_crash_is_not_taken_again(tmp_path: Path) -> None:
    place = project(tmp_path)
    driver = Driver(place.ledger, "run-001", performing(place))

    async def story() -> None:
        leased = await driver.drive(claimed())
        # As if the process had died when the lease was given back and that was not on record as done.
        body = pack(place.ledger, encode(ReleaseLease(lease=leased, reason="it is done")))
        intended = EffectIntended(effect=ReleaseLease.__name__, fingerprint="f", body=body)
        driver.record(intended, "/1")
        leases.release(place.ledger, OURS, leased.fence, "it is done")
        async with Leasing(place, "run-001").attended():
            assert leases.held(place.ledger) == []

    asyncio.run(story())
    assert len(told(place.ledger, LeaseGranted)) == 1


async def claimed() -> Leased:
    return await claiming()


def performing(place: Project) -> Performers:
    performers: dict[Any, Any] = {ClaimLease: Leasing(place, "run-001").claim}
    return performers


def test_a_lease_that_ran_out_is_lost_if_somebody_else_had_the_files_meanwhile(tmp_path: Path) -> None:
    clock = Clock()
    place = project(tmp_path, clock, lease_seconds=60)

    async def story() -> None:
        leasing = Leasing(place, "run-001")
        leased = await leasing.claim(claiming(), CALL)
        clock.passes(61)
        theirs = leases.claim(place.ledger, THEIRS, ["*.py"], ttl=HOUR)
        leases.release(place.ledger, THEIRS, theirs.fence)
        with pytest.raises(LeaseLost, match="ran out"):
            leasing.admit(landing(leased))
        with pytest.raises(LeaseLost):
            await leasing.hold(asking(leased, turn=2))

    asyncio.run(story())


def test_a_machine_that_slept_has_its_leases_again_if_nobody_wanted_them(tmp_path: Path) -> None:
    clock = Clock()
    place = project(tmp_path, clock, lease_seconds=60)

    async def story() -> None:
        leasing = Leasing(place, "run-001")
        leased = await leasing.claim(claiming(), CALL)
        clock.passes(8 * 3600)
        theirs = leases.claim(place.ledger, THEIRS, ["other.py"], ttl=HOUR)
        leasing.admit(landing(leased))
        (mine,) = [lease for lease in leases.held(place.ledger) if lease.holder == OURS]
        assert mine.fence > theirs.fence > leased.fence

    asyncio.run(story())


def test_a_lease_that_a_person_took_away_is_lost(tmp_path: Path) -> None:
    place = project(tmp_path)

    async def story() -> None:
        leasing = Leasing(place, "run-001")
        leased = await leasing.claim(claiming(), CALL)
        leases.force(place.ledger, leased.fence, "ada", "it hangs")
        with pytest.raises(LeaseLost, match=r"taken away by `ada` .it hangs."):
            leasing.admit(landing(leased))
        await leasing.release(ReleaseLease(lease=leased, reason="refused"), CALL)
        again = await leasing.claim(claiming(), CALL)
        leasing.admit(landing(again))

    asyncio.run(story())


def test_a_change_beyond_the_lease_does_not_land_and_the_lease_is_given_back_all_the_same(
    tmp_path: Path,
) -> None:
    place = project(tmp_path)

    async def story() -> None:
        leasing = Leasing(place, "run-001")
        leased = await leasing.claim(claiming(), CALL)
        with pytest.raises(LeaseLost, match=r"does not cover `other\.py`"):
            leasing.admit(landing(leased, "app.py", "other.py"))
        with pytest.raises(LeaseLost, match="backslash"):
            leasing.admit(landing(leased, "a\\b.py"))
        await leasing.release(ReleaseLease(lease=leased, reason="refused"), CALL)

    asyncio.run(story())
    assert leases.held(place.ledger) == []


def test_files_that_cannot_be_leased_fail_the_step_and_do_not_stop_the_run_for_ever(tmp_path: Path) -> None:
    with pytest.raises(CannotPerform, match="cannot be leased"):
        asyncio.run(Leasing(project(tmp_path), "run-001").claim(claiming(OURS, "../outside.py"), CALL))


# Handing over and cancelling


def test_a_lease_is_passed_on_once_and_its_old_fence_is_worth_nothing(tmp_path: Path) -> None:
    place = project(tmp_path)

    async def story() -> None:
        leasing = Leasing(place, "run-001")
        leased = await leasing.claim(claiming(), CALL)
        passed = leasing.pass_on(leased, "run-001/phase-1-1.2")
        assert leasing.pass_on(leased, "run-001/phase-1-1.2") == passed
        with pytest.raises(LeaseLost):
            leasing.admit(landing(leased))
        leasing.admit(landing(passed))
        async with (after := Leasing(place, "run-001")).attended():  # it died before it could say so
            again = after.pass_on(leased, "run-001/phase-1-1.2")
            after.admit(landing(again))

    asyncio.run(story())
    assert leases.held(place.ledger) == []


def test_a_lease_that_is_lost_is_not_passed_on(tmp_path: Path) -> None:
    place = project(tmp_path)

    async def story() -> None:
        leasing = Leasing(place, "run-001")
        leased = await leasing.claim(claiming(), CALL)
        leases.force(place.ledger, leased.fence, "ada", "it hangs")
        with pytest.raises(LeaseLost, match="taken away"):
            leasing.pass_on(leased, "run-001/phase-1-1.2")

    asyncio.run(story())


def test_a_run_that_is_given_up_leaves_no_lease_and_no_place_in_line(tmp_path: Path) -> None:
    place = project(tmp_path)
    leases.claim(place.ledger, OURS, ["app.py"], ttl=HOUR)
    other = leases.claim(place.ledger, "run-0011/phase-1", ["b.py"], ttl=HOUR)
    leases.line_up(place.ledger, "run-001/phase-2", ["b.py"], ttl=HOUR, patience=HOUR)
    give_back(place.ledger, "run-001", "cancelled by ada: took too long")
    assert leases.held(place.ledger) == [other]
    assert leases.waiting(place.ledger) == []
    (released,) = told(place.ledger, LeaseReleased)
    assert isinstance(released, LeaseReleased)
    assert released.reason == "cancelled by ada: took too long"


def test_a_driver_does_not_take_back_what_was_given_back_for_its_run_while_it_was_stopped(
    tmp_path: Path,
) -> None:
    place = project(tmp_path)

    async def story() -> None:
        leasing = Leasing(place, "run-001")
        leased = await leasing.claim(claiming(), CALL)
        give_back(place.ledger, "run-001", "cancelled by ada: took too long")
        with pytest.raises(LeaseLost, match="took too long"):
            leasing.admit(landing(leased))

    asyncio.run(story())
    assert leases.held(place.ledger) == []
