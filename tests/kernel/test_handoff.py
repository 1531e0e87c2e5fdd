"""Handing over: built from the ledger, whole or not at all, and enough to go on as if nothing had been."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel import handing
from kernel.api_work import change, evidence, verify, work
from kernel.handing import FULL, Agent
from planforge.errors import NotFound, RefusedByGate, StaleFence, Superseded
from planforge.kernel import continuation, events, graph, handoff, leases
from planforge.kernel.api import AgentContext, Assignment, Kernel, Outcome, TouchedFile, planned
from planforge.kernel.events import ArtifactKind, Event, HandoffEmitted
from planforge.kernel.graph.queries import Moments
from planforge.kernel.handoff import HandoffSummary
from planforge.kernel.ledger import Ledger
from planforge.kernel.objects import encode
from planforge.kernel.tokens import TokenState
from tries import tries


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    with Kernel.open(tmp_path) as opened:
        yield opened
        assert list(opened.ledger.faults()) == []


def begin(kernel: Kernel, *files: str, holder: str = "w1") -> Assignment:
    kernel.plan.create("Count words", steps=[planned("a", "Count", files=files or ("a.py", "b.py"))])
    return kernel.step.start("plan-001/a", holder=holder)


def kinds(ledger: Ledger) -> Counter[str]:
    return Counter(item.kind for item in ledger.since())


# The summary


def test_a_summary_says_what_is_on_record(kernel: Kernel) -> None:
    assignment = begin(kernel)
    kernel.step.propose(assignment, change("a.py", tree="t1"))
    kernel.step.verify(assignment, evidence("t1", Outcome.FAIL, ("test_a",)))
    kernel.step.reject(assignment, "1 test fails")
    second = kernel.step.start("plan-001/a", holder="w1")
    name = kernel.handoff.emit(second, FULL, successor="w2", files=[TouchedFile(path="b.py", hash="#b")])
    summary = kernel.handoff.load(name).summary
    assert name == "plan-001/a#1"
    assert (summary.plan, summary.step, summary.title) == ("plan-001", "plan-001/a", "Count")
    assert (summary.goal, summary.attempt, summary.context) == ("Count words", 2, FULL)
    assert summary.touched_files == (TouchedFile(path="b.py", hash="#b"),)
    assert [(result.attempt, result.outcome) for result in summary.verification_results] == [
        (1, Outcome.FAIL)
    ]
    assert [(failure.attempt, failure.failing) for failure in summary.failures] == [(1, ("test_a",))]
    assert summary.failing == ("test_a",)
    actions = [f"{action.action} {action.target}" for action in summary.next_actions]
    assert actions == ["mend test_a", "change a.py", "propose the change"]
    assert len(summary.queries) == 2


def test_nothing_of_what_an_agent_said_is_in_the_summary(kernel: Kernel) -> None:
    assignment = begin(kernel)
    said = msgspec.structs.replace(change("a.py", tree="t1"), claim="I am quite sure", agent="a chatty one")
    kernel.step.propose(assignment, said)
    kernel.step.verify(assignment, evidence("t1"))
    written = encode(kernel.handoff.load(kernel.handoff.emit(assignment, FULL, successor="w2")).summary)
    assert b"quite sure" not in written
    assert b"chatty" not in written


def test_a_context_is_the_same_when_it_was_written_down_and_read_again(kernel: Kernel) -> None:
    assignment = begin(kernel)
    kernel.step.propose(assignment, change("a.py", tree="t1"))
    context = kernel.handoff.load(kernel.handoff.emit(assignment, FULL, successor="w2"))
    read = msgspec.json.decode(encode(context), type=AgentContext)
    assert read.next_actions() == context.next_actions() == context.summary.next_actions
    assert read.summary == context.summary


# Going on from the summary and the answers alone


TESTS = st.lists(st.sampled_from(["test_1", "test_2", "test_3", "test_4"]), unique=True, max_size=4)
PATHS = st.sampled_from(["a.py", "src/b.py", "docs/c.md", "else.py"])
TREES = st.sampled_from(["t1", "t2"])
STEPS = st.sampled_from(["a", "a", "a", "b"])


@st.composite
def happenings(draw: st.DrawFn) -> Event:
    """Something that happens to a step, or to another one of the plan."""
    own: dict[str, Any] = {"plan": "plan-001", "step": draw(STEPS), "attempt": draw(st.integers(1, 4))}
    tree = draw(TREES)
    outcome = draw(st.sampled_from([Outcome.FAIL, Outcome.CANNOT_TELL]))
    failed = evidence(tree, outcome, tuple(draw(TESTS)))
    return draw(
        st.sampled_from(
            [
                events.StepStarted(**own, base="", holder="w1"),
                events.ArtifactRecorded(**own, kind=ArtifactKind.FILE, name=draw(PATHS), hash="#"),
                events.ArtifactRecorded(**own, kind=ArtifactKind.TEST, name="test_1", hash="#"),
                events.PatchProposed(**own, commit="c", tree=tree, files=(draw(PATHS),), claim="", agent=""),
                events.VerifyOk(**own, evidence=evidence(tree)),
                events.VerifyFailed(**own, evidence=failed),
                events.VerifyFailed(**own, evidence=failed),
                events.AttemptRejected(**own, reason="no"),
                events.PatchApplied(**own, content="", scope=(), branch="", commit="c", tree=tree, parent=""),
                events.StepCompleted(plan="plan-001", step=own["step"], attempts=1, score=None),
                events.StepFailed(plan="plan-001", step=own["step"], attempts=1, reason="hopeless"),
                events.GateOpened(plan="plan-001", step=own["step"], gate="g", content="", actor=""),
            ]
        )
    )


FILES = ("a.py", "src/", "docs/*.md")


def known_by_heart(ledger: Ledger, plan: str) -> tuple[continuation.Action, ...]:
    """What is next for somebody who has seen every event of the plan."""
    seen = [item.event for item in ledger.stream(plan) if getattr(item.event, "step", "") == "a"]
    return continuation.next_actions(FILES, continuation.fold(seen))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel for many plans."""
    with Kernel.open(tmp_path_factory.mktemp("many")) as opened:
        yield opened


@settings(max_examples=tries(150), deadline=None)
@given(st.lists(happenings(), max_size=25), st.integers(0, 25))
def test_whoever_goes_on_from_the_handoff_alone_is_told_what_one_who_saw_everything_is_told(
    many: Kernel, history: list[Event], cut: int
) -> None:
    ledger = many.ledger
    plan = many.plan.create("g", steps=[planned("a", files=FILES, gates=["g"]), planned("b")])
    told = [msgspec.structs.replace(event, plan=plan) for event in history]
    ledger.append(plan, told[:cut], expected=None)
    summary = handoff.summarise(ledger, graph.find(ledger, f"{plan}/a"), FULL)
    assert summary.next_actions == known_by_heart(ledger, plan)
    stored = msgspec.json.decode(encode(summary), type=HandoffSummary)
    assert handoff.answered(ledger, stored).next_actions() == summary.next_actions
    ledger.append(plan, told[cut:], expected=None)  # before the successor comes
    assert handoff.answered(ledger, stored).next_actions() == known_by_heart(ledger, plan)


def drive(agent: Agent, turns: int | None = None) -> None:
    """Let an agent work, to the end or for so many turns. After two failed checks an attempt is given up."""
    while agent.outcome is None and turns != 0:
        turns = None if turns is None else turns - 1
        agent.turn()
        start = max(at for at, event in enumerate(agent.history) if isinstance(event, events.StepStarted))
        checks = [event for event in agent.history[start:] if isinstance(event, events.VerifyFailed)]
        if len(checks) == 2:
            agent.start_over()


def opened(place: Path) -> tuple[Kernel, Agent]:
    place.mkdir()
    kernel = Kernel.open(place)
    assignment = begin(kernel, *handing.NEEDED, holder="w1")
    return kernel, Agent(kernel, place, assignment)


def left_by(kernel: Kernel, place: Path) -> tuple[object, ...]:
    """What must not depend on how many agents it took."""
    contents = {path: (place / path).read_text() for path in handing.NEEDED}
    seen = [
        item.event
        for item in kernel.ledger.since()
        if isinstance(item.event, events.VerifyOk | events.VerifyFailed | events.PatchApplied)
    ]
    return contents, seen, kernel.step.score("plan-001/a")


TURNS = 10
"""How many turns the scripted agent needs."""


def test_an_agent_continued_from_the_handoff_alone_takes_the_same_actions_as_one_that_went_on(
    tmp_path: Path,
) -> None:
    whole, alone = opened(tmp_path / "alone")
    drive(alone)
    assert len(alone.turns) == TURNS
    assert Counter(turn[0].action for turn in alone.turns) == {
        "change": 3,
        "mend": 2,
        "propose": 1,
        "verify": 3,
        "land": 1,
    }
    for stop in range(TURNS):
        place = tmp_path / f"stopped-{stop}"
        kernel, agent = opened(place)
        drive(agent, stop)
        name = kernel.handoff.emit(
            agent.assignment, FULL, successor="w2", files=list(agent.unrecorded.values())
        )
        text = encode(kernel.handoff.load(name))
        assignment = kernel.handoff.take(name, holder="w2")
        context = msgspec.json.decode(text, type=AgentContext)
        assert context.next_actions() == agent.next_actions == alone.turns[stop]
        successor = Agent.taking_over(kernel, place, assignment, context)
        drive(successor)
        assert agent.turns + successor.turns == alone.turns
        assert left_by(kernel, place) == left_by(whole, tmp_path / "alone")
        assert list(kernel.ledger.faults()) == []
        kernel.close()
    whole.close()


@pytest.mark.parametrize("dropped", [0, 1])
def test_none_of_the_queries_can_be_done_without(kernel: Kernel, dropped: int) -> None:
    assignment = begin(kernel)
    kernel.step.propose(assignment, change("a.py", tree="t1"))
    context = kernel.handoff.load(kernel.handoff.emit(assignment, FULL, successor="w2"))
    answers = tuple(answer for at, answer in enumerate(context.answers) if at != dropped)
    poorer = msgspec.structs.replace(context, answers=answers)
    try:
        assert poorer.next_actions() != context.next_actions()
    except NotFound:
        return


def test_failing_tests_of_a_long_attempt_are_not_lost(kernel: Kernel) -> None:
    assignment = begin(kernel)
    kernel.step.propose(assignment, change("a.py", tree="t1"))
    for _ in range(120):
        kernel.step.verify(assignment, evidence("t1", Outcome.FAIL, ("test_old",)))
    kernel.step.verify(assignment, evidence("t1", Outcome.FAIL, ("test_new",)))
    context = kernel.handoff.load(kernel.handoff.emit(assignment, FULL, successor="w2"))
    (moments,) = (answer for answer in context.answers if isinstance(answer, Moments))
    assert (len(moments.events) > 121, moments.next) == (True, None)
    assert [action.target for action in context.next_actions()][:1] == ["test_new"]
    assert context.next_actions() == context.summary.next_actions


def test_what_failed_before_an_attempt_that_was_never_rejected_is_not_lost(kernel: Kernel) -> None:
    assignment = begin(kernel)
    kernel.step.propose(assignment, change("a.py", tree="t1"))
    kernel.step.verify(assignment, evidence("t1", Outcome.FAIL, ("test_a",)))
    again = kernel.step.start("plan-001/a", holder="w1")
    context = kernel.handoff.load(kernel.handoff.emit(again, FULL, successor="w2"))
    assert context.summary.failures == ()
    assert context.next_actions()[0].target == "test_a"


def test_a_successor_of_a_superseded_step_has_nothing_to_do(kernel: Kernel) -> None:
    assignment = begin(kernel)
    name = kernel.handoff.emit(assignment, FULL, successor="w2")
    assert kernel.handoff.load(name).next_actions() != ()
    kernel.plan.rescope("plan-001", "smaller", [planned("z")])
    assert kernel.handoff.load(name).next_actions() == ()
    with pytest.raises(Superseded):
        kernel.handoff.take(name, holder="w2")


# Passing the lease


def test_the_lease_goes_to_the_successor_under_a_new_fence_and_the_old_one_opens_nothing(
    kernel: Kernel,
) -> None:
    assignment = begin(kernel)
    proposal = work(assignment)
    kernel.step.propose(assignment, proposal)
    kernel.step.verify(assignment, verify(assignment, proposal))
    name = kernel.handoff.emit(assignment, FULL, successor="w2")
    with pytest.raises(StaleFence, match="passed to `w2` with fence 2"):
        leases.require(kernel.ledger, assignment.fence, ["a.py"], "w1")
    with pytest.raises(RefusedByGate, match="in progress by `w2`, not by `w1`"):
        kernel.step.accept(assignment, proposal, verify(assignment, proposal))
    late = msgspec.structs.replace(assignment, holder="w2")
    with pytest.raises(StaleFence, match="passed to `w2` with fence 2"):
        kernel.step.accept(late, proposal, verify(assignment, proposal))
    taken = kernel.handoff.take(name, holder="w2")
    assert (taken.fence > assignment.fence, taken.files) == (True, assignment.files)
    assert kernel.step.accept(taken, proposal, verify(taken, proposal)).accepted


def test_a_handoff_without_a_live_lease_is_refused_and_leaves_nothing(kernel: Kernel) -> None:
    assignment = begin(kernel)
    leases.force(kernel.ledger, assignment.fence, "ann", "it hangs")
    head = kernel.ledger.head()
    with pytest.raises(StaleFence, match="was taken away by `ann`"):
        kernel.handoff.emit(assignment, FULL, successor="w2", files=[TouchedFile(path="a.py", hash="#")])
    assert kernel.ledger.head() == head


def test_only_who_is_at_a_step_hands_it_over_and_to_somebody_else(kernel: Kernel) -> None:
    assignment = begin(kernel)
    head = kernel.ledger.head()
    for holder, successor in (("w9", "w2"), ("w1", "w1"), ("w1", " ")):
        with pytest.raises(RefusedByGate):
            kernel.handoff.emit(msgspec.structs.replace(assignment, holder=holder), FULL, successor=successor)
    assert kernel.ledger.head() == head
    kernel.step.reject(assignment, "no")
    with pytest.raises(RefusedByGate, match="is not under way"):
        kernel.handoff.emit(assignment, FULL, successor="w2")


def test_only_the_successor_takes_a_handoff_up_and_it_is_recorded_once(kernel: Kernel) -> None:
    name = kernel.handoff.emit(begin(kernel), FULL, successor="w2")
    with pytest.raises(RefusedByGate, match="is for `w2`, not for `w3`"):
        kernel.handoff.take(name, holder="w3")
    assert kernel.handoff.take(name, holder="w2") == kernel.handoff.take(name, holder="w2")
    assert kinds(kernel.ledger)["HandoffLoaded"] == 1


def test_a_successor_that_comes_too_late_is_told_so(kernel: Kernel) -> None:
    assignment = begin(kernel)
    name = kernel.handoff.emit(assignment, FULL, successor="w2", ttl=timedelta(microseconds=1))
    with pytest.raises(StaleFence, match="ran out"):
        kernel.handoff.take(name, holder="w2")


def test_a_step_without_files_is_handed_over_without_a_lease(kernel: Kernel) -> None:
    kernel.plan.create("g", steps=[planned("audit")])
    assignment = kernel.step.start("plan-001/audit", holder="w1")
    name = kernel.handoff.emit(assignment, FULL, successor="w2")
    assert kernel.handoff.take(name, holder="w2").fence == 0
    assert kernel.step.under_way("plan-001", "audit").holder == "w2"


@pytest.mark.parametrize(
    "name", ["", "x", "#1", "plan-001/a", "plan-001/a#2", "plan-001/z#1", "plan-009/a#1"]
)
def test_a_handoff_that_is_not_there_is_not_found(kernel: Kernel, name: str) -> None:
    kernel.handoff.emit(begin(kernel), FULL, successor="w2")
    for ask in (kernel.handoff.load, lambda name: kernel.handoff.take(name, holder="w2")):
        with pytest.raises(NotFound, match="there is no handoff"):
            ask(name)


# Once, and whole


def test_asking_again_finds_what_was_recorded(kernel: Kernel) -> None:
    assignment = begin(kernel)
    files = [TouchedFile(path="a.py", hash="#")]
    first = kernel.handoff.emit(assignment, FULL, successor="w2", files=files)
    head = kernel.ledger.head()
    assert kernel.handoff.emit(assignment, FULL, successor="w2", files=files) == first
    assert kernel.ledger.head() == head


def test_two_agents_may_hand_over_to_each_other_again_and_again(kernel: Kernel) -> None:
    assignment = begin(kernel)
    names = []
    for successor in ("w2", "w1", "w2", "w1"):
        names.append(kernel.handoff.emit(assignment, FULL, successor=successor))
        assignment = kernel.handoff.take(names[-1], holder=successor)
    assert names == [f"plan-001/a#{number}" for number in (1, 2, 3, 4)]
    assert [event.handoff for event in handoff.emitted(kernel.ledger)] == names
    assert kernel.step.under_way("plan-001", "a") == assignment


def test_the_same_names_in_the_next_attempt_are_another_handoff(kernel: Kernel) -> None:
    first = begin(kernel)
    kernel.handoff.emit(first, FULL, successor="w2")
    second = kernel.handoff.take("plan-001/a#1", holder="w2")
    kernel.step.propose(second, change("a.py", tree="t1"))
    kernel.step.reject(second, "no")
    name = kernel.handoff.emit(kernel.step.start("plan-001/a", holder="w1"), FULL, successor="w2")
    assert name == "plan-001/a#2"
    assert kernel.handoff.load(name).summary.attempt == 2


def test_a_lease_that_was_passed_on_already_is_named_in_the_handoff(kernel: Kernel) -> None:
    assignment = begin(kernel)
    lease = leases.transfer(kernel.ledger, assignment.fence, "w2", timedelta(minutes=1))
    event = handoff.emit(kernel.ledger, "plan-001/a", FULL, holder="w1", successor="w2", passed=lease.fence)
    assert event.fence == lease.fence


def test_an_estimate_is_marked_as_such(kernel: Kernel) -> None:
    guess = TokenState(used=1, threshold=1, estimated=True)
    kernel.handoff.emit(begin(kernel), guess, successor="w2")
    (event,) = handoff.emitted(kernel.ledger, "plan-001.r1/a")
    assert (event.used, event.threshold, event.estimated) == (1, 1, True)


@pytest.mark.dear
def test_a_handoff_whose_writer_is_killed_is_whole_or_not_there(tmp_path: Path) -> None:
    chance = random.Random(7)
    found: Counter[bool] = Counter()
    with Kernel.open(tmp_path) as kernel:
        kernel.plan.create("g", steps=[planned(f"s{number}", files=[f"{number}/"]) for number in range(6)])
        for step in kernel.plan.next_steps("plan-001"):
            found[killed_at_it(kernel, tmp_path, step, chance.uniform(0, 0.03))] += 1
    assert sum(found.values()) == 6


def killed_at_it(kernel: Kernel, place: Path, step: str, delay: float) -> bool:
    """Whether somebody who was killed while handing over had done it; then it is done again."""
    assignment = kernel.step.start(step, holder="w1")
    argv = [sys.executable, handing.__file__, str(place), step, "w1", "w2", str(assignment.fence)]
    path = {"PYTHONPATH": str(Path(__file__).parents[1])}
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, env=path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        before = kernel.ledger.head()
        process.stdin.write("go\n")
        process.stdin.flush()
        time.sleep(delay)  # when the end comes is chance; what must hold then is not
        process.kill()
        said = process.stdout.read().split()
    recorded = [item.event for item in kernel.ledger.since(before)]
    done = any(isinstance(event, HandoffEmitted) for event in recorded)
    assert len(recorded) == (22 if done else 0)
    assert said == [] or done
    (lease,) = kernel.lease.held()
    assert (lease.holder, lease.fence > assignment.fence) == (("w2", True) if done else ("w1", False))
    files = [TouchedFile(path=f"{number}.py", hash="#") for number in range(20)]
    name = kernel.handoff.emit(assignment, FULL, successor="w2", files=files)
    assert len(list(kernel.ledger.since(before))) == 22
    kernel.step.reject(kernel.handoff.take(name, holder="w2"), "next")
    return done
