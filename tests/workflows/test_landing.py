"""The landing queue, driven by hand: no git, no ledger, no tests to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from driven import Driven, driven
from planforge.errors import CannotPerform, GitFailed
from planforge.kernel import effects
from planforge.kernel.effects import (
    AdvanceBranch,
    CommitFacts,
    Effect,
    HeldPlan,
    Landing,
    Merge,
    Merged,
    Probed,
    Queue,
    QueuedPlan,
    QueuedStep,
    ReadCommits,
    RunCheck,
    Target,
)
from planforge.kernel.events import (
    CheckoutUpdated,
    ConflictedPath,
    ConflictsForeseen,
    ForeseenConflict,
    ItemMoved,
    LandingBroken,
    LandingCaughtUp,
    LandingConflicted,
    LandingRestarted,
    PlanHeldBack,
    PlanLanded,
    StepReopened,
)
from planforge.kernel.evidence import Outcome
from planforge.workflows.flows import FLOWS
from planforge.workflows.landing import (
    LandRequest,
    LandResult,
    UpdateRequest,
    Why,
    land,
    update_checkout,
)
from worlds import evidence

LANDED = "planforge/landed/main"


def plan(number: int, *after: int, files: tuple[str, ...] = ("a.py",)) -> QueuedPlan:
    name = f"plan-{number:03d}"
    return QueuedPlan(
        plan=name,
        title=f"Change {number}",
        branch=f"planforge/{name}",
        commit=f"tip-{number}",
        after=tuple(f"plan-{other:03d}" for other in after),
        steps=(QueuedStep(step="phase-1", files=files), QueuedStep(step="phase-2", files=("b.py",))),
    )


class Branches:
    """Answers what a landing asks for, from a few lists. A commit is a name; a merge is `ours+theirs`."""

    def __init__(self, *plans: QueuedPlan) -> None:
        self.plans = list(plans)
        self.held: tuple[HeldPlan, ...] = ()
        self.tip, self.branch_at = "base", "base"
        self.missing: list[bool] = []
        """Whether the person has committed, in turn; then no."""
        self.foreign: list[str] = []
        self.moves = 0
        """How often the branch has moved when something is to land."""
        self.conflicts: set[str] = set()
        self.refuses: set[str] = set()
        self.judge: Callable[[str], Outcome] = lambda commit: Outcome.PASS
        self.commits: tuple[str, ...] = ("one", "two", "three")
        self.facts = CommitFacts(parents=("base",), subject="A change", author="Ada", plan="", step="")
        self.foreseen: tuple[ForeseenConflict, ...] = ()
        self.on_it: list[str] = []

    def __call__(self, effect: Effect[Any]) -> object:
        answer: object = getattr(self, f"on_{type(effect).__name__}")(effect)
        return answer

    def on_OpenTarget(self, effect: effects.OpenTarget) -> object:  # noqa: N802
        return Target(
            branch=effect.branch,
            landing=LANDED,
            tip=self.tip,
            tree=f"tree of {self.tip}",
            branch_at=self.branch_at,
            missing=self.missing.pop(0) if self.missing else False,
            foreign=self.foreign.pop(0) if self.foreign else "",
            checkout="/srv/project",
        )

    def on_ReadQueue(self, effect: effects.ReadQueue) -> object:  # noqa: N802
        def left(item: QueuedPlan) -> QueuedPlan:
            after = tuple(name for name in item.after if name not in self.on_it)
            return msgspec.structs.replace(item, after=after)

        ready = tuple(left(item) for item in self.plans if item.plan not in self.on_it)
        return Queue(ready=ready, held=self.held, landed=tuple(self.on_it))

    def on_Merge(self, effect: Merge) -> object:  # noqa: N802
        name = f"{effect.ours}+{effect.theirs}"
        if name in self.refuses:
            return GitFailed("refusing to merge unrelated histories")
        clean = name not in self.conflicts
        paths = () if clean else (ConflictedPath(path="a.py", base="1", ours="2", theirs="3"),)
        return Merged(
            commit=name, tree=f"tree of {name}", clean=clean, conflicts=paths, archive=f"refs/{effect.label}"
        )

    def on_RunCheck(self, effect: RunCheck) -> object:  # noqa: N802
        return evidence(self.judge(effect.commit), tree=effect.tree)

    def on_AdvanceBranch(self, effect: AdvanceBranch) -> object:  # noqa: N802
        if self.moves:
            self.moves -= 1
            self.tip = f"moved-{self.moves}"
            return Landing(landed=False, tip=self.tip)
        self.tip = effect.commit
        self.on_it += [item.plan for item in self.plans if effect.commit.endswith(item.commit)]
        return Landing(landed=True, tip=effect.commit)

    def on_RestartLanding(self, effect: effects.RestartLanding) -> object:  # noqa: N802
        self.tip, self.on_it = effect.to, []
        return effects.Restarted(tip=effect.to, archive="refs/landed")

    def on_ReadCommits(self, effect: ReadCommits) -> object:  # noqa: N802
        return effects.Commits(commits=self.commits)

    def on_ReadCommit(self, effect: effects.ReadCommit) -> object:  # noqa: N802
        return self.facts

    def on_Probe(self, effect: effects.Probe) -> object:  # noqa: N802
        return Probed(onto=effect.onto, items=(), conflicts=self.foreseen, merges=0)

    def on_MarkPlan(self, effect: effects.MarkPlan) -> None:  # noqa: N802
        """Nothing to answer."""

    def on_UpdateCheckout(self, effect: effects.UpdateCheckout) -> object:  # noqa: N802
        return effects.CheckoutChange(place="/srv/project", was="base", now=effect.commit, files=3)


def landing(branches: Branches, **options: Any) -> Driven[LandResult]:
    return driven(land(LandRequest(run="run-009", branch="main", **options)), branches)


def notes(flow: Driven[Any], kind: type[Any]) -> list[Any]:
    return [note for note in flow.notes if isinstance(note, kind)]


def asked(flow: Driven[Any], kind: type[Any]) -> list[Any]:
    return [effect for effect in flow.effects if isinstance(effect, kind)]


def test_each_plan_is_merged_checked_and_landed_on_what_landed_before() -> None:
    flow = landing(Branches(plan(1), plan(2)))
    assert flow.result.landed == ("plan-001", "plan-002")
    assert (flow.result.done, flow.result.refused) == (True, False)
    assert flow.result.reason == f"2 plans landed on `{LANDED}`"
    assert [(item.ours, item.theirs) for item in asked(flow, Merge)] == [
        ("base", "tip-1"),
        ("base+tip-1", "tip-2"),
    ]
    assert [item.commit for item in asked(flow, RunCheck)] == ["base+tip-1", "base+tip-1+tip-2"]
    assert [(item.expected, item.commit) for item in asked(flow, AdvanceBranch)] == [
        ("base", "base+tip-1"),
        ("base+tip-1", "base+tip-1+tip-2"),
    ]
    assert [(note.plan, note.parent, note.merged) for note in notes(flow, PlanLanded)] == [
        ("plan-001", "base", "tip-1"),
        ("plan-002", "base+tip-1", "tip-2"),
    ]


def task(status: str = "committed") -> QueuedPlan:
    made = msgspec.structs.replace(plan(1), plan="task-001", branch="planforge/task-001")
    return msgspec.structs.replace(made, status=status)


def moves(flow: Driven[LandResult]) -> list[tuple[str, str]]:
    return [(note.by, note.status) for note in notes(flow, ItemMoved)]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("committed", [("land", "landed")]),
        ("landed", [("land again", "committed"), ("land", "landed")]),
    ],
)
def test_a_task_is_merged_and_checked_as_a_plan_is(status: str, expected: list[tuple[str, str]]) -> None:
    flow = landing(Branches(task(status)))
    assert flow.result.reason == f"1 task landed on `{LANDED}`"
    assert [item.commit for item in asked(flow, RunCheck)] == ["base+tip-1"]
    assert moves(flow) == expected


@pytest.mark.parametrize("how", ["conflict", "break"])
def test_a_task_that_does_not_go_together_with_the_branch_goes_back_to_its_code(how: str) -> None:
    branches = Branches(task())
    if how == "conflict":
        branches.conflicts = {"base+tip-1"}
    else:
        branches.judge = lambda commit: Outcome.FAIL if "+" in commit else Outcome.PASS
    flow = landing(branches)
    assert not flow.result.done
    assert moves(flow) == [("refused at landing", "code-revision-required")]
    assert (notes(flow, StepReopened), asked(flow, effects.MarkPlan)) == ([], [])


def test_a_merge_says_which_run_and_plan_it_is_of() -> None:
    (merge,) = asked(landing(Branches(plan(7))), Merge)
    assert merge.message == "Land plan-007: Change 7\n\nPlanforge-Run: run-009\nPlanforge-Plan: plan-007\n"


def test_where_nothing_may_land_nothing_is_asked_of_anybody() -> None:
    flow = landing(Branches())
    assert flow.result.reason == f"nothing to land on `{LANDED}`"
    assert [type(effect).__name__ for effect in flow.effects] == ["OpenTarget", "ReadQueue"]


def test_a_plan_that_may_not_land_is_named_with_the_reason() -> None:
    branches = Branches(plan(2))
    branches.held = (HeldPlan(plan="plan-001", reason="its branch is gone"),)
    flow = landing(branches)
    assert flow.result.landed == ("plan-002",)
    assert (flow.result.done, flow.result.refused) == (False, True)
    assert notes(flow, PlanHeldBack) == [
        PlanHeldBack(plan="plan-001", branch="main", reason="its branch is gone")
    ]


def test_a_branch_that_moved_is_merged_and_checked_anew() -> None:
    branches = Branches(plan(1))
    branches.moves = 2
    flow = landing(branches)
    assert flow.result.landed == ("plan-001",)
    assert [item.ours for item in asked(flow, Merge)] == ["base", "moved-1", "moved-0"]
    assert [item.commit for item in asked(flow, RunCheck)] == [
        "base+tip-1",
        "moved-1+tip-1",
        "moved-0+tip-1",
    ]


def test_a_branch_that_never_rests_is_given_up() -> None:
    branches = Branches(plan(1))
    branches.moves = 99
    flow = landing(branches, tries=3)
    assert len(asked(flow, AdvanceBranch)) == 3
    (left,) = flow.result.left
    assert (left.why, left.reason) == (Why.HELD, "`main` moved 3 times while it was to land")


def test_a_conflict_opens_the_steps_that_it_touches_and_the_queue_goes_on() -> None:
    branches = Branches(plan(1), plan(2), plan(3, 1))
    branches.conflicts = {"base+tip-1"}
    flow = landing(branches)
    assert flow.result.landed == ("plan-002",)
    assert [(item.plan, item.why) for item in flow.result.left] == [
        ("plan-001", Why.CONFLICT),
        ("plan-003", Why.HELD),
    ]
    assert flow.result.left[1].reason == "it is built on `plan-001`, which has not landed"
    (conflict,) = notes(flow, LandingConflicted)
    assert (conflict.onto, conflict.merged, conflict.archive) == ("base", "tip-1", "refs/plan-001.land")
    assert conflict.conflicts == (ConflictedPath(path="a.py", base="1", ours="2", theirs="3"),)
    assert [(note.plan, note.step) for note in notes(flow, StepReopened)] == [("plan-001", "phase-1")]
    (mark,) = asked(flow, effects.MarkPlan)
    assert (mark.plan, mark.status) == ("plan-001", "REVIEW")
    assert not flow.result.refused


def test_a_conflict_in_files_that_no_step_names_opens_all_of_them() -> None:
    branches = Branches(plan(1, files=("other.py",)))
    branches.conflicts = {"base+tip-1"}
    assert [note.step for note in notes(landing(branches), StepReopened)] == ["phase-1", "phase-2"]


def test_a_plan_that_did_not_land_is_told_once() -> None:
    branches = Branches(plan(1))
    branches.conflicts = {"base+tip-1"}
    branches.held = (HeldPlan(plan="plan-001", reason="somebody removed its branch meanwhile"),)
    (left,) = landing(branches).result.left
    assert left.why is Why.CONFLICT


def test_what_cannot_be_merged_at_all_is_held_back() -> None:
    branches = Branches(plan(1))
    branches.refuses = {"base+tip-1"}
    (left,) = landing(branches).result.left
    assert (left.why, left.reason) == (Why.HELD, "refusing to merge unrelated histories")


def test_what_cannot_be_told_does_not_land_and_is_not_blamed() -> None:
    branches = Branches(plan(1))
    branches.judge = lambda commit: Outcome.CANNOT_TELL
    flow = landing(branches)
    (left,) = flow.result.left
    assert (left.why, left.reason) == (Why.HELD, "the tests could not tell (as told: cannot_tell)")
    assert asked(flow, AdvanceBranch) == []
    assert notes(flow, StepReopened) == []


# The person commits


def test_what_the_person_committed_is_merged_with_what_has_landed_and_checked() -> None:
    branches = Branches(plan(1))
    branches.tip, branches.branch_at, branches.missing = "landed", "theirs", [True]
    flow = landing(branches)
    assert [item.commit for item in asked(flow, RunCheck)] == ["landed+theirs", "landed+theirs+tip-1"]
    assert notes(flow, LandingCaughtUp) == [
        LandingCaughtUp(branch="main", landing=LANDED, commit="landed+theirs", merged="theirs")
    ]
    assert flow.result.landed == ("plan-001",)


@pytest.mark.parametrize("how", ["conflict", "fail", "cannot_tell", "foreign"])
def test_what_does_not_go_with_it_is_archived_and_queued_again(how: str) -> None:
    branches = Branches(plan(1))
    branches.tip, branches.branch_at, branches.on_it = "landed", "theirs", ["plan-001"]
    branches.missing = [True]
    if how == "conflict":
        branches.conflicts = {"landed+theirs"}
    elif how == "foreign":
        branches.foreign = ["strange"]
    else:
        branches.judge = lambda commit: Outcome(how) if commit == "landed+theirs" else Outcome.PASS
    flow = landing(branches)
    (restarted,) = notes(flow, LandingRestarted)
    assert (restarted.was, restarted.now, restarted.archive) == ("landed", "theirs", "refs/landed")
    assert flow.result.landed == ("plan-001",)
    (landed,) = notes(flow, PlanLanded)
    assert landed.commit == "theirs+tip-1"


def test_a_branch_that_cannot_be_caught_up_with_ends_the_landing() -> None:
    branches = Branches(plan(1))
    branches.missing = [True] * 99
    branches.moves = 99
    with pytest.raises(CannotPerform, match="`main` moved 2 times before anything could land"):
        landing(branches, tries=2)


# Both sides pass, and together they do not


def breaks(*bad: str) -> Callable[[str], Outcome]:
    """Together with these commits, and all after them, the plan fails; by itself nothing does."""

    def judge(commit: str) -> Outcome:
        return Outcome.FAIL if "+" in commit and commit.partition("+")[0] in bad else Outcome.PASS

    return judge


def test_the_commit_that_a_break_comes_from_is_named() -> None:
    branches = Branches(plan(1))
    branches.judge = breaks("base", "two", "three")
    branches.facts = CommitFacts(
        parents=("one", "tip-9"), subject="Land plan-009", author="Ada", plan="plan-009", step=""
    )
    flow = landing(branches)
    (broken,) = notes(flow, LandingBroken)
    assert (broken.culprit, broken.culprit_plan, broken.suspects) == ("two", "plan-009", ())
    assert broken.failing == ("test_one",)
    assert broken.checks == 3  # the branch by itself, and two of three
    (left,) = flow.result.left
    assert left.why is Why.BROKEN
    assert "it comes from `two` (Land plan-009) of `plan-009`" in left.reason
    assert [note.step for note in notes(flow, StepReopened)] == ["phase-1", "phase-2"]
    assert asked(flow, AdvanceBranch) == []


@pytest.mark.parametrize("culprit", range(40))
def test_a_culprit_among_many_takes_few_checks(culprit: int) -> None:
    branches = Branches(plan(1))
    branches.commits = tuple(f"commit-{number}" for number in range(40))
    branches.judge = breaks("base", *branches.commits[culprit:])
    (broken,) = notes(landing(branches), LandingBroken)
    assert broken.culprit == f"commit-{culprit}"
    assert broken.checks <= 1 + 6


@pytest.mark.parametrize("silent", ["conflict", "cannot_tell", "refused"])
def test_what_cannot_be_told_on_the_way_leaves_suspects_and_blames_nobody(silent: str) -> None:
    branches = Branches(plan(1))
    judge = breaks("base", "two", "three")
    branches.judge = judge
    if silent == "conflict":
        branches.conflicts = {"one+tip-1", "two+tip-1"}
    elif silent == "refused":
        branches.refuses = {"one+tip-1", "two+tip-1"}
    else:
        branches.judge = lambda commit: (
            Outcome.CANNOT_TELL if commit in ("one+tip-1", "two+tip-1") else judge(commit)
        )
    (broken,) = notes(landing(branches), LandingBroken)
    assert (broken.culprit, broken.suspects) == ("", ("one", "two", "three"))
    assert "which one cannot be told" in broken.reason


def test_a_branch_that_fails_by_itself_is_not_the_plans_fault() -> None:
    branches = Branches(plan(1))
    branches.judge = lambda commit: Outcome.FAIL
    flow = landing(branches)
    (left,) = flow.result.left
    assert left.why is Why.HELD
    assert "on `main` itself the tests failed" in left.reason
    assert notes(flow, LandingBroken) == notes(flow, StepReopened) == []


def test_a_failure_although_nothing_has_landed_since_blames_nobody() -> None:
    branches = Branches(plan(1))
    branches.commits = ()
    branches.judge = lambda commit: Outcome.FAIL
    (left,) = landing(branches).result.left
    assert left.why is Why.HELD
    assert left.reason.endswith("although nothing has landed since it passed")


def test_a_merge_of_the_persons_own_is_looked_into() -> None:
    branches = Branches(plan(1))
    lines = {"base": ("one", "merge"), "side-3": ("side-1", "side-2", "side-3")}
    merge = CommitFacts(parents=("one", "side-3"), subject="Merge feature", author="Ada", plan="", step="")
    plain = CommitFacts(parents=("side-1",), subject="Break it", author="Bob", plan="", step="")
    branches.judge = breaks("base", "merge", "side-2", "side-3")
    branches.on_ReadCommits = lambda effect: effects.Commits(commits=lines[effect.until])  # type: ignore[method-assign]
    branches.on_ReadCommit = lambda effect: merge if effect.commit == "merge" else plain  # type: ignore[method-assign]
    (broken,) = notes(landing(branches), LandingBroken)
    assert broken.culprit == "side-2"
    assert "it comes from `side-2` (Break it) of Bob" in broken.reason


# After it


def test_work_that_conflicts_with_what_has_landed_is_foretold() -> None:
    branches = Branches(plan(1), plan(2))
    branches.conflicts = {"base+tip-1+tip-2"}
    told = ForeseenConflict(one="plan-002", other="main", paths=("a.py",))
    news = ForeseenConflict(one="plan-003/phase-1", other="main", paths=("a.py",))
    branches.foreseen = (told, news)
    (foreseen,) = notes(landing(branches), ConflictsForeseen)
    assert foreseen.conflicts == (news,)


def test_a_checkout_that_was_updated_is_on_record() -> None:
    flow = driven(update_checkout(UpdateRequest(run="run-009", branch="main", commit="new")), Branches())
    assert flow.notes == [
        CheckoutUpdated(branch="main", place="/srv/project", was="base", now="new", files=3)
    ]
    outcome = FLOWS["update_checkout"].outcome(flow.result)
    assert outcome.reason == "`main` is at new, 3 files in `/srv/project`"
