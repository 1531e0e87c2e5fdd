"""Recorded runs, decided again on every build: most must be the same again, some must not."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from planforge.app.history.proof_checks import checked
from planforge.app.history.replays import backtested, replayed
from planforge.errors import PlanforgeError
from planforge.kernel.events import RunEnded
from planforge.kernel.replay.backtest import End
from planforge.kernel.replay.proof import Proof
from planforge.kernel.replay.proof_faults import unpack

HERE = Path(__file__).parent
ALL = sorted(path.stem for path in HERE.glob("*.proof"))
DIVERGED = {
    "diverged-because-a-failing-check-was-let-pass": (
        "another fact",
        "fact",
        ("VerifyOk", "VerifyFailed"),
    ),
    "diverged-because-agents-were-told-otherwise": ("another effect", "effect", ("RunAgent", "RunAgent")),
    "diverged-because-scores-were-made-kinder": (
        "another fact",
        "fact",
        ("StepCompleted", "StepCompleted"),
    ),
}
EARLIER = "diverged-because-version-1-of-the-flow-recorded-it"
UNFINISHED = {"interrupted-by-kill-9"}
SAME = sorted(set(ALL) - set(DIVERGED) - {EARLIER})
LIMIT = 200_000


def content(name: str) -> bytes:
    return (HERE / f"{name}.proof").read_bytes()


def history(name: str) -> Proof:
    proof, faults = unpack(content(name))
    assert faults == []
    return proof


def run_of(proof: Proof) -> str:
    return proof.manifest.about.run


def test_there_is_an_old_history_a_retried_a_failed_an_interrupted_and_a_diverged_one() -> None:
    words = " ".join(ALL)
    assert all(word in words for word in ("demo", "retries", "failed", "interrupted", "composed", "diverged"))
    assert set(DIVERGED) | UNFINISHED | {EARLIER} <= set(ALL)


@pytest.mark.parametrize("name", SAME)
def test_a_recorded_history_is_the_same_again(name: str) -> None:
    proof = history(name)
    replay = replayed(proof, run_of(proof))
    assert replay.difference is None
    assert replay.ended is (name not in UNFINISHED)
    assert replay.counts.effects > 10
    assert replay.counts.notes > 4


@pytest.mark.parametrize("name", SAME)
def test_a_recorded_history_is_a_proof_that_holds(name: str) -> None:
    _, found = checked(content(name))
    assert found.faults == ()
    assert found.holds


@pytest.mark.parametrize("name", sorted(DIVERGED))
def test_a_history_of_a_changed_flow_is_reported_as_diverged_with_both_sides(name: str) -> None:
    problem, what, names = DIVERGED[name]
    proof = history(name)
    difference = replayed(proof, run_of(proof)).difference
    assert difference is not None
    assert problem in difference.problem
    sides = [msgspec.convert(side, dict[str, object]) for side in (difference.recorded, difference.asked)]
    assert tuple(side[what] for side in sides) == names
    assert not checked(content(name))[1].holds


def test_a_changed_prompt_is_shown_where_it_changed() -> None:
    proof = history("diverged-because-agents-were-told-otherwise")
    difference = replayed(proof, run_of(proof)).difference
    assert difference is not None
    assert [field.path for field in difference.fields] == ["body.prompt"]
    assert "Be brief." in str(difference.fields[0].recorded)
    assert "Be brief." not in str(difference.fields[0].asked)


def test_a_kinder_score_is_shown_by_its_value() -> None:
    proof = history("diverged-because-scores-were-made-kinder")
    difference = replayed(proof, run_of(proof)).difference
    assert difference is not None
    assert [field.path for field in difference.fields] == ["score.value"]


def test_a_history_of_an_earlier_version_of_its_flow_is_refused_with_both_versions() -> None:
    proof = history(EARLIER)
    with pytest.raises(PlanforgeError, match="by version 1 of `plan_run`, this Planforge has version 2"):
        replayed(proof, run_of(proof))
    found = checked(content(EARLIER))[1]
    assert not found.holds
    assert any("by version 1 of `plan_run`" in fault.problem for fault in found.faults)


@pytest.mark.parametrize("name", sorted({*SAME, *DIVERGED}))
def test_a_backtest_without_changes_is_the_replay(name: str) -> None:
    proof = history(name)
    replay = replayed(proof, run_of(proof))
    found = backtested(proof, run_of(proof), []).backtest
    assert found.parted == replay.difference
    if replay.difference is not None:
        return
    ended = [item.event for item in proof.stream(run_of(proof)) if isinstance(item.event, RunEnded)]
    ends: list[End | None] = [
        End(succeeded=end.succeeded, reason=end.reason, exit_code=end.exit_code) for end in ended
    ]
    assert [found.end] == (ends or [None])
    assert found.ended is replay.ended
    assert found.cost == found.recorded_cost
    assert found.assumptions == ()


@pytest.mark.parametrize("name", ALL)
def test_a_history_is_small_and_names_no_machine_and_nobody_real(name: str) -> None:
    assert len(content(name)) < LIMIT
    proof = history(name)
    bodies = [*(line.body for line in proof.lines if hasattr(line, "body"))]
    texts = "\n".join(
        [
            *bodies,
            *(part.decode("utf-8", "replace") for part in proof.objects.content.values()),
            *(part.decode("utf-8", "replace") for part in proof.git.values()),
        ]
    )
    places = set(re.findall(r"(?<![\w.~])/(?:work|tmp|home|root|Users|var|opt|usr|srv)/[\w./-]*", texts))
    assert all(place.startswith("/srv/") for place in places), places
    people = {
        found for found in re.findall(r"[\w.+-]+@[\w.-]+", texts) if "." in found or "@localhost" in found
    }
    assert people <= {"ada@example.org", "planforge@localhost"}
