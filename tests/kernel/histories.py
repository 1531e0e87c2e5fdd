"""Histories to test with: one event of each kind, a varied story made of them, and any event at all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from decided import approval
from planforge.kernel import events
from planforge.kernel.events import (
    Amounts,
    ArtifactKind,
    Event,
    Payload,
    PlannedRisk,
    PlannedStep,
    PlanStarted,
    RecordedFinding,
)
from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.objects import encode
from planforge.kernel.scores import score
from planforge.kernel.work import decisions


class Clock:
    """A clock that moves on by a second each time somebody looks."""

    def __init__(self, start: datetime = datetime(2026, 1, 31, 23, 59, 58, tzinfo=UTC)) -> None:
        self.time = start

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time


class StandingClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def pass_by(self, span: timedelta) -> None:
        self.time += span


PASSED = Evidence(
    check="tests",
    outcome=Outcome.PASS,
    reason="all 7 tests pass",
    command=("pytest", "-q"),
    exit_code=0,
    counts=Counts(total=7, passed=7, failed=0, skipped=0),
    failing=(),
    commit="c0ffee",
    tree="7ree",
    output="0" * 64,
    seconds=1.25,
)
FAILED = msgspec.structs.replace(
    PASSED,
    outcome=Outcome.FAIL,
    reason="1 of 7 tests fails",
    exit_code=1,
    counts=Counts(total=7, passed=6, failed=1, skipped=0),
    failing=("test_é",),
)

PHASE_1 = PlannedStep(step="phase-1", title="Count", kind="implement", files=("a.py",), depends_on=())
PHASE_2 = PlannedStep(
    step="phase-2", title="Show", kind="implement", files=("b.py", "c.py"), depends_on=("phase-1",)
)
PHASE_3 = PlannedStep(step="phase-3", title="Audit", kind="audit", files=(), depends_on=("phase-2",))

PHASE_3_ALONE = msgspec.structs.replace(PHASE_3, depends_on=("phase-1",))

UNTIL, LATER = "2026-02-01T01:00:00.000000+00:00", "2026-02-01T02:00:00.000000+00:00"

ASKED, MADE = approval("plan-001", "3" * 64, "A <a@b.c>")
RAISED = decisions.hashed(
    events.DecisionAsked(
        kind="gate",
        number=1,
        subject="plan-001",
        name="protected/phase-3",
        run="run-002",
        step="phase-3",
        attempt=1,
        reasons=("`ci.yml`: a CI file is changed",),
        choices=(events.Choice(name="approve"), events.Choice(name="reject")),
        content="7ree",
        commit="c0ffee",
        base="ba5e",
        diff="6" * 64,
        documents=(events.Judged(path="docs/tasks/t/PLAN.md", object="5" * 64),),
    )
)
QUESTION = decisions.hashed(
    events.DecisionAsked(
        kind="question",
        number=1,
        subject="plan-001",
        name="run-002/7",
        run="run-002",
        text="ask again?",
        choices=(
            events.Choice(name="ask again", cost="two calls", consequence="it goes on"),
            events.Choice(name="give up"),
        ),
        content="7ree",
    )
)

STORY: tuple[tuple[str, Event], ...] = (
    (
        "run-001",
        events.RunStarted(
            run="run-001",
            flow="forge",
            flow_version=1,
            subject="plan-001",
            request=Payload(inline=msgspec.Raw(b'{"cap":5,"title":"W\xc3\xb6rter"}')),
        ),
    ),
    (
        "plan-001",
        events.ItemOpened(
            item="plan-001", title="Count words", request="Count the wörds", path="docs/plans/plan-001.md"
        ),
    ),
    ("run-001", events.DriverStarted(run="run-001", fence=1, process=4711)),
    (
        "run-001",
        events.EffectIntended(effect="RunAgent", fingerprint="f" * 64, body=Payload(object="b" * 64)),
    ),
    ("run-001", events.EffectCompleted(effect="RunAgent", outcome=Payload(inline=msgspec.Raw(b"[1,2.5]")))),
    ("run-001", events.EffectFailed(effect="Commit", error="GitFailed", message="no", hint=("try again",))),
    ("run-001", events.RunParked(run="run-001", reason="approve plan-001?")),
    (
        "run-001",
        events.ContextComposed(
            plan="plan-001",
            step="s1",
            attempt=1,
            role="developer",
            parts=(
                events.ContextPart(
                    name="standards",
                    tokens=120,
                    left_out="of AGENTS.md: 40 lines, about 300 tokens",
                    sources=(events.ContextSource(path="AGENTS.md", hash="5e0e94904744"),),
                ),
                events.ContextPart(name="task", tokens=200),
            ),
            tokens=330,
            simplified=True,
        ),
    ),
    (
        "run-001",
        events.FilesChosen(
            plan="plan-001",
            role="drafter",
            terms=("limit",),
            offered=("src/gateway/limit.py", "README.md"),
            chosen=("src/gateway/limit.py",),
            agent="claude-acp",
        ),
    ),
    (
        "run-001",
        events.TierEscalated(
            plan="plan-001",
            step="s1",
            attempt=3,
            role="developer",
            tier="heavy",
            instead_of="balanced",
            reason="2 attempts without progress",
        ),
    ),
    (
        "agents",
        events.LimitReached(
            run="run-001", agent="claude", until="2026-01-02T05:00:00.000000+00:00", said=True, reason="429"
        ),
    ),
    (
        "task-001",
        events.ItemOpened(
            item="task-001",
            title="Rate limits",
            request="Stop floods",
            pipeline="default",
            path="docs/tasks/task-001-rate-limits",
        ),
    ),
    (
        "run-004",
        events.StageStarted(
            task="task-001",
            stage="review-plan",
            iteration=1,
            role="reviewer",
            name="task-001:reviewer:review-plan:1",
            tier="heavy",
        ),
    ),
    (
        "run-004",
        events.FrictionNoted(
            task="task-001",
            workflow="pipeline",
            persona="reviewer",
            issue="skill_stale",
            stage="review-plan",
            iteration=1,
            skill="reviewing-changes",
            detail="names a file that is gone",
            agent="claude",
            model="opus",
        ),
    ),
    (
        "run-004",
        events.StageEnded(
            task="task-001",
            stage="review-plan",
            iteration=1,
            role="reviewer",
            name="task-001:reviewer:review-plan:1",
            outcome="revision",
            reason="it says `revision required`",
            verdict="revision",
            judged="a" * 64,
            document="PLAN_REVIEW.md",
            object="b" * 64,
            findings=(events.RecordedFinding(severity="blocking", title="no clock", location="Changes"),),
            agent="claude",
            model="opus",
            tokens=1200,
        ),
    ),
    (
        "run-004",
        events.ItemMoved(item="task-001", by="escalate", status="escalated", reason="max iterations reached"),
    ),
    (
        "run-004",
        events.TaskEnded(
            task="task-001",
            run="run-004",
            succeeded=False,
            reason="max iterations reached",
            stage="review-plan",
            document="docs/tasks/task-001-rate-limits/PLAN_REVIEW.md",
        ),
    ),
    (
        "agents",
        events.AgentSwitched(
            run="run-001",
            role="drafter",
            agent="claude",
            successor="codex",
            until="2026-01-02T05:00:00.000000+00:00",
            reason="429",
        ),
    ),
    (
        "sessions/run-001",
        events.SessionKept(
            run="run-001",
            conversation="forge:plan-001:auditor",
            agent="codex",
            model="gpt-5",
            session="0199-ab",
            home="homes/run-001/forge-plan-001-auditor/codex",
            began_at="2026-01-02T03:04:05.000000+00:00",
            input_tokens=1200,
            output_tokens=80,
        ),
    ),
    (
        "sessions/run-001",
        events.SessionLost(
            run="run-001", conversation="forge:plan-001:auditor", agent="codex", reason="it handed over"
        ),
    ),
    (
        "run-001",
        events.PlanWritten(
            plan="plan-001",
            round=1,
            cause="draft",
            title="Count all words",
            content="1" * 64,
            object="2" * 64,
        ),
    ),
    (
        "run-001",
        events.AuditRecorded(
            plan="plan-001",
            round=1,
            by="auditor",
            verdict="revision",
            reason="it blocks",
            findings=(RecordedFinding(severity="blocking", title="no tests", location="§4"),),
            decision="continue",
            decision_reason="1 blocking finding",
        ),
    ),
    (
        "run-001",
        events.PlanForged(
            plan="plan-001", content="1" * 64, rounds=2, reason="no blocking finding", clean=True
        ),
    ),
    ("run-001", events.RunEnded(run="run-001", succeeded=True, reason="no blocking finding", exit_code=0)),
    ("plan-001", ASKED),
    ("plan-001", MADE),
    ("plan-001", decisions.used(MADE, "run-002")),
    (
        "plan-001",
        events.PhasesGenerated(
            plan="plan-001",
            content="3" * 64,
            parallel=True,
            max_files=5,
            steps=(PHASE_1, PHASE_2, PHASE_3),
            signatures={"phase-1": "5165"},
            kept=(events.KeptStep(step="phase-1", was="phase-1", status="done", commit="c0de"),),
            actor="ada",
        ),
    ),
    (
        "run-002",
        PlanStarted(
            plan="plan-001",
            run="run-002",
            content="3" * 64,
            branch="plan/plan-001",
            base="ba5e",
            steps=(PHASE_1, PHASE_2, PHASE_3),
            kept=("phase-1",),
        ),
    ),
    ("run-002", events.StepStarted(plan="plan-001", step="phase-2", attempt=1, base="ba5e")),
    (
        "run-002",
        events.PatchProposed(
            plan="plan-001",
            step="phase-2",
            attempt=1,
            commit="c0ffee",
            tree="7ree",
            files=("b.py",),
            claim="done\n\x00✓",
            agent="rehearsal",
        ),
    ),
    ("run-002", events.VerifyFailed(plan="plan-001", step="phase-2", attempt=1, evidence=FAILED)),
    ("run-002", events.StepRetried(plan="plan-001", step="phase-2", problem="it failed", changed=("b.py",))),
    ("plan-001", events.StepSkipped(plan="plan-001", step="phase-3", actor="ada", reason="not needed")),
    (
        "run-002",
        events.PlanPaused(
            plan="plan-001",
            run="run-002",
            reason="phase-2: it failed",
            failed=("phase-2",),
            left=("phase-2",),
            branch="plan/plan-001",
            commit="c0de",
        ),
    ),
    (
        "run-002",
        events.AttemptRejected(plan="plan-001", step="phase-2", attempt=1, reason="1 of 7 tests fails"),
    ),
    ("run-002", events.StepStarted(plan="plan-001", step="phase-2", attempt=2, base="ba5e")),
    (
        "run-002",
        events.AttemptInspected(
            plan="plan-001",
            step="phase-2",
            attempt=2,
            commit="dec0de",
            findings=(events.RecordedFinding(severity="medium", title="a skip", location="t.py:3"),),
            protected=("`ci.yml`: a CI file",),
        ),
    ),
    ("run-002", events.VerifyOk(plan="plan-001", step="phase-2", attempt=2, evidence=PASSED)),
    (
        "run-002",
        events.PatchApplied(
            plan="plan-001",
            step="phase-2",
            attempt=2,
            content="3" * 64,
            scope=("b.py", "c.py"),
            branch="plan/plan-001",
            commit="dec0de",
            tree="7ree",
            parent="ba5e",
        ),
    ),
    (
        "run-002",
        events.StepCompleted(plan="plan-001", step="phase-2", attempts=2, score=score(PASSED, 40)),
    ),
    ("run-002", events.StepStarted(plan="plan-001", step="phase-3", attempt=1, base="dec0de")),
    ("run-002", events.StepFailed(plan="plan-001", step="phase-3", attempts=3, reason="it blocks")),
    (
        "run-002",
        events.PlanEnded(
            plan="plan-001",
            run="run-002",
            succeeded=False,
            reason="phase-3: it blocks",
            branch="plan/plan-001",
            commit="dec0de",
        ),
    ),
    ("plan-002", events.ItemLinked(item="plan-002", after=("plan-001",), actor="A")),
    (
        "plan-002",
        events.ItemMoved(item="plan-002", by="cancel", status="CANCELLED", actor="A", reason="not needed"),
    ),
    (
        "plan-001",
        events.LessonDecided(plan="plan-001", decision="add", lesson="read-first", actor="A", reason="twice"),
    ),
    (
        "plan-001",
        events.PlanRescoped(
            plan="plan-001",
            revision=2,
            reason="phase-2 was too large",
            steps=(PHASE_1, PHASE_3_ALONE),
            risks=(PlannedRisk(risk="risk-1", description="slow", severity="medium", blocks=("phase-3",)),),
            kept=("phase-1",),
        ),
    ),
    (
        "plan-001",
        events.RiskRaised(
            plan="plan-001", risk="risk-2", description="é", severity="blocking", blocks=("phase-3",)
        ),
    ),
    ("plan-001", events.RiskSettled(plan="plan-001", risk="risk-1", reason="measured", actor="A <a@b.c>")),
    (
        "plan-001",
        events.GateOpened(plan="plan-001", step="phase-3", gate="legal", content="4" * 64, actor="A"),
    ),
    ("plan-001", RAISED),
    ("plan-001", decisions.made(RAISED, "approve", "A <a@b.c>", "läuft")),
    ("plan-001", QUESTION),
    ("plan-001", decisions.made(QUESTION, "ask again", "A <a@b.c>", "ja, bitte")),
    (
        "run-002/requests",
        events.CancelRequested(run="run-002", actor="A <a@b.c>", reason="zu langsam", with_plan=True),
    ),
    (
        "plan-001",
        events.ArtifactRecorded(
            plan="plan-001",
            step="phase-3",
            attempt=1,
            kind=ArtifactKind.REPORT,
            name="coverage",
            hash="5" * 64,
        ),
    ),
    ("leases", events.LeaseGranted(holder="w1", paths=("a.py", "src/**"), fence=1, until=UNTIL)),
    ("leases", events.LeaseAwaited(holder="w2", paths=("a.py",), behind=("w1",), until=UNTIL)),
    ("leases", events.LeaseRenewed(holder="w1", fence=1, until=LATER)),
    ("leases", events.LeaseWaitEnded(holder="w2", reason="no longer needed")),
    ("leases", events.LeasePassed(holder="w1", fence=1, successor="w3", new_fence=5, until=LATER)),
    (
        "leases",
        events.LeaseReleased(holder="w3", fence=5, forced=True, actor="A <a@b.c>", reason="it is stuck"),
    ),
    ("leases", events.LeaseGranted(holder="w4", paths=("b.py",), fence=7, until=UNTIL)),
    ("leases", events.LeaseExpired(holder="w4", fence=7, until=UNTIL)),
    ("leases", events.LeaseGranted(holder="w5", paths=("b.py",), fence=9, until=UNTIL)),
    (
        "budgets",
        events.BudgetSet(scope="run:run-002", limits=Amounts(tokens=1000, attempts=9), actor="A"),
    ),
    (
        "budgets",
        events.BudgetReserved(
            reservation="run-002/0", scopes=("run:run-002", "role:auditor"), amounts=Amounts(tokens=400)
        ),
    ),
    ("budgets", events.BudgetSpent(reservation="run-002/0", amounts=Amounts(tokens=150))),
    (
        "budgets",
        events.BudgetReconciled(
            reservation="run-002/0", spent=Amounts(tokens=None, seconds=3), reason="done"
        ),
    ),
    (
        "run-002",
        events.HandoffEmitted(
            handoff="handoff-001",
            plan="plan-001",
            step="phase-3",
            holder="w3",
            successor="w5",
            fence=9,
            used=100_001,
            threshold=100_000,
            estimated=True,
            summary=Payload(inline=msgspec.Raw(b'{"next":[]}')),
        ),
    ),
    (
        "run-002",
        events.HandoffLoaded(handoff="handoff-001", plan="plan-001", step="phase-3", holder="w5"),
    ),
    ("run-003", events.MergeChecked(branch="main", plan="plan-001", onto="ba5e", evidence=PASSED)),
    (
        "run-003",
        events.PlanLanded(
            plan="plan-001",
            branch="main",
            landing="planforge/landed/main",
            commit="1a4d",
            tree="7ree",
            parent="ba5e",
            merged="dec0de",
        ),
    ),
    (
        "run-003",
        events.LandingConflicted(
            plan="plan-001",
            branch="main",
            onto="ba5e",
            merged="dec0de",
            conflicts=(
                events.ConflictedPath(path="ä.py", base="1", ours="2", theirs="3"),
                events.ConflictedPath(path="gone.py", base="1", theirs="3"),
            ),
            archive="refs/planforge/archive/run-003/plan-001.conflict",
        ),
    ),
    (
        "run-003",
        events.LandingBroken(
            plan="plan-001",
            branch="main",
            onto="ba5e",
            merged="dec0de",
            commit="1a4d",
            failing=("test_é",),
            culprit="bad",
            culprit_plan="plan-002",
            culprit_step="phase-1",
            suspects=(),
            checks=3,
            reason="since `bad` (plan-002)",
        ),
    ),
    ("run-003", events.PlanHeldBack(plan="plan-001", branch="main", reason="it is built on plan-002")),
    ("run-003", events.StepReopened(plan="plan-001", step="phase-2", reason="it conflicts in `ä.py`")),
    (
        "run-003",
        events.LandingCaughtUp(branch="main", landing="planforge/landed/main", commit="1a4e", merged="ba5f"),
    ),
    (
        "run-003",
        events.LandingRestarted(
            branch="main",
            landing="planforge/landed/main",
            was="1a4e",
            now="ba60",
            archive="refs/planforge/archive/run-003/landed",
            reason="it conflicts in `ä.py`",
        ),
    ),
    (
        "run-003",
        events.ConflictsForeseen(
            branch="main",
            onto="1a4d",
            conflicts=(events.ForeseenConflict(one="plan-002/phase-1", other="main", paths=("a.py",)),),
        ),
    ),
    (
        "run-003",
        events.CheckoutUpdated(branch="main", place="/srv/project", was="ba5e", now="1a4d", files=2),
    ),
    (
        "plan-001",
        events.PullRequestOpened(
            plan="plan-001",
            url="https://example.org/pull/1",
            branch="planforge/plan-001",
            commit="c0de",
            actor="A",
            base="main",
        ),
    ),
)
"""A plan that is forged, approved, carried out with one retry, and stopped by its audit."""

EXAMPLES: dict[str, Event] = {type(event).__name__: event for _, event in STORY}


def any_event(kind: type[Event]) -> st.SearchStrategy[Event]:
    """Any event of this kind, from the types of its fields."""
    return st.builds(kind, **{field.name: _any(field.type) for field in msgspec.structs.fields(kind)})


_LEAVES: dict[Any, Callable[[], st.SearchStrategy[Any]]] = {
    int: lambda: st.integers(min_value=-(2**63), max_value=2**63 - 1),
    float: lambda: st.floats(allow_nan=False, allow_infinity=False),
    Payload: lambda: st.builds(
        Payload, inline=st.text(max_size=20).map(encode).map(msgspec.Raw), object=st.none() | st.text()
    ),
}


def _any(kind: Any) -> st.SearchStrategy[Any]:
    if kind in _LEAVES:
        return _LEAVES[kind]()
    if get_origin(kind) is tuple:
        unique = (lambda step: step.step) if PlannedStep in get_args(kind) else None
        return st.lists(_any(get_args(kind)[0]), max_size=3, unique_by=unique).map(tuple)
    if isinstance(kind, UnionType):
        return st.one_of([st.none() if part is NoneType else _any(part) for part in get_args(kind)])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return st.builds(kind, **{field.name: _any(field.type) for field in msgspec.structs.fields(kind)})
    return st.from_type(kind)
