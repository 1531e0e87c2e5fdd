import msgspec
import pytest

from planforge.rules.loops import Continue, Decision, Done, Escalate, Halt, Loop, Round, blocking_only
from planforge.rules.verdicts import Judgement, Verdict


def verdict(kind: Verdict, reason: str = "because") -> Round:
    return Round.of_audit(Judgement(verdict=kind, max_severity=None, findings=(), reason=reason))


APPROVED, REVISION, UNKNOWN = (
    verdict(kind) for kind in (Verdict.APPROVED, Verdict.REVISION, Verdict.UNKNOWN)
)


@pytest.mark.parametrize(
    ("history", "cap", "kind"),
    [
        ((), 1, Continue),
        ((APPROVED,), 1, Done),
        ((REVISION,), 1, Escalate),
        ((REVISION,), 2, Continue),
        ((REVISION, REVISION), 2, Escalate),
        ((REVISION, REVISION, REVISION), 2, Escalate),
        ((REVISION, APPROVED), 2, Done),
        ((UNKNOWN,), 5, Escalate),
        ((REVISION, UNKNOWN), 5, Escalate),
        ((APPROVED, REVISION), 5, Continue),
    ],
)
def test_only_the_latest_verdict_and_the_number_of_rounds_decide(
    history: tuple[Round, ...], cap: int, kind: type[Decision]
) -> None:
    assert type(blocking_only(cap)(history)) is kind


def test_an_approval_ends_the_loop_because_nothing_blocks() -> None:
    assert blocking_only(3)((APPROVED,)) == Done("no blocking finding")


def test_the_cap_says_so_in_a_word_that_can_be_searched_for() -> None:
    assert blocking_only(1)((REVISION,)).reason.startswith("CAP_REACHED: ")


def test_an_unreadable_audit_goes_to_a_person_with_its_reason() -> None:
    decision = blocking_only(5)((verdict(Verdict.UNKNOWN, "two JSON verdicts disagree"),))
    assert decision == Escalate("a person must read the audit: two JSON verdicts disagree")


@pytest.mark.parametrize("cap", [0, -1])
def test_a_loop_without_a_single_round_is_refused(cap: int) -> None:
    with pytest.raises(ValueError, match="at least one round"):
        blocking_only(cap)


def test_a_loop_keeps_its_rounds_and_asks_the_policy_each_time() -> None:
    loop = Loop(blocking_only(3))
    decisions = [loop.record(each) for each in (REVISION, REVISION, APPROVED)]
    assert [decision.ends for decision in decisions] == [False, False, True]
    assert (loop.round, loop.latest, loop.history) == (3, APPROVED, (REVISION, REVISION, APPROVED))


def test_a_loop_that_has_not_begun_has_no_latest_verdict() -> None:
    with pytest.raises(LookupError, match="no round"):
        _ = Loop(blocking_only(1)).latest


@pytest.mark.parametrize("decision", [Continue("a"), Done("b"), Halt("c"), Escalate("d")])
def test_a_decision_survives_being_written_down(decision: Decision) -> None:
    written = msgspec.json.encode(decision)
    assert msgspec.json.decode(written, type=Decision) == decision
    assert msgspec.json.decode(written)["decision"] == type(decision).__name__.lower()


def test_every_decision_but_to_continue_ends_the_loop() -> None:
    assert [kind.ends for kind in (Continue, Done, Halt, Escalate)] == [False, True, True, True]
