"""The kernel as other programs use it: every promise, and every no."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

import planforge
from kernel.api_work import change, evidence, refute, running, verify, work
from kernel.histories import StandingClock
from planforge.errors import (
    BudgetGone,
    InvalidGraph,
    InvalidInput,
    LeaseHeld,
    LedgerUnreadable,
    NotFound,
    PlanforgeError,
    RefusedByGate,
    StaleFence,
    StepBlocked,
    Superseded,
    Unleased,
)
from planforge.kernel import leases
from planforge.kernel.api import (
    Amounts,
    Assignment,
    Evidence,
    Kernel,
    Outcome,
    PlannedRisk,
    Proposal,
    StepOutcome,
    planned,
)
from planforge.kernel.events import ItemOpened, Recorded, VerifyOk
from planforge.kernel.graph.queries import Blocked, Blockers, NextSteps, StepList
from planforge.kernel.ledger import Ledger

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def kernel(tmp_path: Path, clock: StandingClock) -> Iterator[Kernel]:
    with Kernel(Ledger.create(tmp_path / ".planforge", clock)) as opened:
        yield opened
        assert list(opened.ledger.faults()) == []


def plan_of(kernel: Kernel, **steps: list[str]) -> str:
    """A plan whose steps have these files and depend on nothing."""
    return kernel.plan.create("a goal", steps=[planned(step, files=files) for step, files in steps.items()])


def status(kernel: Kernel, step: str) -> str:
    found = kernel.graph.query(Blocked(step=step))
    assert isinstance(found, Blockers)
    return found.step.status


def kinds(kernel: Kernel) -> list[str]:
    return [recorded.kind for recorded in kernel.ledger.since()]


def proposed(kernel: Kernel, step: str, holder: str = "") -> tuple[Assignment, Proposal]:
    assignment = kernel.step.start(step, holder=holder)
    proposal = work(assignment)
    kernel.step.propose(assignment, proposal)
    return assignment, proposal


def verified(kernel: Kernel, step: str, holder: str = "") -> tuple[Assignment, Proposal, Evidence]:
    assignment, proposal = proposed(kernel, step, holder)
    seen = verify(assignment, proposal)
    kernel.step.verify(assignment, seen)
    return assignment, proposal, seen


# Opening


def test_a_directory_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"`.*missing` does not exist"):
        Kernel.open(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_place_for_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotFound, match=r"`.*file` is not a directory"):
        Kernel.open(tmp_path / "file")


def test_without_leave_to_make_a_ledger_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnreadable, match="there is no ledger at"):
        Kernel.open(tmp_path, create=False)
    assert list(tmp_path.iterdir()) == []
    Kernel.open(tmp_path).close()
    Kernel.open(tmp_path, create=False).close()


def test_a_directory_that_cannot_be_written_is_refused_in_one_line(open_path: Path) -> None:
    place = open_path / "sealed"
    place.mkdir()
    code = (
        "import os, sys\n"
        "from planforge.errors import PlanforgeError\n"
        "from planforge.kernel.api import Kernel\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"
        "try: Kernel.open(sys.argv[1])\n"
        "except PlanforgeError as error: print(type(error).__name__, error.message)\n"
    )
    place.chmod(0o555)
    said = subprocess.run(
        [sys.executable, "-c", code, place], capture_output=True, text=True, timeout=60, check=False
    )
    assert said.stdout == f"LedgerUnreadable cannot write in `{place}`: Permission denied\n", said.stderr


def test_several_processes_may_open_a_new_kernel_at_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        children = [stack.enter_context(running("open_at_once", tmp_path)) for _ in range(3)]
        assert [child.hear() for child in children] == ["ready"] * 3
        for child in children:
            child.tell()
        said = [child.hear() for child in children]
    assert sorted(said) == ["plan-001", "plan-002", "plan-003"]


def test_no_git_is_needed_and_what_is_made_is_none_of_gits_business(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PATH"} | {"PATH": ""}
    with running("make_a_plan", tmp_path, env=environment) as child:
        assert child.end() == ["True"]
    assert (tmp_path / ".planforge" / ".gitignore").read_text() == "*\n"
    argv = [sys.executable, "-m", "planforge", "log"]
    shown = subprocess.run(
        argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "StepCompleted" in shown.stdout


def test_the_kernel_is_loaded_only_for_whoever_asks_for_it() -> None:
    assert planforge.Kernel is Kernel
    assert not hasattr(planforge, "Colonel")
    code = (
        "import sys, planforge\n"
        "print([name for name in sys.modules if name.startswith('planforge.')])\n"
        "from planforge import Kernel\n"
        "print(Kernel.__name__)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout == "[]\nKernel\n"


# Plans


def test_a_plan_is_made_looked_at_and_rescoped(kernel: Kernel) -> None:
    plan = kernel.plan.create(
        "Count words",
        ["no new dependency"],
        criteria=["tests pass"],
        steps=[planned("a", files=["a.py"]), planned("b", "Second", files=["b.py"], depends_on=["a"])],
    )
    assert plan == kernel.plan.newest() == "plan-001"
    assert kernel.plan.next_steps(plan) == ("plan-001/a",)
    kernel.step.execute("plan-001/a", work, verify)
    assert kernel.plan.next_steps(plan) == ("plan-001/b",)
    node = kernel.plan.rescope(
        plan, "b is too much", [planned("a", files=["a.py"]), planned("c", files=["c.py"])]
    )
    assert node == "plan-001.r2"
    assert kernel.plan.next_steps(plan) == kernel.plan.next_steps(node) == ("plan-001.r2/c",)
    assert kernel.plan.next_steps("plan-001.r1") == ()
    assert [(step.step, step.status) for step in kernel.plan.view(plan).steps] == [
        ("a", "done"),
        ("c", "pending"),
    ]
    assert not kernel.plan.is_done(plan)
    kernel.step.execute("plan-001.r2/c", work, verify)
    assert kernel.plan.is_done(plan)


def test_a_plan_without_steps_is_not_done(kernel: Kernel) -> None:
    assert not kernel.plan.is_done(kernel.plan.create("later"))


def test_the_newest_plan_is_found_by_number_also_past_a_thousand(kernel: Kernel) -> None:
    assert kernel.plan.newest() == ""
    before = ItemOpened(item="plan-999", title="", request="", path="")
    kernel.ledger.append("plan-999", [before], expected=0)
    assert kernel.plan.newest() == "plan-999"
    assert kernel.plan.create("one more") == kernel.plan.newest() == "plan-1000"


@pytest.mark.parametrize("name", ["", "plan", "plan-009", "1", "plan-001/a", "../x", "plan-001.r7"])
def test_a_plan_that_is_not_there_is_not_found(kernel: Kernel, name: str) -> None:
    plan_of(kernel, a=["a.py"])
    head = kernel.ledger.head()
    asked: list[Callable[[], object]] = [
        lambda: kernel.plan.next_steps(name),
        lambda: kernel.plan.view(name),
        lambda: kernel.step.under_way(name, "a"),
    ]
    for ask in asked:
        with pytest.raises(NotFound):
            ask()
    assert kernel.ledger.head() == head


@pytest.mark.parametrize("name", ["", "a", "plan-001", "plan-001/z", "plan-009/a", "plan-001.r3/a", "a/b/c"])
def test_a_step_that_is_not_there_is_not_found_and_nothing_is_leased(kernel: Kernel, name: str) -> None:
    plan_of(kernel, a=["a.py"])
    head = kernel.ledger.head()
    for ask in (kernel.step.start, kernel.step.score, lambda step: kernel.step.execute(step, work, verify)):
        with pytest.raises(NotFound):
            ask(name)
    with pytest.raises(NotFound):
        kernel.step.fail(name, "no")
    assert kernel.ledger.head() == head


def test_a_cycle_is_refused_with_its_path(kernel: Kernel) -> None:
    with pytest.raises(InvalidGraph, match="a → b → a"):
        kernel.plan.create("g", steps=[planned("a", depends_on=["b"]), planned("b", depends_on=["a"])])
    assert kernel.ledger.head() == 0


def test_risks_and_gates_hold_a_step_back_until_they_are_settled(kernel: Kernel) -> None:
    plan = kernel.plan.create(
        "g",
        steps=[planned("a", files=["a.py"], gates=["release"])],
        risks=[PlannedRisk(risk="r1", description="data loss", severity="blocking", blocks=("a",))],
    )
    kernel.plan.raise_risk(plan, PlannedRisk(risk="r2", description="slow", severity="minor", blocks=("a",)))
    settling: list[Callable[[], None]] = [
        lambda: kernel.plan.settle_risk(plan, "r1", reason="backed up", actor="ann"),
        lambda: kernel.plan.settle_risk(plan, "r2", reason="measured", actor="ann"),
        lambda: kernel.step.open_gate("plan-001/a", "release", actor="ann"),
    ]
    for settle in settling:
        with pytest.raises(StepBlocked):
            kernel.step.start("plan-001/a")
        assert kernel.lease.held() == []
        settle()
    assert kernel.step.start("plan-001/a").attempt == 1


def test_nothing_secret_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "b4ByL0nishtower"
    monkeypatch.setenv("SHOP_PASSWORD", secret)
    with Kernel.open(tmp_path) as kernel:
        plan = kernel.plan.create(f"use {secret}", steps=[planned("a", f"with {secret}", files=["a.py"])])
        assignment = kernel.step.start(f"{plan}/a", holder="w")
        proposal = msgspec.structs.replace(change("a.py", diff=f"+{secret}\n".encode()), claim=secret)
        seen = msgspec.structs.replace(evidence(), reason=f"saw {secret}")
        patch = kernel.step.propose(assignment, proposal)
        kernel.step.verify(assignment, seen)
        outcome = kernel.step.accept(assignment, proposal, seen)
        assert outcome.patch == patch
        assert kernel.ledger.objects.get(patch) == b"+[redacted:SHOP_PASSWORD]\n"
        recorded = list(kernel.ledger.since())
    stored = b"".join(msgspec.json.encode(item) for item in recorded)
    assert secret.encode() not in stored
    assert stored.count(b"redacted:SHOP_PASSWORD") >= 4


# Starting


def test_a_start_leases_the_files_of_the_step(kernel: Kernel) -> None:
    plan_of(kernel, a=["src/", "./b.py"])
    assignment = kernel.step.start("plan-001.r1/a", holder="w1", base="c0ffee")
    lease = kernel.graph.file_lease("src/deep/x.py")
    assert lease is not None
    assert (lease.holder, lease.paths, lease.fence) == ("w1", ("b.py", "src"), assignment.fence)
    assert (assignment.step, assignment.plan, assignment.name) == ("plan-001/a", "plan-001", "a")
    assert (assignment.attempt, assignment.holder) == (1, "w1")
    assert kernel.step.under_way("plan-001", "a") == assignment
    assert status(kernel, "plan-001/a") == "in-progress"


def test_a_start_is_refused_while_a_file_is_leased_to_somebody_else(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py", "b.py"])
    lease = kernel.lease.claim("somebody", ["b.py"])
    with pytest.raises(LeaseHeld) as refused:
        kernel.step.start("plan-001/a", holder="w1")
    assert (refused.value.holder, refused.value.path) == ("somebody", "b.py")
    assert status(kernel, "plan-001/a") == "pending"
    assert kernel.lease.held() == [lease]
    kernel.lease.release(lease)
    assert kernel.step.start("plan-001/a", holder="w1").attempt == 1


def test_the_lease_of_a_start_that_is_refused_is_given_back(kernel: Kernel) -> None:
    kernel.plan.create(
        "g", steps=[planned("a", files=["a.py"]), planned("b", files=["b.py"], depends_on=["a"])]
    )
    with pytest.raises(StepBlocked, match=r"dependency `plan-001/a`"):
        kernel.step.start("plan-001/b", holder="w1")
    assert kernel.lease.held() == []
    kernel.lease.claim("w2", ["b.py"])


def test_of_all_who_start_a_step_one_does(kernel: Kernel) -> None:
    plan_of(kernel, a=[], b=["b.py"])
    kernel.step.start("plan-001/a", holder="w1")
    with pytest.raises(RefusedByGate, match="`w1` is at attempt 1"):
        kernel.step.start("plan-001/a", holder="w2")
    kernel.step.execute("plan-001/b", work, verify)
    with pytest.raises(RefusedByGate, match="`plan-001/b` is done"):
        kernel.step.start("plan-001/b")
    assert kernel.lease.held() == []


def test_attempts_without_a_name_get_one_each(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"], b=["a.py"])
    first = kernel.step.start("plan-001/a")
    with pytest.raises(LeaseHeld) as refused:
        kernel.step.start("plan-001/b")
    assert refused.value.holder == first.holder != ""


def test_one_holder_cannot_be_at_two_steps_that_may_change_the_same_file(kernel: Kernel) -> None:
    plan_of(kernel, a=["src/**"], b=["src/b.py"], c=["c.py"])
    first = kernel.step.start("plan-001/a", holder="w1")
    with pytest.raises(RefusedByGate, match=r"`w1` is at `plan-001/a`, which may change `src/b.py` too"):
        kernel.step.start("plan-001/b", holder="w1")
    assert [lease.fence for lease in kernel.lease.held()] == [first.fence]
    kernel.step.start("plan-001/c", holder="w1")
    assert len(kernel.lease.held()) == 2


def test_a_step_of_a_superseded_revision_does_not_keep_its_holder_from_the_new_one(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    left = kernel.step.start("plan-001/a", holder="w1")
    kernel.plan.rescope("plan-001", "smaller", [planned("b", files=["a.py"])])
    again = kernel.step.start("plan-001.r2/b", holder="w1")
    assert [lease.fence for lease in kernel.lease.held()] == [again.fence]
    assert again.fence > left.fence


def test_a_holder_that_starts_its_step_anew_makes_another_attempt_and_the_one_before_is_over(
    kernel: Kernel,
) -> None:
    plan_of(kernel, a=["a.py"])
    before = verified(kernel, "plan-001/a", holder="w1")
    again = kernel.step.start("plan-001/a", holder="w1")
    assert again.attempt == 2
    assert again.fence > before[0].fence
    for command in (
        lambda: kernel.step.propose(*before[:2]),
        lambda: kernel.step.verify(before[0], before[2]),
        lambda: kernel.step.accept(*before),
        lambda: kernel.step.reject(before[0], "late"),
    ):
        with pytest.raises(RefusedByGate, match="attempt 1 at `plan-001/a` is not under way"):
            command()
    assert kernel.step.under_way("plan-001", "a") == again
    assert kernel.step.proposed(again) is None


def test_a_holder_finds_its_attempt_again_after_it_was_killed(tmp_path: Path) -> None:
    with Kernel.open(tmp_path) as kernel:
        plan_of(kernel, a=["a.py"])
        with running("hang_in_the_middle", tmp_path, "plan-001/a") as child:
            assert child.hear() == "proposed"
            child.kill()
        assignment = kernel.step.under_way("plan-001", "a")
        assert assignment.holder == "w1"
        proposal = work(assignment)
        seen = verify(assignment, proposal)
        kernel.step.verify(assignment, seen)
        assert kernel.step.evidence(assignment) == [seen]
        assert kernel.step.accept(assignment, proposal, seen).accepted


# Proposing


def test_a_change_is_recorded_with_its_files_and_its_diff(kernel: Kernel) -> None:
    plan_of(kernel, a=["src/*.py"])
    assignment = kernel.step.start("plan-001/a", holder="w1")
    patch = kernel.step.propose(assignment, change("./src/x.py", "src/y.py", diff=b"+1\n"))
    assert kernel.ledger.objects.get(patch) == b"+1\n"
    recorded = {item.kind: item.event for item in kernel.graph.timeline("plan-001")}
    event = recorded["PatchProposed"]
    assert msgspec.to_builtins(event) == {
        "plan": "plan-001",
        "step": "a",
        "attempt": 1,
        "commit": patch,
        "tree": "7ree",
        "files": ("src/x.py", "src/y.py"),
        "claim": "all tests pass",
        "agent": "w1",
        "sandbox": "",
    }
    assert kinds(kernel)[-3:] == ["ArtifactRecorded", "ArtifactRecorded", "PatchProposed"]


@pytest.mark.parametrize(
    ("files", "path"),
    [
        (["a.py"], "b.py"),
        (["src/*.py"], "src/deep/a.py"),
        (["src"], "srcs/a.py"),
        (["a.py"], "a.pyc"),
        ([], "a.py"),
    ],
)
def test_a_change_beyond_the_files_of_the_step_is_refused(
    kernel: Kernel, files: list[str], path: str
) -> None:
    plan_of(kernel, a=files)
    assignment = kernel.step.start("plan-001/a")
    head = kernel.ledger.head()
    with pytest.raises(Unleased, match="not among the files of `plan-001/a`") as refused:
        kernel.step.propose(assignment, change(path))
    assert path in refused.value.message
    assert kernel.ledger.head() == head


@pytest.mark.parametrize(
    ("files", "path"), [(["src/*.py"], "src/a.py"), (["src"], "src/b/a.py"), (["**"], "a"), (["./a"], "a")]
)
def test_a_change_within_the_files_of_the_step_is_taken(kernel: Kernel, files: list[str], path: str) -> None:
    plan_of(kernel, a=files)
    outcome = kernel.step.execute("plan-001/a", lambda _: change(path, tree="t"), verify)
    assert outcome.accepted


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", "a\0b"])
def test_a_path_that_leads_out_is_refused(kernel: Kernel, path: str) -> None:
    plan_of(kernel, a=["**"])
    assignment = kernel.step.start("plan-001/a")
    with pytest.raises(InvalidInput):
        kernel.step.propose(assignment, change(path))
    assert status(kernel, "plan-001/a") == "in-progress"


def test_a_change_without_a_tree_is_refused(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    assignment = kernel.step.start("plan-001/a")
    for proposal in (change("a.py", tree=""), change("a.py", lines=-1)):
        with pytest.raises(InvalidInput):
            kernel.step.propose(assignment, proposal)


def test_only_the_holder_proposes_and_rejects_but_anybody_verifies(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    assignment, proposal = proposed(kernel, "plan-001/a", holder="w1")
    posing = msgspec.structs.replace(assignment, holder="w2")
    with pytest.raises(RefusedByGate, match="in progress by `w1`, not by `w2`"):
        kernel.step.propose(posing, proposal)
    with pytest.raises(RefusedByGate):
        kernel.step.reject(posing, "no")
    assert kernel.step.verify(posing, verify(assignment, proposal))


# Accepting


def test_what_is_accepted_is_done_scored_and_free(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    assignment, proposal, seen = verified(kernel, "plan-001/a")
    outcome = kernel.step.accept(assignment, proposal, seen, branch="main")
    assert (outcome.accepted, outcome.attempt, outcome.reason) == (True, 1, "4 of 4 tests passed")
    assert outcome.score is not None
    assert outcome.score.value == 700 + 147 + 50
    assert kernel.step.score("plan-001/a") == outcome.score
    assert status(kernel, "plan-001/a") == "done"
    assert kernel.lease.held() == []
    assert kinds(kernel)[-3:] == ["PatchApplied", "StepCompleted", "LeaseReleased"]


def test_a_baseline_shows_what_the_change_broke(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    found = evidence()
    assert found.counts is not None
    five = msgspec.structs.replace(found.counts, total=5, passed=5)
    before = msgspec.structs.replace(found, tree="before", counts=five)
    outcome = kernel.step.execute("plan-001/a", work, verify, baseline=before)
    assert outcome.score is not None
    assert (outcome.score.measures.regression_hits, outcome.score.value) == (1, 0)


@pytest.mark.parametrize(
    ("recorded", "given", "reason"),
    [
        (evidence("a-1"), evidence("another"), "is about tree `another`, the change is `a-1`"),
        (evidence("a-1", Outcome.FAIL), evidence("a-1", Outcome.FAIL), "3 of 4 tests passed"),
        (evidence("a-1", Outcome.CANNOT_TELL), evidence("a-1", Outcome.CANNOT_TELL), "cannot be accepted"),
        (evidence("a-1", Outcome.CANNOT_TELL), evidence("a-1"), "not on record"),
        (evidence("another"), evidence("a-1"), "not on record"),
        (None, evidence("a-1"), "not on record"),
    ],
)
def test_only_recorded_evidence_that_passes_and_is_about_the_very_tree_carries(
    kernel: Kernel, recorded: Evidence | None, given: Evidence, reason: str
) -> None:
    plan_of(kernel, a=["a.py"])
    assignment, proposal = proposed(kernel, "plan-001/a")
    if recorded:
        kernel.step.verify(assignment, recorded)
    head = kernel.ledger.head()
    with pytest.raises(RefusedByGate, match=reason):
        kernel.step.accept(assignment, proposal, given)
    assert kernel.ledger.head() == head
    assert not kernel.step.reject(assignment, "not shown").accepted


def test_evidence_of_an_earlier_attempt_carries_nothing(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    first, _, seen = verified(kernel, "plan-001/a", holder="w1")
    kernel.step.reject(first, "no")
    second = kernel.step.start("plan-001/a", holder="w1")
    proposal = change("a.py", tree=seen.tree)
    kernel.step.propose(second, proposal)
    with pytest.raises(RefusedByGate, match="not on record"):
        kernel.step.accept(second, proposal, seen)


def test_a_later_check_that_fails_outweighs_one_that_passed(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    assignment, proposal, seen = verified(kernel, "plan-001/a")
    kernel.step.verify(assignment, refute(assignment, proposal))
    with pytest.raises(RefusedByGate, match="a later check of `plan-001/a` says: 3 of 4 tests passed"):
        kernel.step.accept(assignment, proposal, seen)


def test_only_the_change_that_was_proposed_last_can_be_accepted(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    assignment, proposal, seen = verified(kernel, "plan-001/a")
    kernel.step.propose(assignment, change("a.py", tree="newer"))
    with pytest.raises(RefusedByGate, match="is not what was proposed last"):
        kernel.step.accept(assignment, proposal, seen)
    plan_of(kernel, b=["b.py"])
    never = kernel.step.start("plan-002/b")
    kernel.step.verify(never, evidence("t"))
    with pytest.raises(RefusedByGate, match="is not what was proposed last"):
        kernel.step.accept(never, change("b.py", tree="t"), evidence("t"))


def expire(kernel: Kernel, clock: StandingClock, assignment: Assignment) -> None:
    clock.pass_by(HOUR)


def steal(kernel: Kernel, clock: StandingClock, assignment: Assignment) -> None:
    clock.pass_by(HOUR)
    kernel.lease.claim("thief", ["a.py"])


def force(kernel: Kernel, clock: StandingClock, assignment: Assignment) -> None:
    leases.force(kernel.ledger, assignment.fence, "ann", "it hangs")


def give_away(kernel: Kernel, clock: StandingClock, assignment: Assignment) -> None:
    leases.transfer(kernel.ledger, assignment.fence, "w9", MINUTE)


@pytest.mark.parametrize(
    ("lose", "reason"),
    [
        (expire, "ran out at"),
        (steal, "ran out at"),
        (force, "was taken away by `ann`"),
        (give_away, "passed to `w9`"),
    ],
)
def test_without_its_lease_a_change_is_refused_and_the_attempt_can_still_be_rejected(
    kernel: Kernel,
    clock: StandingClock,
    lose: Callable[[Kernel, StandingClock, Assignment], None],
    reason: str,
) -> None:
    plan_of(kernel, a=["a.py"])
    attempt = verified(kernel, "plan-001/a", holder="w1")
    lose(kernel, clock, attempt[0])
    head, held = kernel.ledger.head(), kernel.lease.held()
    with pytest.raises(StaleFence, match=reason):
        kernel.step.accept(*attempt)
    assert kernel.ledger.head() == head
    assert status(kernel, "plan-001/a") == "in-progress"
    kernel.step.reject(attempt[0], "the lease was lost")
    assert status(kernel, "plan-001/a") == "pending"
    assert kernel.lease.held() == held


def test_whoever_has_no_fence_cannot_accept(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    assignment, proposal, seen = verified(kernel, "plan-001/a")
    with pytest.raises(StaleFence):
        kernel.step.accept(msgspec.structs.replace(assignment, fence=0), proposal, seen)


def test_a_lease_that_does_not_cover_the_change_carries_nothing(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py", "b.py"])
    attempt = verified(kernel, "plan-001/a", holder="w1")
    leases.release(kernel.ledger, "w1", attempt[0].fence)
    half = kernel.lease.claim("w1", ["a.py"])
    with pytest.raises(Unleased, match=r"does not cover `b.py`"):
        kernel.step.accept(msgspec.structs.replace(attempt[0], fence=half.fence), *attempt[1:])
    assert status(kernel, "plan-001/a") == "in-progress"


def test_the_lease_is_looked_at_in_the_transaction_that_records(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    attempt = verified(kernel, "plan-001/a", holder="w1")
    with ThreadPoolExecutor(2) as pool:  # whoever comes second finds what the first one did
        accepting = pool.submit(kernel.step.accept, *attempt)
        forcing = pool.submit(leases.force, kernel.ledger, attempt[0].fence, "ann", "now")
        failures = [type(error) for error in (accepting.exception(), forcing.exception()) if error]
    assert failures in ([StaleFence], [NotFound])
    done = status(kernel, "plan-001/a") == "done"
    assert done == (failures == [NotFound])
    assert kinds(kernel).count("LeaseReleased") == 1


def test_a_renewed_lease_carries_longer(kernel: Kernel, clock: StandingClock) -> None:
    plan_of(kernel, a=["a.py"])
    attempt = verified(kernel, "plan-001/a")
    clock.pass_by(9 * MINUTE)
    kernel.step.renew(attempt[0])
    clock.pass_by(9 * MINUTE)
    assert kernel.step.accept(*attempt).accepted


def test_a_step_that_changes_nothing_needs_no_lease(kernel: Kernel) -> None:
    plan_of(kernel, audit=[])
    outcome = kernel.step.execute("plan-001/audit", work, verify)
    assert outcome.accepted
    assert "LeaseGranted" not in kinds(kernel)


# Executing


def test_a_change_that_fails_its_check_is_rejected_and_anybody_makes_the_next_attempt(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    first = kernel.step.execute("plan-001/a", work, refute, holder="w1")
    assert (first.accepted, first.reason, first.score) == (False, "3 of 4 tests passed", None)
    assert kernel.lease.held() == []
    second = kernel.step.execute("plan-001/a", work, verify, holder="w2")
    assert (second.accepted, second.attempt) == (True, 2)
    assert second.score is not None
    assert second.score.measures.rollback_count == 1


@pytest.mark.parametrize("error", [ValueError("the worker\nbroke"), KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("where", ["work", "verify"])
def test_whatever_a_worker_raises_reaches_the_caller_and_leaves_the_step_free(
    kernel: Kernel, error: BaseException, where: str
) -> None:
    plan_of(kernel, a=["a.py"])

    def break_off(*_: object) -> Proposal:
        raise error

    functions = {"work": work, "verify": verify} | {where: break_off}
    with pytest.raises(type(error)) as raised:
        kernel.step.execute("plan-001/a", functions["work"], functions["verify"])  # type: ignore[arg-type]
    assert raised.value is error
    assert kernel.lease.held() == []
    reasons = [getattr(item.event, "reason", "") for item in kernel.graph.timeline("plan-001")]
    assert reasons[-1] == " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    assert kernel.step.execute("plan-001/a", work, verify).attempt == 2


def test_a_change_that_may_not_be_proposed_is_refused_to_the_caller_and_the_step_is_free(
    kernel: Kernel,
) -> None:
    plan_of(kernel, a=["a.py"])
    with pytest.raises(Unleased):
        kernel.step.execute("plan-001/a", lambda _: change("b.py"), verify)
    with pytest.raises(RefusedByGate, match="is about tree"):
        kernel.step.execute("plan-001/a", work, lambda *_: evidence("another"))
    assert (status(kernel, "plan-001/a"), kernel.lease.held()) == ("pending", [])


def test_a_worker_whose_plan_is_rescoped_is_superseded_and_gives_its_files_back(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])

    def rescoping(assignment: Assignment) -> Proposal:
        kernel.plan.rescope("plan-001", "smaller", [planned("b", files=["a.py"])])
        return work(assignment)

    with pytest.raises(Superseded, match="`plan-001/a` belongs to a revision that was superseded"):
        kernel.step.execute("plan-001/a", rescoping, verify)
    assert kernel.lease.held() == []
    assert kernel.step.execute("plan-001.r2/b", work, verify).accepted


def test_an_attempt_of_a_superseded_plan_is_refused_everything_but_giving_its_files_back(
    kernel: Kernel,
) -> None:
    plan_of(kernel, a=["a.py"])
    attempt = verified(kernel, "plan-001/a")
    kernel.plan.rescope("plan-001", "smaller", [planned("b", files=["a.py"])])
    for command in (
        lambda: kernel.step.start("plan-001/a"),
        lambda: kernel.step.propose(*attempt[:2]),
        lambda: kernel.step.verify(attempt[0], attempt[2]),
        lambda: kernel.step.accept(*attempt),
        lambda: kernel.step.reject(attempt[0], "no"),
    ):
        with pytest.raises(Superseded):
            command()
    with pytest.raises(LeaseHeld):
        kernel.step.start("plan-001.r2/b")
    kernel.step.release(attempt[0], "rescoped")
    kernel.step.release(attempt[0], "rescoped")
    assert kernel.step.start("plan-001.r2/b").attempt == 1


def test_a_lost_attempt_does_not_end_the_one_that_took_its_place(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])

    def overtaken(assignment: Assignment) -> Proposal:
        taking.append(kernel.step.start("plan-001/a", holder="w1"))
        return work(assignment)

    taking: list[Assignment] = []
    with pytest.raises(RefusedByGate, match="attempt 1 at `plan-001/a` is not under way"):
        kernel.step.execute("plan-001/a", overtaken, verify, holder="w1")
    assert kernel.step.under_way("plan-001", "a") == taking[0]
    assert [lease.fence for lease in kernel.lease.held()] == [taking[0].fence]


def test_a_lease_is_renewed_for_as_long_as_the_work_takes(tmp_path: Path) -> None:
    with Kernel.open(tmp_path) as kernel:
        plan_of(kernel, a=["a.py"])

        def slow(assignment: Assignment) -> Proposal:
            with kernel.subscribe(kinds=["LeaseRenewed"]) as news:
                assert news.next(30) is not None
            return work(assignment)

        outcome = kernel.step.execute("plan-001/a", slow, verify, ttl=timedelta(seconds=5))
        assert outcome.accepted
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("lease of")]


def test_a_step_that_is_given_up_can_be_tried_again(kernel: Kernel) -> None:
    kernel.plan.create("g", steps=[planned("a"), planned("b", depends_on=["a"])])
    kernel.step.fail("plan-001/a", "nobody knows how")
    assert kernel.plan.next_steps("plan-001") == ()
    assert kernel.step.execute("plan-001/a", work, verify).accepted


def test_eight_threads_carry_out_eight_steps_at_once(kernel: Kernel) -> None:
    names = [f"s{number}" for number in range(8)]
    plan = plan_of(kernel, **{name: [f"{name}.py"] for name in names})
    together = threading.Barrier(8, timeout=60)

    def meet(assignment: Assignment) -> Proposal:
        together.wait()  # nobody gets on unless all eight are at it
        return work(assignment)

    with ThreadPoolExecutor(8) as pool:
        steps = kernel.plan.next_steps(plan)
        outcomes = list(pool.map(lambda step: kernel.step.execute(step, meet, verify), steps))
    assert all(outcome.accepted for outcome in outcomes)
    assert kernel.plan.is_done(plan)
    assert Counter(kinds(kernel))["StepCompleted"] == 8
    assert kernel.lease.held() == []


@pytest.mark.parametrize("holders", [("w1", "w2", "w3"), ("", "", "")])
def test_of_several_processes_that_execute_a_step_one_does(tmp_path: Path, holders: tuple[str, ...]) -> None:
    with Kernel.open(tmp_path) as kernel:
        plan_of(kernel, a=["a.py"])
        with ExitStack() as stack:
            children = [
                stack.enter_context(running("execute_at_once", tmp_path, "plan-001/a", holder))
                for holder in holders
            ]
            assert [child.hear() for child in children] == ["ready"] * 3
            for child in children:
                child.tell()
            said = Counter(child.hear() for child in children)
        assert said.pop("accepted attempt 1") == 1
        assert set(said) <= {"LeaseHeld", "RefusedByGate"}
        assert Counter(kinds(kernel))["StepStarted"] == 1
        assert kernel.lease.held() == []


# Budgets


def test_an_attempt_is_paid_from_the_budgets_of_its_step_its_plan_and_its_role(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    scopes = ("plan:plan-001", "step:plan-001/a", "role:worker")
    for scope in scopes:
        kernel.budget.allow(scope, Amounts(tokens=1000, attempts=2), actor="ann")

    def costly(assignment: Assignment) -> Proposal:
        assert kernel.budget.account("plan:plan-001").reserved.tokens == 600
        return msgspec.structs.replace(work(assignment), spent=Amounts(tokens=150))

    ask = Amounts(tokens=600, attempts=1)
    kernel.step.execute("plan-001/a", costly, verify, budget=ask, role="worker")
    for scope in scopes:
        account = kernel.budget.account(scope)
        assert (account.spent.tokens, account.spent.attempts, account.reserved.tokens) == (150, 1, 0)


def test_what_a_worker_does_not_say_counts_as_what_was_put_aside(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    kernel.step.execute("plan-001/a", work, refute, budget=Amounts(tokens=600))
    with pytest.raises(ZeroDivisionError):
        kernel.step.execute("plan-001/a", lambda _: 1 // 0, verify, budget=Amounts(tokens=50))  # type: ignore[arg-type,return-value]
    account = kernel.budget.account("plan:plan-001")
    assert (account.spent.tokens, account.spent.attempts) == (650, 2)


def test_without_enough_left_nothing_starts(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    kernel.budget.allow("step:plan-001/a", Amounts(tokens=500), actor="ann")
    head = kernel.ledger.head()
    with pytest.raises(BudgetGone, match="`step:plan-001/a`"):
        kernel.step.execute("plan-001/a", work, verify, budget=Amounts(tokens=501))
    assert kernel.ledger.head() == head


def test_an_attempt_that_does_not_start_costs_nothing(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    kernel.lease.claim("somebody", ["a.py"])
    with pytest.raises(LeaseHeld):
        kernel.step.execute("plan-001/a", work, verify, budget=Amounts(tokens=600))
    account = kernel.budget.account("plan:plan-001")
    assert (account.spent.tokens, account.reserved.tokens, account.unknown) == (0, 0, 0)


def test_a_reservation_can_be_made_and_settled_by_hand(kernel: Kernel) -> None:
    kernel.budget.reserve("mine", ["role:auditor"], Amounts(tokens=10))
    kernel.budget.spend("mine", Amounts(tokens=4))
    kernel.budget.reconcile("mine", Amounts(tokens=5))
    assert kernel.budget.account("role:auditor").spent.tokens == 5


# In an event loop


def test_steps_are_executed_in_an_event_loop_without_holding_it_up(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"], b=["b.py"])

    async def both() -> list[StepOutcome]:
        together = asyncio.Barrier(2)
        meeting = threading.Barrier(2, timeout=60)

        async def in_the_loop(assignment: Assignment) -> Proposal:
            await together.wait()
            return work(assignment)

        def in_a_thread(assignment: Assignment, proposal: Proposal) -> Evidence:
            meeting.wait()
            return verify(assignment, proposal)

        return await asyncio.gather(
            *(
                kernel.step.execute_in_thread(step, in_the_loop, in_a_thread)
                for step in kernel.plan.next_steps("plan-001")
            )
        )

    assert [outcome.accepted for outcome in asyncio.run(asyncio.wait_for(both(), 60))] == [True, True]


def test_what_is_raised_in_the_loop_reaches_whoever_awaits(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])

    async def broken(assignment: Assignment) -> Proposal:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(kernel.step.execute_in_thread("plan-001/a", broken, verify, holder="w1"))
    assert (status(kernel, "plan-001/a"), kernel.lease.held()) == ("pending", [])


@pytest.mark.parametrize("sort", ["async", "plain"])
def test_an_execution_that_is_cancelled_is_rejected_before_the_caller_goes_on(
    kernel: Kernel, sort: str
) -> None:
    plan_of(kernel, a=["a.py"])

    async def cancelled() -> None:
        at_it, loop, gone_on = asyncio.Event(), asyncio.get_running_loop(), threading.Event()

        async def for_ever(assignment: Assignment) -> Proposal:
            at_it.set()
            await asyncio.Event().wait()
            raise AssertionError("never")

        def until_told(assignment: Assignment) -> Proposal:
            loop.call_soon_threadsafe(at_it.set)
            assert gone_on.wait(60)
            return work(assignment)

        doing = for_ever if sort == "async" else until_told
        task = asyncio.ensure_future(kernel.step.execute_in_thread("plan-001/a", doing, verify))
        await asyncio.wait_for(at_it.wait(), 60)
        task.cancel()
        loop.call_later(0.1, gone_on.set)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 60)
        assert (status(kernel, "plan-001/a"), kernel.lease.held()) == ("pending", [])

    asyncio.run(cancelled())
    assert Counter(kinds(kernel))["AttemptRejected"] == 1


def test_events_are_followed_in_an_event_loop(kernel: Kernel) -> None:
    plan = plan_of(kernel, a=["a.py"], b=["b.py"])

    async def follow() -> list[str]:
        heard = []
        with kernel.subscribe(plan=plan, kinds=["StepCompleted"], after=kernel.ledger.head()) as news:
            steps = [
                kernel.step.execute_in_thread(step, work, verify) for step in kernel.plan.next_steps(plan)
            ]
            working = asyncio.gather(*steps)
            async for recorded in news:
                heard.append(recorded.kind)
                if len(heard) == 2:
                    break
        await working
        return heard

    assert asyncio.run(asyncio.wait_for(follow(), 60)) == ["StepCompleted", "StepCompleted"]


# Coordinating by events


def test_a_check_and_the_cursor_of_whoever_made_it_are_one_transaction(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])

    def audit() -> list[Recorded]:
        with kernel.subscribe(kinds=["PatchProposed"], name="auditor") as news:
            found = news.poll()
            for recorded in found:
                seen = {news.name: news.passed(recorded)}
                assignment = kernel.step.under_way("plan-001", "a")
                kernel.step.verify(assignment, evidence("a-1"), acknowledge=seen)
            return found

    proposed(kernel, "plan-001/a")
    assert len(audit()) == 1
    assert audit() == []
    checks = [item for item in kernel.ledger.since() if isinstance(item.event, VerifyOk)]
    assert len(checks) == 1


def test_leases_alone_can_be_used_without_any_plan(kernel: Kernel, clock: StandingClock) -> None:
    lease = kernel.lease.claim("script", ["src/**"])
    assert kernel.graph.file_lease("src/a.py") == kernel.lease.require(lease, ["src/a.py"]) == lease
    assert kernel.lease.renew(lease, HOUR).until > lease.until
    with pytest.raises(LeaseHeld):
        kernel.lease.wait("other", ["src/a.py"], patience=timedelta(seconds=0.01))
    assert kernel.lease.waiting() == []
    kernel.lease.release(lease)
    assert kernel.graph.file_lease("src/a.py") is None
    with pytest.raises(StaleFence):
        kernel.lease.require(lease)


def test_the_graph_answers_queries(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    found = kernel.graph.query(NextSteps(plan="plan-001"))
    assert isinstance(found, StepList)
    assert [step.node for step in found.steps] == ["plan-001/a"]


def test_every_refusal_is_one_line(kernel: Kernel) -> None:
    plan_of(kernel, a=["a.py"])
    began = time.monotonic()
    attempt = verified(kernel, "plan-001/a", holder="w1")
    kernel.step.accept(*attempt)
    for command in (
        lambda: kernel.step.start("plan-001/a"),
        lambda: kernel.step.accept(*attempt),
        lambda: kernel.step.under_way("plan-001", "a"),
    ):
        with pytest.raises(PlanforgeError) as refused:
            command()
        assert "\n" not in refused.value.message
    assert time.monotonic() - began < 60
