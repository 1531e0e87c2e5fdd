"""A recorded run decided again: the same, or the first difference with both sides."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.recordings import (
    RUN,
    Changed,
    Forget,
    Say,
    begin,
    choir,
    ending,
    fact,
    record,
    replayed,
    talk,
)
from planforge.errors import GitFailed, LedgerUnreadable, NotFound, PerformerFailed, RefusedByGate
from planforge.kernel.effects import Note, Together
from planforge.kernel.events import Payload, Recorded, RunEnded
from planforge.kernel.ledger import Ledger
from planforge.kernel.redaction import Redactor
from planforge.kernel.replay.differences import Difference
from planforge.kernel.replay.tape import Tape


def difference(recording: Ledger | Changed, flow: object) -> Difference:
    found = replayed(recording, flow).difference  # type: ignore[arg-type]
    assert found is not None
    return found


# The same


def test_a_run_is_the_same_again(ledger: Ledger) -> None:
    record(ledger, talk("one", "two"))
    found = replayed(ledger, talk("one", "two"))
    assert found.agrees
    assert (found.ended, found.reason) == (True, "ONE TWO")
    assert (found.counts.effects, found.counts.notes, found.counts.decisions) == (3, 1, 2)


def test_a_large_outcome_is_read_from_the_objects(ledger: Ledger) -> None:
    record(ledger, talk("long " * 1000))
    assert replayed(ledger, talk("long " * 1000)).agrees


def test_a_failure_on_record_fails_again(ledger: Ledger) -> None:
    async def careful() -> str:
        try:
            await Say(words="one")
        except PerformerFailed as error:
            return f"{error.error}: {error.message}"
        return "said"

    record(ledger, careful(), answer=lambda _: GitFailed("no"))
    assert replayed(ledger, careful()).reason == "GitFailed: no"


def test_a_failure_that_ends_the_flow_ends_it_again(ledger: Ledger) -> None:
    record(ledger, talk("one"), answer=lambda _: GitFailed("no such branch"))
    found = replayed(ledger, talk("one"))
    assert found.agrees
    assert found.reason == "no such branch"


def test_nothing_is_written(ledger: Ledger, tmp_path: Path) -> None:
    record(ledger, choir("a", "b"))
    ledger.query("PRAGMA wal_checkpoint(TRUNCATE)")

    def state() -> dict[str, str]:
        files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.name.endswith("-shm")]
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    before, head = state(), ledger.head()
    assert replayed(ledger, choir("a", "b")).agrees
    assert not replayed(ledger, choir("a", "c")).agrees
    assert (state(), ledger.head()) == (before, head)


# Together


def test_the_order_in_which_flows_were_recorded_makes_no_difference(tmp_path: Path) -> None:
    found = []
    for number, names in enumerate(permutations(["a", "b", "c"])):
        ledger = Ledger.create(tmp_path / str(number))
        record(ledger, choir("a", "b", "c", lines=1), order=[f"{name}0" for name in names])
        found.append(replayed(ledger, choir("a", "b", "c", lines=1)))
        ledger.close()
    assert all(one.agrees for one in found)
    assert all(one == found[0] for one in found)


def test_flows_inside_flows_are_the_same_again(ledger: Ledger) -> None:
    async def both() -> str:
        said = await Together({"x": choir("a", "b"), "y z/": choir("a")})
        return str(said)

    record(ledger, both())
    assert replayed(ledger, both()).agrees


def test_a_failure_in_one_flow_lets_the_others_finish_first(ledger: Ledger) -> None:
    record(ledger, choir("a", "b"), answer=lambda words: GitFailed("no") if words == "a0" else None)
    found = replayed(ledger, choir("a", "b"))
    assert found.agrees
    assert found.counts.notes == 1


def test_an_interrupted_flow_is_compared_in_all_its_branches(ledger: Ledger) -> None:
    record(ledger, choir("a", "b"), end=False)

    def cut(events: list[Recorded]) -> list[Recorded]:
        return [
            item for item in events if not (item.key.startswith("/0/a/1") or item.key in ("/0/a/2", "/1"))
        ]

    cut_off = Changed(ledger, lambda events: [item for item in cut(events) if item.key != "/0/a/3"])
    found = replayed(cut_off, choir("a", "b"))
    assert found.agrees
    assert (found.ended, found.counts.notes) == (False, 1)
    assert found.reason == "the recording ends at `/0/a/1`: `Say` (a1) has no recorded outcome"


# Different


def test_another_effect_is_a_difference_with_both_sides(ledger: Ledger) -> None:
    record(ledger, talk("one", "two"))
    found = difference(ledger, talk("one", "three"))
    assert found.key == "/1"
    assert found.recorded == {"effect": "Say", "body": {"words": "two"}}
    assert found.asked == {"effect": "Say", "body": {"words": "three"}}
    assert [(field.path, field.recorded, field.asked) for field in found.fields] == [
        ("body.words", "two", "three")
    ]


def test_an_effect_of_another_kind_with_the_same_content_is_a_difference(ledger: Ledger) -> None:
    class Shout(Say, frozen=True, kw_only=True):
        pass

    async def shouting() -> None:
        await Shout(words="one")

    record(ledger, talk("one"))
    assert difference(ledger, shouting()).key == "/0"


def test_another_fact_is_a_difference(ledger: Ledger) -> None:
    record(ledger, talk("one"))
    found = difference(ledger, talk("one", noted="otherwise"))
    assert (found.key, found.problem) == ("/1", "another fact is on record under `/1`")
    assert [field.path for field in found.fields] == ["reason"]


def test_another_set_of_flows_is_a_difference(ledger: Ledger) -> None:
    record(ledger, choir("a", "b"))
    found = difference(ledger, choir("a", "c"))
    assert (found.key, [field.path for field in found.fields]) == ("/0", ["body[1]"])


def test_another_end_is_a_difference(ledger: Ledger) -> None:
    async def silent() -> str:
        await talk("one")
        return "nothing"

    record(ledger, talk("one"))
    found = difference(ledger, silent())
    assert found.problem == "the flow ends otherwise than the recording says"
    assert [(field.path, field.recorded, field.asked) for field in found.fields] == [
        ("reason", "ONE", "nothing")
    ]


def test_what_is_on_record_and_never_asked_for_is_a_difference(ledger: Ledger) -> None:
    async def short() -> str:
        return (await Say(words="one")).words

    record(ledger, talk("one"))
    found = difference(ledger, short())
    assert found.problem == "`/1` is on record, but the flow never asks for it"
    assert found.asked is None


def test_what_is_asked_for_after_the_recorded_end_is_a_difference(ledger: Ledger) -> None:
    async def longer() -> str:
        said = await talk("one")
        await Say(words="more")
        return said

    record(ledger, talk("one"))
    found = difference(ledger, longer())
    assert found.problem == "`/3` is asked for, but the recording ends without it"


def test_a_flow_that_fails_by_mistake_is_a_difference(ledger: Ledger) -> None:
    async def broken() -> str:
        await talk("one")
        raise ZeroDivisionError("oh")

    record(ledger, talk("one"))
    assert difference(ledger, broken()).problem == "the flow failed with ZeroDivisionError: oh"


def swap(one: str, other: str) -> Callable[[list[Recorded]], Iterable[Recorded]]:
    """Exchange the places of the events of two keys."""

    def change(events: list[Recorded]) -> Iterable[Recorded]:
        names = {one: other, other: one}
        versions = {item.key: item.version for item in events}
        for item in events:
            version = versions[names[item.key]] if item.key in names else item.version
            yield msgspec.structs.replace(item, version=version)

    return change


def again(key: str) -> Callable[[list[Recorded]], Iterable[Recorded]]:
    """Record the first event of a key once more."""

    def change(events: list[Recorded]) -> Iterable[Recorded]:
        end = events.pop()
        found = next(item for item in events if item.key == key)
        return [*events, msgspec.structs.replace(found, version=end.version), end]

    return change


def unkeyed(events: list[Recorded]) -> Iterable[Recorded]:
    """Put a fact into the run that nobody noted."""
    end = events.pop()
    return [*events, msgspec.structs.replace(end, event=fact("a lie"), key=""), end]


def after_the_end(events: list[Recorded]) -> Iterable[Recorded]:
    return [*events, msgspec.structs.replace(events[-1], version=events[-1].version + 1)]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (swap("/1", "/2"), "is recorded before what the flow asks for first"),
        (again("/0"), "has no place in the run"),
        (again("/2"), "has no place in the run"),
        (unkeyed, "has no place in the run"),
        (after_the_end, "has no place in the run"),
    ],
    ids=["out of order", "an effect twice", "a fact twice", "a fact of nobody's", "after the end"],
)
def test_events_that_no_driver_records_are_a_difference(
    ledger: Ledger, change: Callable[[list[Recorded]], Iterable[Recorded]], problem: str
) -> None:
    record(ledger, talk("one", "two"))
    assert problem in difference(Changed(ledger, change), talk("one", "two")).problem


def test_a_body_that_its_fingerprint_does_not_fit_is_a_difference(ledger: Ledger) -> None:
    record(ledger, talk("one"))

    def change(events: list[Recorded]) -> Iterable[Recorded]:
        for item in events:
            if item.kind == "EffectIntended" and item.key == "/0":
                body = Payload(inline=msgspec.Raw(b'{"words":"two"}'))
                yield msgspec.structs.replace(item, event=msgspec.structs.replace(item.event, body=body))
            else:
                yield item

    assert "fingerprint" in difference(Changed(ledger, change), talk("one")).problem


def test_a_run_with_a_secret_in_it_is_the_same_again(ledger: Ledger) -> None:
    words = "use sk-ant-api03-" + "Zx9Qw7Lk2" * 10
    record(ledger, talk(words), redact=Redactor({"SECRET": words[4:]}))
    bodies = b"".join(bytes(item.event.body.inline) for item in intents(ledger))
    assert b"[redacted:SECRET]" in bodies
    assert replayed(ledger, talk(words)).agrees
    assert not replayed(ledger, talk(words + "!")).agrees


def intents(ledger: Ledger) -> list[Any]:
    return [item for item in ledger.stream(RUN) if item.kind == "EffectIntended"]


# Not finished, ended from outside, not readable


def test_a_run_that_is_not_finished_is_compared_up_to_where_its_recording_ends(ledger: Ledger) -> None:
    record(ledger, talk("one"), end=False)
    found = replayed(ledger, talk("one"))
    assert (found.agrees, found.ended) == (True, False)
    cut = Changed(ledger, lambda events: events[:4])
    found = replayed(cut, talk("one"))
    assert (found.agrees, found.ended) == (True, False)
    assert found.reason == "the recording ends at `/1`: `AttemptRejected` is not on record"


def test_an_effect_that_was_under_way_is_where_the_recording_ends(ledger: Ledger) -> None:
    record(ledger, talk("one"), end=False)
    found = replayed(Changed(ledger, lambda events: events[:3]), talk("one"))
    assert found.reason == "the recording ends at `/0`: `Say` (one) has no recorded outcome"


def test_a_difference_before_the_recording_ends_is_still_one(ledger: Ledger) -> None:
    record(ledger, talk("one"), end=False)
    assert not replayed(Changed(ledger, lambda events: events[:3]), talk("two")).agrees


def test_a_run_that_a_gate_refused_is_the_same_up_to_the_gate(ledger: Ledger) -> None:
    record(ledger, talk("one"), answer=lambda _: RefusedByGate("not approved"))
    found = replayed(ledger, talk("one"))
    assert found.agrees
    assert (found.ended, found.reason) == (True, "not approved")


def ended(reason: str, *, succeeded: bool = False) -> Callable[[list[Recorded]], Iterable[Recorded]]:
    def change(events: list[Recorded]) -> Iterable[Recorded]:
        end = RunEnded(run=RUN, succeeded=succeeded, reason=reason, exit_code=1)
        return [*events[:3], msgspec.structs.replace(events[3], event=end, key="")]

    return change


def test_a_run_that_a_person_cancelled_is_the_same_up_to_there(ledger: Ledger) -> None:
    record(ledger, talk("one"))
    found = replayed(Changed(ledger, ended("cancelled by ada: enough")), talk("one"))
    assert found.agrees
    assert found.reason == "cancelled by ada: enough"


@pytest.mark.parametrize("succeeded", [True, False])
def test_an_end_that_the_flow_did_not_come_to_is_a_difference(ledger: Ledger, succeeded: bool) -> None:
    record(ledger, talk("one"))
    changed = Changed(ledger, ended("said to be over", succeeded=succeeded))
    assert "the recording ends without it" in difference(changed, talk("one")).problem


def test_an_object_that_is_gone_is_said_and_not_taken_for_the_end(ledger: Ledger) -> None:
    record(ledger, talk("long " * 1000), end=False)
    for path in (ledger.directory / "objects").rglob("*"):
        if path.is_file():
            path.unlink()
    with pytest.raises(LedgerUnreadable, match="is missing"):
        replayed(ledger, talk("long " * 1000))


def test_a_run_that_is_not_there_is_said(ledger: Ledger) -> None:
    with pytest.raises(NotFound, match="there is no `run-009` here"):
        Tape(ledger, "run-009")
    begin(ledger)
    with pytest.raises(LedgerUnreadable, match="does not begin with its start"):
        Tape(Changed(ledger, lambda _: _without_start(ledger)), RUN)


def _without_start(ledger: Ledger) -> list[Recorded]:
    (started,) = ledger.stream(RUN)
    return [msgspec.structs.replace(started, event=ending("over"))]


def test_a_flow_may_note_what_it_forgot(ledger: Ledger) -> None:
    async def forgetful() -> str:
        await Forget(words="x")
        await Note(fact("gone"))
        return "over"

    record(ledger, forgetful())
    assert replayed(ledger, forgetful()).agrees
