"""Who may change which files: granted, refused, waited for, renewed, ended, and checked at landing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from kernel.histories import StandingClock
from kernel.ledger_contract import tables
from planforge.errors import InvalidInput, LeaseHeld, Locked, NotFound, StaleFence, Unleased, WouldDeadlock
from planforge.interfaces.cli.typed import text
from planforge.kernel import leases
from planforge.kernel.events import Event, Recorded
from planforge.kernel.leases.rules import Held, Lease, Waiting
from planforge.kernel.ledger import Ledger, Write

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def ledger(tmp_path: Path, clock: StandingClock) -> Iterator[Ledger]:
    opened = Ledger.create(tmp_path / ".planforge", clock)
    yield opened
    opened.close()


def kinds(ledger: Ledger) -> list[str]:
    return [recorded.kind for recorded in ledger.stream("leases")]


def newest(ledger: Ledger) -> Event:
    return ledger.last(1, "leases")[0].event


def claim(ledger: Ledger, holder: str, *paths: str, ttl: timedelta = MINUTE) -> Lease:
    return leases.claim(ledger, holder, paths, ttl=ttl)


def line_up(ledger: Ledger, holder: str, *paths: str, patience: timedelta = HOUR) -> Lease | Waiting:
    return leases.line_up(ledger, holder, paths, ttl=MINUTE, patience=patience)


# Granting


def test_a_lease_names_its_holder_its_paths_its_fence_and_its_end(ledger: Ledger) -> None:
    lease = claim(ledger, "w1", "src/", "./a.py", "a.py")
    assert lease == Lease(
        holder="w1",
        paths=("a.py", "src"),
        fence=1,
        until="2026-03-01T12:01:00.000000+00:00",
        granted_at="2026-03-01T12:00:00.000000+00:00",
    )
    assert leases.held(ledger) == [lease]


def test_a_held_path_is_refused_and_the_refusal_says_who_holds_it_and_until_when(ledger: Ledger) -> None:
    lease = claim(ledger, "w1", "src/**/*.py")
    with pytest.raises(LeaseHeld) as refused:
        claim(ledger, "w2", "docs", "src/app.py")
    error = refused.value
    assert error.message == f"`src/app.py` is leased to `w1` until {lease.until}"
    assert (error.path, error.holder, error.until) == ("src/app.py", "w1", lease.until)
    assert "`planforge lease release 1 --reason TEXT`" in text(error.hint)
    assert "clock" not in text(error.hint)


@pytest.mark.parametrize(
    ("held", "asked", "named"),
    [
        ("src", "src/a.py", "src/a.py"),
        ("src/a.py", "src", "src/a.py"),
        ("src/a.py", "**", "src/a.py"),
        ("src/*", "src/a.py", "src/a.py"),
        ("src/*", "**/*.py", "**/*.py"),
    ],
)
def test_a_refusal_names_the_path_that_says_best_where_the_two_meet(
    ledger: Ledger, held: str, asked: str, named: str
) -> None:
    claim(ledger, "w1", held)
    with pytest.raises(LeaseHeld) as refused:
        claim(ledger, "w2", asked)
    assert refused.value.path == named


def test_a_set_is_granted_whole_or_not_at_all(ledger: Ledger) -> None:
    claim(ledger, "w1", "b.py")
    with pytest.raises(LeaseHeld):
        claim(ledger, "w2", "a.py", "b.py", "c.py")
    assert leases.of_path(ledger, "a.py") is None
    claim(ledger, "w3", "a.py", "c.py")


@pytest.mark.parametrize(
    ("one", "other"), [("src/a.py", "src/b.py"), ("src/*.py", "src/*.md"), ("src", "srcs"), ("a/*", "a/b/c")]
)
def test_what_does_not_overlap_is_leased_side_by_side(ledger: Ledger, one: str, other: str) -> None:
    claim(ledger, "w1", one)
    claim(ledger, "w2", other)
    assert [lease.holder for lease in leases.held(ledger)] == ["w1", "w2"]


def test_a_fence_is_the_place_of_its_grant_in_the_stream_and_only_rises(ledger: Ledger) -> None:
    for _ in range(3):
        lease = claim(ledger, "w1", "a.py")
        assert lease.fence == ledger.version("leases")
        leases.release(ledger, "w1", lease.fence)
    passed = leases.transfer(ledger, claim(ledger, "w1", "a.py").fence, "w2", MINUTE)
    assert passed.fence == ledger.version("leases") == 8


def test_claiming_more_of_what_one_has_merges_it_into_one_lease_with_a_new_fence(
    ledger: Ledger, clock: StandingClock
) -> None:
    first = claim(ledger, "w1", "src", ttl=HOUR)
    apart = claim(ledger, "w1", "docs")
    merged = claim(ledger, "w1", "src/a.py", "b.py")
    assert merged.paths == ("b.py", "src", "src/a.py")
    assert (merged.fence, merged.until) == (4, first.until)
    assert leases.held(ledger) == [apart, merged]
    with pytest.raises(StaleFence, match=r"fence 1 was released \(merged into the lease with fence 4\)"):
        leases.require(ledger, first.fence, ["src/a.py"], "w1")
    leases.require(ledger, merged.fence, ["src/x/y.py", "b.py"], "w1")


def test_a_lease_of_ones_own_that_has_run_out_is_not_merged(ledger: Ledger, clock: StandingClock) -> None:
    claim(ledger, "w1", "a.py", "b.py")
    clock.pass_by(MINUTE)
    assert claim(ledger, "w1", "a.py").paths == ("a.py",)
    assert kinds(ledger) == ["LeaseGranted", "LeaseExpired", "LeaseGranted"]


@pytest.mark.parametrize(
    ("holder", "paths", "ttl", "problem"),
    [
        ("w1", [], MINUTE, "at least one path"),
        (" ", ["a.py"], MINUTE, "a holder with a name"),
        ("w1", ["../a.py"], MINUTE, "leads out of the repository"),
        ("w1", ["a.py"], timedelta(0), "longer than no time"),
        ("w1", ["a.py"], timedelta.max, "too long a time"),
    ],
)
def test_a_claim_that_makes_no_sense_is_refused(
    ledger: Ledger, holder: str, paths: list[str], ttl: timedelta, problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        leases.claim(ledger, holder, paths, ttl=ttl)
    assert kinds(ledger) == []


# Time


def test_a_lease_runs_out_at_its_end_and_that_is_recorded_by_who_wants_its_paths(
    ledger: Ledger, clock: StandingClock
) -> None:
    claim(ledger, "w1", "a.py")
    elsewhere = claim(ledger, "w2", "b.py")
    clock.pass_by(MINUTE - timedelta(microseconds=1))
    with pytest.raises(LeaseHeld):
        claim(ledger, "w3", "a.py")
    clock.pass_by(timedelta(microseconds=1))
    assert leases.held(ledger) == []
    claim(ledger, "w3", "a.py")
    assert kinds(ledger)[-2:] == ["LeaseExpired", "LeaseGranted"]
    assert elsewhere.fence == 2  # it was in nobody's way, so nothing is said of it
    assert [lease.holder for lease in leases.held(ledger)] == ["w3"]


def test_a_clock_that_is_set_back_revives_no_lease_and_refusals_say_so(
    ledger: Ledger, clock: StandingClock
) -> None:
    old = claim(ledger, "w1", "a.py")
    clock.pass_by(2 * MINUTE)
    claim(ledger, "w2", "b.py")
    clock.pass_by(-365 * 24 * HOUR)
    with pytest.raises(StaleFence, match="ran out"):
        leases.require(ledger, old.fence, ["a.py"], "w1")
    with pytest.raises(LeaseHeld) as refused:
        claim(ledger, "w1", "b.py")
    assert "the clock is 365 days, 0:00:00 behind the newest lease event" in text(refused.value.hint)
    assert claim(ledger, "w3", "a.py").until == "2026-03-01T12:03:00.000000+00:00"


def test_what_somebody_was_told_has_run_out_stays_so_when_the_clock_is_set_back(
    ledger: Ledger, clock: StandingClock
) -> None:
    lease = claim(ledger, "w1", "a.py")
    clock.pass_by(2 * MINUTE)
    with pytest.raises(StaleFence, match="ran out"):
        leases.renew(ledger, "w1", lease.fence, MINUTE)
    assert kinds(ledger)[-1] == "LeaseExpired"
    clock.pass_by(-2 * MINUTE)
    with pytest.raises(StaleFence, match="ran out"):
        leases.renew(ledger, "w1", lease.fence, MINUTE)
    assert kinds(ledger)[-1] == "LeaseExpired"


def test_a_refused_claim_records_what_it_found_to_be_over(ledger: Ledger, clock: StandingClock) -> None:
    claim(ledger, "w1", "a.py")
    claim(ledger, "w2", "b.py", ttl=HOUR)
    clock.pass_by(MINUTE)
    with pytest.raises(LeaseHeld, match=r"`b.py` is leased to `w2`"):
        claim(ledger, "w3", "a.py", "b.py")
    assert kinds(ledger) == ["LeaseGranted", "LeaseGranted", "LeaseExpired"]


# Keeping and ending


def test_a_renewed_lease_lasts_longer_under_the_same_fence(ledger: Ledger, clock: StandingClock) -> None:
    lease = claim(ledger, "w1", "a.py")
    clock.pass_by(MINUTE / 2)
    renewed = leases.renew(ledger, "w1", lease.fence, MINUTE)
    assert (renewed.fence, renewed.until) == (lease.fence, "2026-03-01T12:01:30.000000+00:00")
    assert leases.held(ledger) == [renewed]


def test_a_renewal_never_makes_a_lease_shorter(ledger: Ledger) -> None:
    lease = claim(ledger, "w1", "a.py", ttl=HOUR)
    assert leases.renew(ledger, "w1", lease.fence, MINUTE) == lease
    assert kinds(ledger) == ["LeaseGranted"]


def test_a_released_path_is_free_at_once(ledger: Ledger) -> None:
    lease = claim(ledger, "w1", "src/**")
    leases.release(ledger, "w1", lease.fence, "landed")
    claim(ledger, "w2", "src/a.py")


def test_a_lease_is_taken_away_with_a_name_and_a_reason_on_record(ledger: Ledger) -> None:
    lease = claim(ledger, "w1", "a.py")
    assert leases.force(ledger, lease.fence, "Ada <a@b.c>", " it hangs ") == lease
    event = newest(ledger)
    assert (event.forced, event.actor, event.reason) == (True, "Ada <a@b.c>", "it hangs")  # type: ignore[attr-defined]
    claim(ledger, "w2", "a.py")


@pytest.mark.parametrize(("actor", "reason"), [("Ada", " "), ("", "it hangs")])
def test_nothing_is_taken_away_without_a_name_and_a_reason(ledger: Ledger, actor: str, reason: str) -> None:
    lease = claim(ledger, "w1", "a.py")
    with pytest.raises(InvalidInput):
        leases.force(ledger, lease.fence, actor, reason)
    assert leases.held(ledger) == [lease]


@pytest.mark.parametrize("fence", [0, 2, -1, 2**70])
def test_what_is_not_there_cannot_be_taken_away(ledger: Ledger, fence: int) -> None:
    claim(ledger, "w1", "a.py")
    with pytest.raises(NotFound, match=f"there is no lease with fence {fence}"):
        leases.force(ledger, fence, "Ada", "it hangs")


def test_a_lease_passes_to_a_successor_with_all_its_paths_and_a_new_fence(
    ledger: Ledger, clock: StandingClock
) -> None:
    lease = claim(ledger, "w1", "src/**", "a.py")
    clock.pass_by(MINUTE / 2)
    passed = leases.transfer(ledger, lease.fence, "w2", MINUTE)
    assert (passed.holder, passed.paths, passed.fence) == ("w2", lease.paths, 2)
    assert passed.until == "2026-03-01T12:01:30.000000+00:00"
    assert leases.held(ledger) == [passed]
    with pytest.raises(LeaseHeld, match="`w2`"):
        claim(ledger, "w1", "a.py")


# At landing


def test_a_landing_needs_a_live_fence_and_every_path_leased(ledger: Ledger) -> None:
    lease = claim(ledger, "w1", "src/*.py", "docs")
    assert leases.require(ledger, lease.fence, ["src/a.py", "./docs/x/y.md"], "w1") == lease
    assert leases.require(ledger, lease.fence, [], "w1") == lease
    with pytest.raises(Unleased, match=r"does not cover `b.py`, `src/deep/a.py`") as refused:
        leases.require(ledger, lease.fence, ["src/a.py", "src/deep/a.py", "b.py"], "w1")
    assert text(refused.value.hint) == "it covers `docs`, `src/*.py`; claim the rest too"


def test_a_refusal_of_many_paths_names_the_first_and_counts_the_rest(ledger: Ledger) -> None:
    lease = claim(ledger, "w1", "a.py")
    with pytest.raises(Unleased, match=r"and 4 more$"):
        leases.require(ledger, lease.fence, [f"b/{number}.py" for number in range(9)], "w1")


def expire(ledger: Ledger, clock: StandingClock, lease: Lease) -> None:
    clock.pass_by(HOUR)


def release(ledger: Ledger, clock: StandingClock, lease: Lease) -> None:
    leases.release(ledger, lease.holder, lease.fence, "landed")


def take_away(ledger: Ledger, clock: StandingClock, lease: Lease) -> None:
    leases.force(ledger, lease.fence, "Ada", "it hangs")


def pass_on(ledger: Ledger, clock: StandingClock, lease: Lease) -> None:
    leases.transfer(ledger, lease.fence, "w2", HOUR)


def take_over(ledger: Ledger, clock: StandingClock, lease: Lease) -> None:
    clock.pass_by(HOUR)
    claim(ledger, "w2", "a.py")


ENDS = [
    (expire, "the lease of `w1` with fence 1 ran out at 2026-03-01T12:01:00.000000+00:00"),
    (release, "the lease of `w1` with fence 1 was released (landed)"),
    (take_away, "the lease of `w1` with fence 1 was taken away by `Ada` (it hangs)"),
    (pass_on, "the lease of `w1` with fence 1 passed to `w2` with fence 2"),
    (take_over, "the lease of `w1` with fence 1 ran out at 2026-03-01T12:01:00.000000+00:00"),
]


@pytest.mark.parametrize(("end", "problem"), ENDS, ids=[end.__name__ for end, _ in ENDS])
def test_a_stale_fence_opens_nothing_and_the_refusal_says_what_became_of_it(
    ledger: Ledger, clock: StandingClock, end: Callable[[Ledger, StandingClock, Lease], None], problem: str
) -> None:
    lease = claim(ledger, "w1", "a.py")
    end(ledger, clock, lease)
    attempts: list[Callable[[], Lease]] = [
        lambda: leases.require(ledger, lease.fence, ["a.py"], "w1"),
        lambda: leases.admit(ledger, lease.fence, "w1", ["a.py"], MINUTE),
        lambda: leases.renew(ledger, "w1", lease.fence, MINUTE),
        lambda: leases.release(ledger, "w1", lease.fence),
        lambda: leases.transfer(ledger, lease.fence, "w3", MINUTE),
        lambda: leases.require(ledger, lease.fence, ["a.py"], "w1"),
    ]
    for attempt in attempts:
        with pytest.raises(StaleFence) as refused:
            attempt()
        assert refused.value.message == problem
        assert refused.value.exit_code == 5


def test_a_fence_is_good_for_its_holder_alone(ledger: Ledger) -> None:
    lease = claim(ledger, "w1", "a.py")
    with pytest.raises(StaleFence, match="with fence 1 is held by `w1`, not by `w2`"):
        leases.require(ledger, lease.fence, ["a.py"], "w2")
    with pytest.raises(StaleFence, match="not by `w2`"):
        leases.release(ledger, "w2", lease.fence)
    assert leases.held(ledger) == [lease]


def test_what_is_admitted_to_landing_cannot_run_out_before_it_has_landed(
    ledger: Ledger, clock: StandingClock
) -> None:
    lease = claim(ledger, "w1", "a.py")
    clock.pass_by(MINUTE - timedelta(microseconds=1))
    admitted = leases.admit(ledger, lease.fence, "w1", ["a.py"], MINUTE)
    clock.pass_by(MINUTE - timedelta(microseconds=1))
    with pytest.raises(LeaseHeld):
        claim(ledger, "w2", "a.py")
    assert leases.held(ledger) == [admitted]


def test_a_change_beyond_its_lease_is_not_admitted_and_renews_nothing(ledger: Ledger) -> None:
    lease = claim(ledger, "w1", "a.py")
    with pytest.raises(Unleased):
        leases.admit(ledger, lease.fence, "w1", ["a.py", "b.py"], HOUR)
    assert leases.held(ledger) == [lease]


def test_the_check_may_be_part_of_another_decision(ledger: Ledger) -> None:
    lease = claim(ledger, "w1", "a.py")
    clashes: list[list[Held]] = []

    def decide() -> list[Write]:
        leases.require(ledger, lease.fence, ["a.py"], "w1")
        clashes.append(leases.blocking(ledger, "w2", ["**"]))
        assert leases.of_path(ledger, "a.py") == leases.held(ledger)[0] == lease
        return []

    ledger.transact(decide)
    assert clashes == [[Held(path="a.py", holder="w1", fence=1, until=lease.until)]]


# The line


def test_whoever_lines_up_for_what_is_free_has_it(ledger: Ledger) -> None:
    assert isinstance(line_up(ledger, "w1", "a.py"), Lease)
    assert leases.waiting(ledger) == []


def test_who_waits_for_what_behind_whom_is_to_be_seen(ledger: Ledger) -> None:
    claim(ledger, "w1", "a.py")
    place = line_up(ledger, "w2", "a.py", "b.py")
    line_up(ledger, "w3", "b.py")
    assert place == Waiting(
        holder="w2",
        paths=("a.py", "b.py"),
        behind=("w1",),
        since="2026-03-01T12:00:00.000000+00:00",
        until="2026-03-01T13:00:00.000000+00:00",
    )
    assert [(found.holder, found.behind) for found in leases.waiting(ledger)] == [
        ("w2", ("w1",)),
        ("w3", ("w2",)),
    ]


def test_a_large_set_is_not_starved_by_small_ones(ledger: Ledger) -> None:
    first = claim(ledger, "w1", "a.py")
    line_up(ledger, "large", "a.py", "b.py")
    with pytest.raises(LeaseHeld, match=r"`b.py` is next for `large`, who waits for it until") as refused:
        claim(ledger, "w2", "b.py")
    assert refused.value.holder == "large"
    claim(ledger, "w3", "c.py")
    leases.release(ledger, "w1", first.fence)
    with pytest.raises(LeaseHeld, match=r"`a.py` is next for `large`"):
        claim(ledger, "w1", "a.py")
    assert claim(ledger, "large", "b.py", "a.py").paths == ("a.py", "b.py")
    assert leases.waiting(ledger) == []


def test_the_place_in_line_is_for_the_paths_that_were_asked_for(ledger: Ledger) -> None:
    claim(ledger, "w1", "a.py")
    line_up(ledger, "w2", "a.py")
    line_up(ledger, "w3", "a.py", "b.py")
    with pytest.raises(LeaseHeld, match="next for `w3`"):
        claim(ledger, "w2", "b.py")


def test_whoever_asks_again_for_the_same_keeps_its_place_and_otherwise_loses_it(
    ledger: Ledger, clock: StandingClock
) -> None:
    claim(ledger, "w1", "a.py", ttl=HOUR)
    line_up(ledger, "w2", "a.py", patience=MINUTE)
    line_up(ledger, "w3", "a.py")
    line_up(ledger, "w2", "a.py", patience=HOUR)
    assert [found.holder for found in leases.waiting(ledger)] == ["w2", "w3"]
    clock.pass_by(MINUTE)
    assert [found.holder for found in leases.waiting(ledger)] == ["w2", "w3"]
    line_up(ledger, "w2", "a.py", "b.py")
    assert [found.holder for found in leases.waiting(ledger)] == ["w3", "w2"]


def test_somebody_whose_patience_is_over_is_in_nobodys_way(ledger: Ledger, clock: StandingClock) -> None:
    first = claim(ledger, "w1", "a.py", ttl=HOUR)
    line_up(ledger, "w2", "a.py", "b.py", patience=MINUTE)
    clock.pass_by(MINUTE)
    assert leases.waiting(ledger) == []
    assert leases.blocking(ledger, "w3", ["b.py"]) == []
    claim(ledger, "w3", "b.py")
    assert kinds(ledger)[-2:] == ["LeaseWaitEnded", "LeaseGranted"]
    assert leases.held(ledger)[0] == first


def test_who_has_a_path_already_may_keep_it_whoever_waits(ledger: Ledger) -> None:
    claim(ledger, "w1", "src")
    line_up(ledger, "w2", "src/a.py")
    assert claim(ledger, "w1", "src/a.py", "b.py").paths == ("b.py", "src", "src/a.py")


def test_whoever_gives_up_leaves_the_line(ledger: Ledger) -> None:
    claim(ledger, "w1", "a.py")
    line_up(ledger, "w2", "a.py", "b.py")
    leases.give_up(ledger, "w2", "no longer needed")
    leases.give_up(ledger, "w2", "no longer needed")
    assert kinds(ledger)[-2:] == ["LeaseAwaited", "LeaseWaitEnded"]
    claim(ledger, "w3", "b.py")


def test_a_successor_that_waited_for_what_it_is_given_waits_no_longer(ledger: Ledger) -> None:
    lease = claim(ledger, "w1", "a.py", "b.py")
    line_up(ledger, "w2", "a.py")
    leases.transfer(ledger, lease.fence, "w2", MINUTE)
    assert leases.waiting(ledger) == []


def test_two_who_would_wait_for_each_other_are_told_and_the_circle_is_named(ledger: Ledger) -> None:
    claim(ledger, "w1", "a.py")
    claim(ledger, "w2", "b.py")
    line_up(ledger, "w1", "b.py")
    with pytest.raises(WouldDeadlock) as refused:
        line_up(ledger, "w2", "a.py")
    assert refused.value.message == "waiting would never end: `w2` waits for `w1` waits for `w2`"
    assert refused.value.exit_code == 7
    assert [found.holder for found in leases.waiting(ledger)] == ["w1"]


def test_a_circle_through_others_is_found(ledger: Ledger) -> None:
    for number in range(5):
        claim(ledger, f"w{number}", f"{number}.py")
    for number in range(4):
        line_up(ledger, f"w{number}", f"{number + 1}.py")
    with pytest.raises(WouldDeadlock, match="`w4` waits for `w0` waits for `w1` waits for `w2`"):
        line_up(ledger, "w4", "0.py")


def test_a_circle_through_the_line_is_found(ledger: Ledger) -> None:
    claim(ledger, "w1", "a.py")
    line_up(ledger, "w2", "a.py", "b.py")
    with pytest.raises(WouldDeadlock, match="`w1` waits for `w2` waits for `w1`"):
        line_up(ledger, "w1", "b.py")


def test_somebody_whose_patience_is_over_closes_no_circle(ledger: Ledger, clock: StandingClock) -> None:
    claim(ledger, "w1", "a.py", ttl=HOUR)
    claim(ledger, "w2", "b.py", ttl=HOUR)
    line_up(ledger, "w1", "b.py", patience=MINUTE)
    clock.pass_by(MINUTE)
    assert isinstance(line_up(ledger, "w2", "a.py"), Waiting)


def test_somebody_whose_lease_has_run_out_closes_no_circle(ledger: Ledger, clock: StandingClock) -> None:
    claim(ledger, "w1", "a.py", ttl=HOUR)
    claim(ledger, "w2", "b.py")
    line_up(ledger, "w1", "b.py")
    clock.pass_by(MINUTE)
    assert isinstance(line_up(ledger, "w2", "a.py"), Waiting)


# Waiting, with real threads and the real time


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger.create(tmp_path / "real")
    yield opened
    opened.close()


@contextmanager
def heard(ledger: Ledger, kind: str) -> Iterator[threading.Event]:
    """Set once an event of this kind was recorded by this process."""
    found = threading.Event()

    def listen(recorded: Recorded) -> None:
        if recorded.kind == kind:
            found.set()

    ledger.listeners.append(listen)
    yield found
    ledger.listeners.remove(listen)


@contextmanager
def waits(ledger: Ledger, holder: str, *paths: str, patience: timedelta = MINUTE) -> Iterator[Future[Lease]]:
    """Somebody who is in line by the time this is entered."""
    with ThreadPoolExecutor(1) as pool, heard(ledger, "LeaseAwaited") as awaited:
        future = pool.submit(leases.wait, ledger, holder, paths, ttl=MINUTE, patience=patience)
        assert awaited.wait(30)
        try:
            yield future
        finally:
            leases.give_up(ledger, holder, "the test is over")
            with suppress(Locked):
                future.result(30)


def test_whoever_waits_has_the_lease_once_it_is_free(real: Ledger) -> None:
    first = claim(real, "w1", "a.py")
    with waits(real, "w2", "a.py", "b.py") as waiter:
        assert not waiter.done()
        leases.release(real, "w1", first.fence)
        lease = waiter.result(30)
    assert (lease.holder, lease.paths) == ("w2", ("a.py", "b.py"))
    assert kinds(real) == ["LeaseGranted", "LeaseAwaited", "LeaseReleased", "LeaseGranted"]


def test_whoever_waits_has_the_lease_once_it_has_run_out(real: Ledger) -> None:
    leases.claim(real, "w1", ["a.py"], ttl=timedelta(seconds=0.3))
    lease = leases.wait(real, "w2", ["a.py"], ttl=MINUTE, patience=MINUTE)
    assert lease.holder == "w2"
    assert kinds(real) == ["LeaseGranted", "LeaseAwaited", "LeaseExpired", "LeaseGranted"]


def test_those_who_wait_are_served_in_the_order_in_which_they_came(real: Ledger) -> None:
    first = claim(real, "w1", "a.py")
    with waits(real, "w2", "a.py") as second, waits(real, "w3", "a.py") as third:
        leases.release(real, "w1", first.fence)
        lease = second.result(30)
        assert not third.done()
        leases.release(real, "w2", lease.fence)
        assert third.result(30).fence > lease.fence > first.fence


def test_whoever_has_no_more_patience_is_told_who_has_it_and_leaves_the_line(real: Ledger) -> None:
    claim(real, "w1", "a.py", ttl=HOUR)
    with pytest.raises(LeaseHeld, match=r"`a.py` is leased to `w1`"):
        leases.wait(real, "w2", ["a.py"], ttl=MINUTE, patience=timedelta(seconds=0.2))
    assert kinds(real) == ["LeaseGranted", "LeaseAwaited", "LeaseWaitEnded"]
    assert leases.waiting(real) == []


def test_patience_ends_even_where_the_clock_stands_still(ledger: Ledger) -> None:
    claim(ledger, "w1", "a.py")
    with pytest.raises(LeaseHeld):
        leases.wait(ledger, "w2", ["a.py"], ttl=MINUTE, patience=timedelta(seconds=0.2))


def test_whoever_would_wait_for_itself_is_told_at_once(real: Ledger) -> None:
    claim(real, "w1", "a.py")
    claim(real, "w2", "b.py")
    with waits(real, "w1", "b.py") as waiter:
        with pytest.raises(WouldDeadlock):
            leases.wait(real, "w2", ["a.py"], ttl=MINUTE, patience=HOUR)
        assert not waiter.done()


def test_a_circle_that_closes_while_all_wait_is_broken_by_who_came_last(real: Ledger) -> None:
    first = claim(real, "w1", "a.py")
    claim(real, "w2", "b.py")
    with waits(real, "w3", "b.py") as early, waits(real, "w2", "a.py") as late:
        leases.transfer(real, first.fence, "w3", MINUTE)
        with pytest.raises(WouldDeadlock, match="`w2` waits for `w3` waits for `w2`"):
            late.result(30)
        assert not early.done()


def test_a_name_that_begins_to_wait_for_something_else_ends_the_earlier_wait(real: Ledger) -> None:
    claim(real, "w1", "a.py", "b.py")
    other = pytest.raises(Locked, match="`w2` now waits for other paths")
    with waits(real, "w2", "a.py") as earlier, waits(real, "w2", "b.py"), other:
        earlier.result(30)


def test_whoever_is_stopped_while_it_waits_leaves_the_line(real: Ledger) -> None:
    claim(real, "w1", "a.py")

    def stop(recorded: Recorded) -> None:
        if recorded.kind == "LeaseAwaited":
            raise KeyboardInterrupt

    real.listeners.append(stop)
    with pytest.raises(KeyboardInterrupt):
        leases.wait(real, "w2", ["a.py"], ttl=MINUTE, patience=HOUR)
    assert kinds(real) == ["LeaseGranted", "LeaseAwaited", "LeaseWaitEnded"]


# Looking


def test_the_lease_of_a_file_is_found_by_its_path(ledger: Ledger) -> None:
    plain, glob = claim(ledger, "w1", "src", "docs/a.md"), claim(ledger, "w2", "app/[id]/*.tsx")
    assert leases.of_path(ledger, "src/deep/er/a.py") == leases.of_path(ledger, "docs/a.md") == plain
    assert leases.of_path(ledger, "app/[id]/page.tsx") == glob
    assert leases.of_path(ledger, "app/[z-a]/page.tsx") is None
    assert leases.of_path(ledger, "docs") is None
    assert leases.of_path(ledger, "docs/b.md") is None


@pytest.mark.parametrize("name", ["1", "src/**", "./src/a.py", "docs/", "docs/a.md"])
def test_a_lease_is_found_by_its_fence_one_of_its_patterns_or_a_file(ledger: Ledger, name: str) -> None:
    lease = claim(ledger, "w1", "src/**", "docs")
    assert leases.find(ledger, name) == lease


@pytest.mark.parametrize("name", ["2", "b.py", "./1", "lib/*", str(2**80)])
def test_what_is_not_leased_is_not_found(ledger: Ledger, name: str) -> None:
    claim(ledger, "w1", "src/**", "docs")
    assert leases.find(ledger, name) is None


def test_everything_in_the_way_is_named(ledger: Ledger) -> None:
    lease = claim(ledger, "w1", "a.py")
    other = claim(ledger, "w2", "src/**")
    place = line_up(ledger, "w3", "b.py", "a.py")
    assert leases.blocking(ledger, "w4", ["src/x.py", "a.py", "b.py"]) == [
        Held(path="a.py", holder="w1", fence=1, until=lease.until),
        Held(path="src/x.py", holder="w2", fence=2, until=other.until),
        Held(path="a.py", holder="w3", fence=0, until=place.until),
    ]
    assert leases.blocking(ledger, "w1", ["a.py"]) == []


def test_the_tables_are_folded_anew_to_the_same_rows(ledger: Ledger, clock: StandingClock) -> None:
    first = claim(ledger, "w1", "src/**", "a.py")
    line_up(ledger, "w2", "a.py")
    line_up(ledger, "w3", "src/b.py", patience=MINUTE)
    leases.transfer(ledger, first.fence, "w4", MINUTE / 2)
    clock.pass_by(MINUTE)
    claim(ledger, "w5", "src")
    before = tables(ledger)
    assert {name: len(before[name]) for name in before if "lease" in name} == {
        "leases": 1,
        "lease_paths": 1,
        "ended_leases": 2,
        "lease_waiters": 1,
        "lease_time": 1,
    }
    ledger.rebuild()
    assert tables(ledger) == before
    assert list(ledger.faults()) == []


def test_a_claim_looks_at_no_lease_that_cannot_be_in_its_way(ledger: Ledger) -> None:
    for number in range(50):
        claim(ledger, "w1", f"old/{number}.py")
        claim(ledger, f"w{number}", f"live/{number}/a.py")
        leases.release(ledger, "w1", ledger.version("leases") - 1)
    ways = ("glob = 1", "path = 'a' AND glob = 0", "path >= 'a/' AND path < 'a0' AND glob = 0")
    statements = [f"EXPLAIN QUERY PLAN SELECT fence FROM lease_paths WHERE {way}" for way in ways]  # noqa: S608
    plans = [str([*ledger.query(statement)]) for statement in statements]
    assert "USING COVERING INDEX lease_globs" in plans[0]
    assert all("SEARCH lease_paths" in plan for plan in plans[1:])
    assert [*ledger.query("SELECT count(*) FROM lease_paths")] == [(50,)]
