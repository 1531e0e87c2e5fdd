"""What is next at a step, told from its events alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kernel.api_work import evidence
from planforge.kernel import events
from planforge.kernel.continuation import LOGS, Action, fold, next_actions
from planforge.kernel.events import ArtifactKind, Event
from planforge.kernel.evidence import Outcome
from planforge.kernel.scores import score

OWN: dict[str, Any] = {"plan": "plan-001", "step": "a", "attempt": 1}
SCOPE = ("a.py", "src/", "docs/*.md")

started = events.StepStarted(**OWN, base="")
proposed = events.PatchProposed(**OWN, commit="", tree="t1", files=("a.py",), claim="I swear", agent="me")
passed = events.VerifyOk(**OWN, evidence=evidence("t1"))
failed = events.VerifyFailed(**OWN, evidence=evidence("t1", Outcome.FAIL, ("test_1", "test_2")))
nameless = events.VerifyFailed(**OWN, evidence=evidence("t1", Outcome.FAIL))
unclear = events.VerifyFailed(**OWN, evidence=evidence("t1", Outcome.CANNOT_TELL))
elsewhere = events.VerifyOk(**OWN, evidence=evidence("t0"))
rejected = events.AttemptRejected(**OWN, reason="no")
again = msgspec.structs.replace(started, attempt=2)
landed = events.PatchApplied(**OWN, content="", scope=SCOPE, branch="", commit="", tree="t1", parent="")
done = events.StepCompleted(plan="plan-001", step="a", attempts=1, score=score(evidence(), 1))
given_up = events.StepFailed(plan="plan-001", step="a", attempts=1, reason="hopeless")


def touched(path: str) -> Event:
    return events.ArtifactRecorded(**OWN, kind=ArtifactKind.FILE, name=path, hash="#")


def told(*history: Event) -> list[str]:
    return [f"{action.action} {action.target}" for action in next_actions(SCOPE, fold(history))]


CHANGE = ["change a.py", "change src/", "change docs/*.md"]
PROPOSE = ["propose the change", "verify the change", "land the change"]


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], CHANGE),
        ([started], CHANGE),
        ([started, touched("a.py"), touched("src/deep/b.py")], ["change docs/*.md", *PROPOSE[:2]]),
        ([started, touched("a.py"), touched("src/b.py"), touched("docs/a.md")], PROPOSE),
        ([started, proposed], ["verify t1", "land t1"]),
        ([started, proposed, unclear], ["verify t1", "land t1"]),
        ([started, proposed, elsewhere], ["verify t1", "land t1"]),
        ([started, proposed, passed], ["land t1"]),
        ([started, proposed, failed], ["mend test_1", "mend test_2", "propose the change"]),
        ([started, proposed, nameless], ["mend 3 of 4 tests passed", *PROPOSE[:2]]),
        ([started, proposed, failed, proposed], ["verify t1", "land t1"]),
        ([started, proposed, failed, rejected, again], ["mend test_1", "mend test_2", "change a.py"]),
        ([started, proposed, failed, proposed, passed, rejected, again], CHANGE),
        ([started, touched("a.py"), again], CHANGE),
        ([started, proposed, failed, given_up], ["mend test_1", "mend test_2", "change src/"]),
        ([started, proposed, passed, landed], ["finish the step"]),
        ([started, proposed, passed, landed, done], []),
        ([started, proposed, passed, landed, done, again], CHANGE),
    ],
)
def test_what_is_next_follows_from_what_happened(history: list[Event], expected: list[str]) -> None:
    assert told(*history) == expected


def test_what_is_told_of_attempts_is_what_was_measured_and_decided() -> None:
    state = fold([started, touched("a.py"), proposed, failed, rejected, again])
    assert [(result.attempt, result.outcome) for result in state.results] == [(1, Outcome.FAIL)]
    (failure,) = state.failures
    assert (failure.attempt, failure.reason, failure.failing) == (1, "no", ("test_1", "test_2"))
    assert state.logs[-2:] == ["AttemptRejected no", "StepStarted"]
    assert "I swear" not in " ".join(state.logs)
    assert len(fold([started, *[touched("a.py")] * 50]).logs) == LOGS


def test_other_events_change_nothing() -> None:
    other = events.GateOpened(plan="plan-001", step="a", gate="g", content="", actor="")
    assert fold([started, other, proposed]) == fold([started, proposed])


def test_an_odd_path_in_an_old_plan_is_taken_as_it_is_written() -> None:
    state = fold([started, touched("../x")])
    assert next_actions(("../x",), state)[0] == Action(action="propose", target="the change")
