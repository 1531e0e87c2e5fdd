"""Reading just the events that somebody cares about."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from kernel.another_client import another_client
from kernel.histories import STORY
from kernel.ledger_contract import parked, tell
from planforge.errors import InvalidInput, LedgerUnreadable
from planforge.interfaces.cli.typed import text
from planforge.kernel.events import EVENTS
from planforge.kernel.filters import Filter, kind_named, newest, read
from planforge.kernel.ledger import PAGE, Ledger, Write


@pytest.fixture(scope="module")
def long_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """The story, and more events after it than fit on two pages."""
    ledger = Ledger.create(tmp_path_factory.mktemp("ledger"))
    tell(ledger)
    crowd = [Write(f"run-{number % 7:03}", None, [parked(str(number))]) for number in range(2 * PAGE + 300)]
    ledger.append_all(crowd)
    tell(ledger, tuple((stream, event) for stream, event in STORY if stream == "leases"))
    yield ledger
    ledger.close()


FILTERS = [
    Filter(),
    Filter(after=40),
    Filter(after=10**9),
    Filter(kinds=("RunParked",)),
    Filter(kinds=("LeaseGranted", "LeaseExpired")),
    Filter(streams=("run-001",)),
    Filter(streams=("run-001",), after=2 * PAGE),
    Filter(streams=("run-001",), after=PAGE, kinds=("RunEnded", "RunParked")),
    Filter(streams=("run-001", "leases")),
    Filter(streams=("nobody",)),
    Filter(plan="plan-001"),
    Filter(plan="plan-001", kinds=("StepStarted",), streams=("run-002",), after=15),
    Filter(plan="plan-00"),
]


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_what_is_read_is_what_matches_in_either_direction(long_ledger: Ledger, wanted: Filter) -> None:
    matching = [recorded for recorded in long_ledger.since() if wanted.matches(recorded)]
    assert list(read(long_ledger, wanted)) == matching
    assert newest(long_ledger, wanted, 10**6) == matching
    assert newest(long_ledger, wanted, 3) == matching[-3:]
    assert list(read(long_ledger, wanted, limit=3)) == matching[:3]
    assert list(islice(read(long_ledger, wanted), 3)) == matching[:3]


def test_the_filters_above_find_something_and_leave_something_out(long_ledger: Ledger) -> None:
    counts = [len(list(read(long_ledger, wanted))) for wanted in FILTERS]
    assert [count for count, wanted in zip(counts, FILTERS, strict=True) if wanted.kinds and not count] == []
    assert len(set(counts)) > 8
    assert max(counts) == long_ledger.head()


def test_events_after_the_end_that_was_asked_for_are_not_read(long_ledger: Ledger) -> None:
    assert [recorded.seq for recorded in read(long_ledger, Filter(after=5), until=8)] == [6, 7, 8]
    assert [recorded.seq for recorded in newest(long_ledger, Filter(), 2, until=8)] == [7, 8]
    wanted, end = Filter(streams=("run-001",)), 2 * PAGE
    matching = [item for item in long_ledger.since() if wanted.matches(item) and item.seq <= end]
    assert (
        list(read(long_ledger, wanted, until=end))
        == newest(long_ledger, wanted, 10**6, until=end)
        == matching
    )


def test_a_plan_is_named_by_its_stream_by_its_events_and_by_runs_about_it(long_ledger: Ledger) -> None:
    found = list(read(long_ledger, Filter(plan="plan-001")))
    assert {"RunStarted", "ItemOpened", "StepStarted", "HandoffEmitted"} <= {item.kind for item in found}
    assert {"EffectIntended", "LeaseGranted"} & {item.kind for item in found} == set()


def test_the_newest_few_are_found_without_reading_what_is_before(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    ledger.append("a", [parked(str(number)) for number in range(100)], expected=0)
    another_client(tmp_path, "UPDATE events SET body = CAST('{' AS BLOB) WHERE seq = 50", unguarded=True)
    for wanted in (Filter(kinds=("RunParked",)), Filter(streams=("a",)), Filter()):
        assert [item.seq for item in newest(ledger, wanted, 20)] == list(range(81, 101))
        with pytest.raises(LedgerUnreadable, match="event 50 "):
            newest(ledger, wanted, 60)
    ledger.close()


@pytest.mark.parametrize("name", ["ItemOpened", "PLAN_CREATED", "plan-created", "plancreated"])
def test_a_kind_is_known_by_any_spelling(name: str) -> None:
    assert kind_named(name) == "ItemOpened"


def test_no_two_kinds_have_the_same_spelling() -> None:
    assert {kind_named(kind) for kind in EVENTS} == set(EVENTS)


def test_an_unknown_kind_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(InvalidInput, match="there is no event `StepComplete`") as refused:
        Filter(kinds=("StepComplete",))
    assert "`StepCompleted`" in text(refused.value.hint)
    with pytest.raises(InvalidInput) as refused:
        kind_named("qqq")
    assert text(refused.value.hint) == "for all names, run `planforge schema --list`"


def test_kinds_are_understood_in_any_spelling_and_by_the_name_that_the_document_has() -> None:
    assert Filter(kinds=("PLAN_CREATED", "step-started", "VerifyOk")).kinds == (
        "ItemOpened",
        "StepStarted",
        "VerifyOk",
    )
