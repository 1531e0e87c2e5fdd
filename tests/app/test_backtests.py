"""
A back-test agrees with really running it.

The same work is really done under each of several settings, each time in a repository of its own that begins
at the same commit. Every such run is then back-tested under the settings of every other one, and what the
back-test tells is compared with what really happened there: what is asked for and noted, the end, the cost.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from planforge.app import forges
from planforge.app.decisions import approvals
from planforge.app.history import replays
from planforge.app.plans import work
from planforge.app.project import Project
from planforge.kernel.objects import encode
from planforge.kernel.replay import backtest as backtests
from planforge.kernel.replay.backtest import Backtest, Cost, End
from planforge.kernel.replay.tape import Asked, Tape
from planforge.rules.loops import blocking_only
from planforge.workflows import forge
from planforge.workflows.attempt import proposal
from rehearsals import Actions, Rehearsal, copied
from texts import BLOCKED, CLEAN, PLAN, Scene, drive, forged, name_files, play, says, writes

FULL: Actions = [{"context": 100_000}, {"hang": True}]


# What is done, under which settings


class Work(NamedTuple):
    """Something to do: what the agents do, and each of the settings it is really done under."""

    scenes: tuple[Scene, ...]
    under: tuple[tuple[str, ...], ...]
    files: tuple[str, ...] = ()
    """The files of the plan that is carried out; none is forging a plan."""


def attempt(path: str, number: int, do: Actions) -> Scene:
    return ("Role: developer", path, f"Attempt: {number}"), do


FORGE = Work(
    scenes=(
        (("Role: drafter",), says(PLAN)),
        (("Role: reviser", "Round: 1"), says(PLAN.replace("None that", "Few that"))),
        (("Role: reviser", "Round: 2"), says(PLAN.replace("None that", "Hardly any that"))),
        (("Role: reviser",), says(PLAN.replace("None that", "Some that"))),
        (("Role: auditor", "Round: 3"), says(CLEAN)),
        (("Role: auditor", "Round: 4"), says(CLEAN)),
        (("Role: auditor",), says(BLOCKED)),
    ),
    under=(("forge.cap=1",), ("forge.cap=2",), ("forge.cap=3",), ("forge.cap=4",)),
)

ATTEMPTS = Work(
    files=("one/a.txt",),
    scenes=(
        attempt("one/a.txt", 3, writes("one/a.txt")),
        (("Role: developer",), writes("one/a.txt", text="wrong\n")),
        (("Role: auditor",), says(CLEAN)),
    ),
    under=(("run.attempts=1",), ("run.attempts=2",), ("run.attempts=3",)),
)

TIERS = Work(
    files=("one/a.txt",),
    scenes=((("Role: developer",), writes("one/a.txt", text="wrong\n")),),
    under=(("run.escalate_after=0", "run.attempts=2"), ("run.escalate_after=1", "run.attempts=2")),
)

HANDOFFS = Work(
    files=("one/a.txt", "one/b.txt"),
    scenes=(
        (("Role: developer", "Turn: 3"), writes("one/b.txt")),
        (("Role: developer", "Turn: 2"), FULL),
        (("Role: developer",), [*writes("one/a.txt")[:1], *FULL]),
        (("Role: auditor",), says(CLEAN)),
    ),
    under=(
        # Not 0: nobody would then end an agent that hangs.
        ("run.handoffs=1", "run.attempts=1"),
        ("run.handoffs=2", "run.attempts=1"),
    ),
)

FILES = Work(
    files=("one/a.txt", "two/b.txt", "two/c.txt", "two/d.txt"),
    scenes=(
        (("Role: developer", "Step: phase-1"), writes("one/a.txt")),
        (("Role: developer", "Step: phase-2"), writes("two/b.txt")),
        (("Role: developer", "Step: phase-3"), writes("two/d.txt")),
        (("Role: auditor",), says(CLEAN)),
    ),
    under=(("run.max_files=2",), ("run.max_files=3",)),
)

AT_ONCE = Work(
    files=("one/a.txt", "two/b.txt"),
    scenes=(
        attempt("one/a.txt", 1, writes("one/a.txt", text="wrong\n")),
        attempt("one/a.txt", 2, [{"sleep": 1}, *writes("one/a.txt")]),
        (("Role: developer",), writes("two/b.txt")),
        (("Role: auditor",), says(CLEAN)),
    ),
    under=(
        ("run.parallel=false", "run.jobs=2", "run.attempts=2"),
        ("run.parallel=true", "run.jobs=1", "run.attempts=2"),
        ("run.parallel=true", "run.jobs=2", "run.attempts=2"),
        ("run.parallel=true", "run.jobs=2", "run.attempts=1"),
    ),
)

EVERYTHING = {
    "forge": FORGE,
    "attempts": ATTEMPTS,
    "tiers": TIERS,
    "handoffs": HANDOFFS,
    "files": FILES,
    "at-once": AT_ONCE,
}


# Doing it


class Done(NamedTuple):
    """A run that really took place, and where."""

    project: Project
    run: str
    place: Path

    @property
    def tape(self) -> Tape:
        return Tape(self.project.ledger, self.run)


Doing = Callable[[str, tuple[str, ...]], Done]


@pytest.fixture(scope="module")
def beginning(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return forged(tmp_path_factory.mktemp("beginning") / "here")


def really(beginning: Rehearsal, place: Path, asked: Work, under: tuple[str, ...]) -> Done:
    """Do it in a repository of its own."""
    at = copied(beginning, place)
    play(at, asked.scenes)
    tables: dict[str, list[str]] = {}
    for setting in under:
        if setting.startswith(("forge.", "run.")) and not setting.startswith("run.parallel"):
            table, _, line = setting.partition(".")
            tables.setdefault(table, []).append(line)
    at.settings("\n".join("\n".join((f"[{table}]", *lines)) for table, lines in tables.items()))
    project = Project(at.root)
    if asked.files:
        name_files(at, *asked.files)
        approvals.approve(project, "1", actor="Ada")
        run = work.begin_plan_run(project, "1", parallel="run.parallel=true" in under)
    else:
        run = forges.begin_forge(project, "Some texts")
    drive(project, run)
    return Done(project, run, place)


@pytest.fixture(scope="module")
def done(beginning: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doing]:
    """What really came of each work under each of its settings; done when it is first asked for."""
    found: dict[tuple[str, tuple[str, ...]], Done] = {}
    place = tmp_path_factory.mktemp("done")

    def of(name: str, under: tuple[str, ...]) -> Done:
        if (name, under) not in found:
            found[name, under] = really(beginning, place / str(len(found)), EVERYTHING[name], under)
        return found[name, under]

    yield of
    for each in found.values():
        each.project.ledger.close()
    shutil.rmtree(place)


# Comparing what is told with what happened

HASH = re.compile(r"\b(?:[0-9a-f]{8}|[0-9a-f]{12,64})\b")
TIME = re.compile(r"\b2\d{3}-\d\d-\d\dT[0-9:.]+\+00:00")
MEASURED = {"seconds", "time_cost_ms", "value", "output", "attached", "request"}
"""Times, what follows from them, and the hashes of texts that hold them."""


class Same:
    """Whether two runs say the same, if what must differ (hashes, fences, places) is taken for the other."""

    def __init__(self, here: Path, there: Path) -> None:
        self._places = str(here), str(there)
        self._names: tuple[dict[object, object], dict[object, object]] = ({}, {})

    def differences(self, one: object, other: object, path: str = "") -> Iterator[str]:
        if isinstance(one, dict) and isinstance(other, dict):
            for name in sorted(one.keys() | other.keys()):
                if name == "fence" and name in one and name in other:
                    yield from self._named(f"fence {one[name]}", f"fence {other[name]}", path)
                elif name not in MEASURED:
                    yield from self.differences(one.get(name), other.get(name), f"{path}.{name}")
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            for number, pair in enumerate(zip(one, other, strict=True)):
                yield from self.differences(*pair, f"{path}[{number}]")
        elif isinstance(one, str) and isinstance(other, str):
            yield from self._texts(one, other, path)
        elif one != other:
            yield f"{path}: {one!r} is not {other!r}"

    def _texts(self, one: str, other: str, path: str) -> Iterator[str]:
        one, other = (
            TIME.sub("TIME", text.replace(place, "PLACE"))
            for text, place in zip((one, other), self._places, strict=True)
        )
        if HASH.sub("#", one) != HASH.sub("#", other):
            yield f"{path}: {one!r} is not {other!r}"
            return
        for pair in zip(HASH.findall(one), HASH.findall(other), strict=True):
            yield from self._named(pair[0][:12], pair[1][:12], path)

    def _named(self, one: str, other: str, path: str) -> Iterator[str]:
        forth, back = self._names
        if forth.setdefault(one, other) != other or back.setdefault(other, one) != one:
            yield f"{path}: {one} is {forth[one]} elsewhere, not {other}"


class Telling(NamedTuple):
    """A back-test, and everything that the flow asked for in it."""

    found: Backtest
    asked: dict[str, Asked]


def told(recorded: Done, under: tuple[str, ...]) -> Telling:
    asked: dict[str, Asked] = {}
    report = replays.backtested(
        recorded.project.ledger, recorded.run, under, lambda item: asked.update({item.key: item})
    )
    return Telling(report.backtest, asked)


def disagreements(telling: Telling, recorded: Done, happened: Done) -> list[str]:
    """Where a back-test of what was recorded and what really happened differ."""
    tape = happened.tape
    ended = tape.ended
    assert ended is not None
    found = list(_different(telling, Same(recorded.place, happened.place), tape))
    cost = Cost()
    for key in telling.asked:
        if (entry := tape.entries.get(key)) is None:
            continue
        if entry.fact is not None:
            backtests.count_fact(cost, entry.fact)
        elif entry.outcome is not None and key not in telling.found.unanswered:
            backtests.count_outcome(cost, tape, entry)
    if telling.found.ended:
        end = End(succeeded=ended.succeeded, reason=ended.reason, exit_code=ended.exit_code)
        found += [] if telling.found.end == end else [f"ended {telling.found.end}, not {end}"]
        found += [f"`{key}` is missing" for key in tape.entries.keys() - telling.asked.keys()]
        cost = backtests.cost_of(tape)
    figures = (timeless(telling.found.cost), timeless(cost))
    return found + ([] if figures[0] == figures[1] else [f"cost {figures[0]}, not {figures[1]}"])


def timeless(cost: Cost) -> Mapping[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(cost).items() if name != "check_seconds"}


def _different(telling: Telling, same: Same, tape: Tape) -> Iterator[str]:
    # In the order in which the back-test asked, so that names are given in it.
    for key, asked in telling.asked.items():
        entry = tape.entries.get(key)
        if entry is None:
            yield f"`{key}`: {asked.name} was not asked for really"
            continue
        kind = type(entry.fact).__name__ if entry.fact else entry.intent.effect if entry.intent else ""
        told = type(asked.what.event).__name__ if hasattr(asked.what, "event") else asked.name
        if kind != told:
            yield f"`{key}`: {told} was really {kind}"
            continue
        body = encode(entry.fact) if entry.fact else tape.body(entry.intent.body) if entry.intent else b""
        yield from same.differences(
            msgspec.json.decode(asked.body), msgspec.json.decode(body), f"{key} {kind}"
        )


PAIRS = [
    pytest.param(name, one, other, id=f"{name}-{','.join(one)}-told-as-{','.join(other)}")
    for name, asked in EVERYTHING.items()
    for one in asked.under
    for other in asked.under
]


@pytest.mark.dear(but="forge-*")
@pytest.mark.parametrize(("name", "recorded_under", "under"), PAIRS)
def test_a_back_test_tells_what_really_happens(
    done: Doing, name: str, recorded_under: tuple[str, ...], under: tuple[str, ...]
) -> None:
    recorded, happened = done(name, recorded_under), done(name, under)
    telling = told(recorded, under)
    assert disagreements(telling, recorded, happened) == []
    assert telling.found.ended or telling.found.unanswered[0] in telling.found.stopped


ENDED = [
    ("forge", ("forge.cap=4",), ("forge.cap=1",), "CAP_REACHED"),
    ("forge", ("forge.cap=4",), ("forge.cap=3",), "no blocking finding"),
    ("attempts", ("run.attempts=3",), ("run.attempts=2",), "1 of 2 tests failed"),
    ("handoffs", HANDOFFS.under[1], HANDOFFS.under[0], "it handed over once"),
    ("at-once", AT_ONCE.under[1], AT_ONCE.under[3], "1 of 2 tests failed"),
]
STOPPED = [
    ("forge", ("forge.cap=1",), ("forge.cap=2",), "`GatherContext` (reviser) has no recorded outcome"),
    ("attempts", ("run.attempts=2",), ("run.attempts=3",), "`ClaimLease` (run-002/phase-1) has no"),
    ("tiers", TIERS.under[0], TIERS.under[1], "`RunAgent` (developer) has no recorded outcome"),
    ("handoffs", HANDOFFS.under[0], HANDOFFS.under[1], "`HandOver` (phase-1-1) has no recorded outcome"),
    ("files", FILES.under[0], FILES.under[1], "`GatherContext` (developer) has no recorded outcome"),
    ("at-once", AT_ONCE.under[1], AT_ONCE.under[2], "it is not on record which of the steps at work lands"),
    ("at-once", AT_ONCE.under[2], AT_ONCE.under[1], "`Rebase` (phase-2-1) has no recorded outcome"),
]


@pytest.mark.parametrize(("name", "recorded_under", "under", "reason"), ENDED)
def test_what_the_recording_carries_is_told_to_its_end(
    done: Doing, name: str, recorded_under: tuple[str, ...], under: tuple[str, ...], reason: str
) -> None:
    found = told(done(name, recorded_under), under).found
    assert found.end is not None
    assert reason in found.end.reason


@pytest.mark.parametrize(("name", "recorded_under", "under", "why"), STOPPED)
def test_where_the_recording_ends_is_said(
    done: Doing, name: str, recorded_under: tuple[str, ...], under: tuple[str, ...], why: str
) -> None:
    found = told(done(name, recorded_under), under).found
    assert (found.ended, found.end) == (False, None)
    assert found.stopped.startswith(f"recording ends here: {why}")


# The comparison finds what is wrong


def test_what_happened_under_other_settings_is_not_taken_for_it(done: Doing) -> None:
    recorded = done("forge", ("forge.cap=3",))
    for cap in (1, 2):
        found = disagreements(told(recorded, (f"forge.cap={cap}",)), recorded, recorded)
        assert any("AuditRecorded.decision:" in item for item in found)
        assert any(item.startswith("ended End(succeeded=False") for item in found)
        assert any(item.startswith("cost ") for item in found)


def test_a_loop_that_goes_once_too_often_is_noticed(done: Doing, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, happened = done("forge", ("forge.cap=4",)), done("forge", ("forge.cap=2",))
    monkeypatch.setattr(forge, "blocking_only", lambda cap: blocking_only(cap + 1))
    found = disagreements(told(recorded, ("forge.cap=2",)), recorded, happened)
    assert any("AuditRecorded.decision: 'continue' is not" in item for item in found), found


def test_a_check_that_is_not_heeded_is_noticed(done: Doing, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, happened = done("attempts", ("run.attempts=3",)), done("attempts", ("run.attempts=1",))
    monkeypatch.setattr(proposal, "fault_of_evidence", lambda evidence: None)
    found = disagreements(told(recorded, ("run.attempts=1",)), recorded, happened)
    assert any("VerifyOk was really VerifyFailed" in item for item in found), found


def test_an_answer_that_was_given_in_another_order_is_noticed(
    done: Doing, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, happened = done("at-once", AT_ONCE.under[2]), done("at-once", AT_ONCE.under[1])
    monkeypatch.setattr(backtests._Telling, "_require_turn", lambda self, asked: None)
    assert disagreements(told(recorded, AT_ONCE.under[1]), recorded, happened)
