"""Questions to the plan graph: each answer against what a person would count by hand, or a simple model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decided import approval
from kernel.histories import FAILED, PASSED
from kernel.ledger_contract import tell
from kernel.plans import NAMES, complete, fresh, needs, planned, record, risk, step
from planforge.actions import Action
from planforge.errors import InvalidInput, NotFound
from planforge.interfaces.cli.typed import text
from planforge.kernel import dependencies, graph, hints, leases
from planforge.kernel.budgets import allow
from planforge.kernel.events import (
    Amounts,
    ArtifactKind,
    AttemptRejected,
    DecisionAsked,
    PatchApplied,
    PatchProposed,
    PlannedStep,
    VerifyFailed,
    VerifyOk,
)
from planforge.kernel.graph import queries
from planforge.kernel.graph.answers import run_query
from planforge.kernel.graph.queries import GraphQuery, QueryResult, parse_query
from planforge.kernel.hints import action_of
from planforge.kernel.ledger import Ledger
from planforge.kernel.scores import score
from planforge.kernel.work import decisions
from tries import tries

P = "plan-001"
many = settings(max_examples=tries(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])

Kind = TypeVar("Kind", bound=queries.Answer)


def ask(ledger: Ledger, query: GraphQuery, kind: type[Kind]) -> Kind:
    """The answer, which must survive being written down, as must the query."""
    assert parse_query(msgspec.json.encode(query)) == query
    found = run_query(ledger, query)
    assert msgspec.json.decode(msgspec.json.encode(found), type=QueryResult) == found
    assert isinstance(found, kind)
    return found


def finish(ledger: Ledger, *nodes: str) -> None:
    for node in nodes:
        graph.start_step(ledger, node, "w")
        complete(ledger, node, score(PASSED, 1))


# One step


def why(ledger: Ledger, node: str) -> list[tuple[str, str]]:
    found = ask(ledger, queries.Blocked(step=node), queries.Blockers)
    return [(item.kind, item.name) for item in found.blockers]


def test_everything_that_a_step_waits_for_is_named_with_its_kind(ledger: Ledger) -> None:
    steps = [step("a"), step("b"), step("c", "b", "a", gates=["legal"], files=["src/**"])]
    graph.create_plan(ledger, "goal", steps=steps, risks=[risk("r", "c")])
    leases.claim(ledger, "w9", ("src/x.py",), ttl=timedelta(hours=1))
    allow(ledger, "plan:plan-001", Amounts(tokens=0), "A")
    finish(ledger, "plan-001/a")
    assert why(ledger, "plan-001/c") == [
        ("dependency", "plan-001/b"),
        ("risk", "r"),
        ("gate", "legal"),
        ("lease", "src/x.py"),
        ("budget", "plan:plan-001"),
    ]
    found = ask(ledger, queries.Blocked(step="plan-001/c"), queries.Blockers)
    reasons = {item.kind: item.reason for item in found.blockers}
    assert reasons["dependency"] == "is pending"
    assert reasons["risk"] == "medium: r may happen"
    assert reasons["lease"].startswith("leased to w9 until 2026-")
    assert "no tokens left" in reasons["budget"]
    assert all(item.help for item in found.blockers)


def test_a_step_that_nothing_holds_back_is_ready(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a")])
    assert why(ledger, "plan-001/a") == []


def test_a_step_whose_attempt_stands_at_a_gate_names_the_gate(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a"), step("b")])
    graph.start_step(ledger, "plan-001/a", "w1")
    graph.start_step(ledger, "plan-001/b", "w2")
    gate = DecisionAsked(
        kind="gate", number=1, subject="plan-001", name="g", step="a", choices=(), content="c"
    )
    ledger.append("plan-001", [decisions.hashed(gate)], expected=ledger.version("plan-001"))
    (stands,) = ask(ledger, queries.Blocked(step="plan-001/a"), queries.Blockers).blockers
    assert stands.reason == "w1 is at attempt 1, which waits for a person at gate-001"
    assert stands.help == hints.recorded(Action("gate show", "gate-001"))
    (other,) = ask(ledger, queries.Blocked(step="plan-001/b"), queries.Blockers).blockers
    assert other.reason == "w2 is at attempt 1"


def test_a_step_that_is_under_way_done_failed_or_superseded_says_so(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a"), step("b"), step("c"), step("d", "a")])
    finish(ledger, "plan-001/b")
    graph.start_step(ledger, "plan-001/a", "w1")
    graph.start_step(ledger, "plan-001/c", "w")
    graph.fail_step(ledger, "plan-001/c", "it cannot be done")
    assert why(ledger, "plan-001/a") == [("status", "in-progress")]
    assert why(ledger, "plan-001/b") == [("status", "done")]
    assert why(ledger, "plan-001/c") == [("status", "failed")]
    assert why(ledger, "plan-001/d") == [("dependency", "plan-001/a")]
    graph.rescope(ledger, P, "new", [step("a")])
    for name, where in (("a", "why plan-001.r2/a"), ("d", "graph plan-001.r2")):
        (blocker,) = ask(ledger, queries.Blocked(step=f"{P}/{name}"), queries.Blockers).blockers
        assert (blocker.kind, blocker.name) == ("status", "superseded")
        assert blocker.help is not None
        assert str(action_of(blocker.help)) == where


def test_the_budget_of_a_step_counts_whatever_its_revision(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a")])
    graph.rescope(ledger, P, "new", [step("a")])
    allow(ledger, "step:plan-001/a", Amounts(attempts=0), "A")
    assert why(ledger, "plan-001.r2/a") == [("budget", "step:plan-001/a")]


# Plans and nodes


def test_a_plan_by_its_name_is_its_newest_revision_and_a_number_makes_it_exact(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a")])
    graph.rescope(ledger, P, "new", [step("a"), step("b", "a")])
    shown = ask(ledger, queries.Plan(plan=P), queries.PlanView)
    assert (shown.node, shown.supersedes, shown.superseded_by) == ("plan-001.r2", "plan-001", "")
    assert [(item.step, item.depends_on) for item in shown.steps] == [("a", ()), ("b", ("a",))]
    first = ask(ledger, queries.Plan(plan="plan-001.r1"), queries.PlanView)
    assert (first.node, first.superseded_by) == ("plan-001", "plan-001.r2")
    assert ask(ledger, queries.NextSteps(plan="plan-001.r1"), queries.StepList) == queries.StepList(
        plan="plan-001", superseded_by="plan-001.r2", steps=()
    )
    assert ask(ledger, queries.Node(id="plan-001.r1/a"), queries.NodeView).id == "plan-001/a"
    assert ask(ledger, queries.Node(id="plan-001"), queries.NodeView).superseded_by == "plan-001.r2"


def test_next_steps_come_in_the_order_of_the_plan_and_no_more_than_asked_for(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step(f"s{number}") for number in range(30)])
    found = ask(ledger, queries.NextSteps(plan=P, limit=3), queries.StepList)
    assert [item.node for item in found.steps] == ["plan-001/s0", "plan-001/s1", "plan-001/s2"]
    assert len(ask(ledger, queries.NextSteps(plan=P), queries.StepList).steps) == 20


def test_nodes_have_their_kind_and_state_and_edges_lead_both_ways(ledger: Ledger) -> None:
    steps = [step("a", files=["src.r1/x.py"]), step("b", "a")]
    graph.create_plan(ledger, "goal", steps=steps, risks=[risk("r", "b")])
    record(ledger, "plan-001/a", ArtifactKind.FILE, "src.r1/x.py", "h")
    seen = ask(ledger, queries.Node(id="plan-001!r"), queries.NodeView)
    assert seen.kind == "risk"
    assert seen.risk is not None
    assert seen.risk.open
    assert ask(ledger, queries.Node(id="file:src.r1/x.py"), queries.NodeView).kind == "file"
    step_node = ask(ledger, queries.Node(id="plan-001/b"), queries.NodeView)
    assert step_node.step is not None
    assert step_node.step.waiting == 2
    all_edges = ask(ledger, queries.Neighbours(node="plan-001/a"), queries.Edges).edges
    assert [(edge.kind, edge.source, edge.target) for edge in all_edges] == [
        ("PLAN_HAS_STEP", "plan-001", "plan-001/a"),
        ("STEP_DEPENDS_ON", "plan-001/b", "plan-001/a"),
        ("STEP_TOUCHES_FILE", "plan-001/a", "file:src.r1/x.py"),
    ]
    into = queries.Neighbours(node="file:src.r1/x.py", edge="STEP_TOUCHES_FILE", direction="in")
    assert [edge.hash for edge in ask(ledger, into, queries.Edges).edges] == ["h"]
    out = queries.Neighbours(node="plan-001/a", direction="out")
    assert [edge.target for edge in ask(ledger, out, queries.Edges).edges] == ["file:src.r1/x.py"]


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        (queries.Node(id="nothing"), "there is no node `nothing`", "write it like"),
        (queries.Neighbours(node="file:x"), "there is no node `file:x`", "write it like"),
        (queries.Plan(plan="plan-009"), "there is no plan `plan-009`", "planforge plan list"),
        (queries.Plan(plan="plan-001.r7"), "`plan-001` has no revision 7", "its newest is `plan-001`"),
        (queries.Blocked(step="plan-001/z"), "`plan-001` has no step `z`", "it has `a`, `b`"),
        (queries.Blocked(step="plan-001"), "there is no step `plan-001`", "plan-001/phase-1"),
        (
            queries.Closure(node="plan-009/a", direction="up"),
            "there is no step `plan-009/a`",
            "planforge graph",
        ),
        (queries.Timeline(node="plan-001/z"), "`plan-001` has no step `z`", "planforge graph plan-001"),
        (queries.Custody(node="plan-009"), "there is no plan `plan-009`", "planforge plan list"),
        (queries.Difference(before="plan-001", after="plan-001.r2"), "no revision 2", "its newest"),
    ],
)
def test_what_is_not_there_is_said_with_a_hint(
    ledger: Ledger, query: GraphQuery, message: str, hint: str
) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a"), step("b")])
    with pytest.raises(NotFound) as refused:
        run_query(ledger, query)
    assert message in refused.value.message
    assert hint in text(refused.value.hint)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"query": "x"}',
        '{"query": "next_steps"}',
        '{"query": "next_steps", "plan": 1}',
        '{"query": "next_steps", "plan": "p", "limit": 0}',
        '{"query": "node", "id": "x", "more": 1}',
    ],
)
def test_what_is_not_a_query_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="that is not a query"):
        parse_query(text)


# Ways through a plan


def closure(edges: Mapping[str, Sequence[str]], start: str, depth: int | None) -> set[str]:
    reached: set[str] = set()
    frontier = {start}
    for _ in range(len(edges) if depth is None else depth):
        frontier = {needed for name in frontier for needed in edges[name]}
        reached |= frontier
    return reached


@many
@given(steps=planned().filter(bool), data=st.data())
def test_the_closure_is_what_following_the_edges_reaches(
    steps: tuple[PlannedStep, ...], data: st.DataObject
) -> None:
    up = needs(steps)
    down = {name: [other for other in up if name in up[other]] for name in up}
    start = data.draw(st.sampled_from(sorted(up)))
    depth = data.draw(st.none() | st.integers(1, 4))
    with fresh() as ledger:
        graph.create_plan(ledger, "goal", steps=steps)
        for direction, edges in (("up", up), ("down", down)):
            query = msgspec.convert(
                {"query": "closure", "node": f"{P}/{start}", "direction": direction, "depth": depth},
                queries.Closure,
            )
            found = ask(ledger, query, queries.Reached).steps
            expected = closure(edges, start, depth)
            assert found == tuple(f"{P}/{name}" for name in up if name in expected)


def test_a_closure_goes_as_deep_as_it_is_told(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a"), step("b", "a"), step("c", "b", "a"), step("d", "c")])

    def reached(start: str, direction: queries.Direction, depth: int | None) -> list[str]:
        query = queries.Closure(node=f"{P}/{start}", direction=direction, depth=depth)
        return [node.rpartition("/")[2] for node in ask(ledger, query, queries.Reached).steps]

    assert [reached("d", "up", depth) for depth in (1, 2, None)] == [["c"], ["a", "b", "c"], ["a", "b", "c"]]
    assert [reached("b", "down", depth) for depth in (1, 2, None)] == [["c"], ["c", "d"], ["c", "d"]]


def heaviest(steps: Sequence[PlannedStep], among: set[str]) -> queries.Chain:
    edges, place = needs(steps), {item.step: number for number, item in enumerate(steps)}
    weights = {item.step: item.weight for item in steps}

    def every(name: str) -> Iterator[tuple[str, ...]]:
        yield (name,)
        for other in among:
            if name in edges[other]:
                yield from ((name, *rest) for rest in every(other))

    found = [chain for name in among for chain in every(name)]
    best = min(
        found,
        key=lambda chain: (-sum(map(weights.__getitem__, chain)), tuple(place[name] for name in chain)),
        default=(),
    )
    return queries.Chain(
        steps=tuple(f"{P}/{name}" for name in best), weight=sum(weights[name] for name in best)
    )


@many
@given(steps=planned(), data=st.data())
def test_the_critical_path_is_the_heaviest_of_all_chains(
    steps: tuple[PlannedStep, ...], data: st.DataObject
) -> None:
    steps = tuple(msgspec.structs.replace(item, gates=()) for item in steps)
    with fresh() as ledger:
        graph.create_plan(ledger, "goal", steps=steps)
        left = {item.step for item in steps}
        for name in dependencies.order(needs(steps))[: data.draw(st.integers(0, len(steps)))]:
            finish(ledger, f"{P}/{name}")
            left.remove(name)
        found = ask(ledger, queries.CriticalPath(plan=P), queries.CriticalPaths)
        assert found.left == heaviest(steps, left)
        assert found.whole == heaviest(steps, {item.step for item in steps})


@given(steps=planned())
def test_waves_hold_every_step_once_and_as_early_as_it_can_be(steps: tuple[PlannedStep, ...]) -> None:
    found = dependencies.waves(needs(steps))
    wave = {name: number for number, names in enumerate(found) for name in names}
    assert sorted(wave) == sorted(item.step for item in steps)
    assert sum(map(len, found)) == len(steps)
    for item in steps:
        assert wave[item.step] == max((wave[needed] + 1 for needed in item.depends_on), default=0)


@given(steps=planned())
def test_the_order_of_work_takes_the_first_in_the_plan_that_can_be_taken(
    steps: tuple[PlannedStep, ...],
) -> None:
    left, expected = dict(needs(steps)), list[str]()
    while left:
        expected.append(next(name for name in left if not set(left[name]) - set(expected)))
        del left[expected[-1]]
    assert dependencies.order(needs(steps)) == expected


# Revisions


@many
@given(before=planned(), after=planned())
def test_the_difference_says_of_every_step_what_became_of_it(
    before: tuple[PlannedStep, ...], after: tuple[PlannedStep, ...]
) -> None:
    with fresh() as ledger:
        graph.create_plan(ledger, "goal", steps=before)
        node = graph.rescope(ledger, P, "new", after)
        found = ask(ledger, queries.Difference(before=P, after=node), queries.Differences)
        old, new = ({item.step: item for item in steps} for steps in (before, after))
        changed = {item.step: {field.field: field for field in item.fields} for item in found.changed}
        for name in NAMES:
            assert (name in found.added) == (name in new and name not in old)
            assert (name in found.removed) == (name in old and name not in new)
            assert (name in found.same) == (name in old and name in new and old[name] == new[name])
            assert (name in changed) == (name in old and name in new and old[name] != new[name])
        for name, fields in changed.items():
            for field in PlannedStep.__struct_fields__:
                was, becomes = getattr(old[name], field), getattr(new[name], field)
                assert (field in fields) == (was != becomes)
                if field in fields:
                    assert (fields[field].before, fields[field].after) == (was, becomes)
        back = ask(ledger, queries.Difference(before=node, after=P), queries.Differences)
        assert (set(back.added), set(back.removed)) == (set(found.removed), set(found.added))


# What happened


def test_a_timeline_has_the_events_of_its_plan_revision_or_step_and_can_be_read_on(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a"), step("b")])
    graph.create_plan(ledger, "another", steps=[step("a")])
    finish(ledger, "plan-001/a", "plan-002/a", "plan-001/b")
    graph.rescope(ledger, P, "new", [step("a"), step("b", weight=2)])
    finish(ledger, "plan-001.r2/b")

    def kinds(node: str, after: int = 0, limit: int = 100) -> tuple[list[tuple[int, str]], int | None]:
        found = ask(ledger, queries.Timeline(node=node, after=after, limit=limit), queries.Moments)
        return [(item.seq, item.kind) for item in found.events], found.next

    one = [(3, "StepStarted"), (4, "StepCompleted")]
    assert kinds("plan-001/a") == (one, None)
    assert kinds("plan-001.r1/b") == ([(7, "StepStarted"), (8, "StepCompleted")], None)
    assert kinds("plan-001.r2/b") == ([(10, "StepStarted"), (11, "StepCompleted")], None)
    assert [seq for seq, _ in kinds(P)[0]] == [1, 3, 4, 7, 8, 9, 10, 11]
    assert [seq for seq, _ in kinds("plan-001.r1")[0]] == [1, 3, 4, 7, 8]
    assert [seq for seq, _ in kinds("plan-001.r2")[0]] == [9, 10, 11]
    assert kinds(P, limit=3) == ([(1, "ItemOpened"), *one], 4)
    assert [seq for seq, _ in kinds(P, after=4, limit=2)[0]] == [7, 8]
    assert kinds(P, after=9, limit=2)[1] is None


def test_custody_leads_from_the_goal_to_what_landed(ledger: Ledger) -> None:
    steps = [step("a", gates=["legal"]), step("b")]
    graph.create_plan(ledger, "the goal", constraints=["no network"], criteria=["fast"], steps=steps)
    ledger.append(P, [approval(P, "c", "A")[1]], expected=None)
    graph.open_gate(ledger, "plan-001/a", "legal", "B")
    for attempt, (kind, evidence) in enumerate([(VerifyFailed, FAILED), (VerifyOk, PASSED)], 1):
        graph.start_step(ledger, "plan-001/a", f"w{attempt}", base="base")
        proposed = PatchProposed(
            plan=P,
            step="a",
            attempt=attempt,
            commit=f"c{attempt}",
            tree="t",
            files=("x",),
            claim="",
            agent="g",
        )
        verified = kind(plan=P, step="a", attempt=attempt, evidence=evidence)
        ledger.append(P, [proposed, verified], expected=None)
        if attempt == 1:
            ledger.append(P, [AttemptRejected(plan=P, step="a", attempt=1, reason="no")], expected=None)
    landed = PatchApplied(
        plan=P, step="a", attempt=2, content="", scope=(), branch="b", commit="c3", tree="t3", parent=""
    )
    ledger.append(P, [landed], expected=None)
    complete(ledger, "plan-001/a", score(PASSED, 1))
    graph.rescope(ledger, P, "new", steps)

    found = ask(ledger, queries.Custody(node="plan-001.r2/a"), queries.CustodyChain)
    assert (found.goal, found.constraints, found.criteria) == ("the goal", ("no network",), ("fast",))
    assert [(item.gate, item.actor) for item in found.approvals] == [("plan", "A")]
    now, origin = found.steps
    assert (now.node, now.kept_from, now.status, now.attempts) == ("plan-001.r2/a", "plan-001/a", "done", ())
    assert [(item.gate, item.actor) for item in origin.approvals] == [("legal", "B")]
    first, second = origin.attempts
    assert (first.holder, first.base, first.rejected) == ("w1", "base", "no")
    assert [(item.outcome, item.reason) for item in first.evidence] == [("fail", FAILED.reason)]
    assert [(item.commit, item.landed) for item in first.patches] == [("c1", False)]
    assert [(item.commit, item.landed, item.agent) for item in second.patches] == [
        ("c2", False, "g"),
        ("c3", True, "g"),
    ]
    assert second.rejected == ""
    whole = ask(ledger, queries.Custody(node=P), queries.CustodyChain)
    assert [item.node for item in whole.steps] == ["plan-001.r2/a", "plan-001/a", "plan-001.r2/b"]


def test_steps_that_are_done_or_landed_without_a_passing_check_are_found(ledger: Ledger) -> None:
    names = ("done", "verified", "landed", "stale", "failed", "open")
    graph.create_plan(ledger, "goal", steps=[step(name) for name in names])
    for name in names[:-1]:
        graph.start_step(ledger, f"{P}/{name}", "w")
    ok = VerifyOk(plan=P, step="verified", attempt=1, evidence=PASSED)
    late = VerifyOk(plan=P, step="stale", attempt=1, evidence=PASSED)
    bad = [
        VerifyOk(plan=P, step="failed", attempt=1, evidence=PASSED),
        VerifyFailed(plan=P, step="failed", attempt=1, evidence=FAILED),
    ]
    landed = PatchApplied(
        plan=P, step="landed", attempt=1, content="", scope=(), branch="", commit="c", tree="", parent=""
    )
    ledger.append(P, [ok, late, *bad, landed], expected=None)
    graph.start_step(ledger, f"{P}/stale", "w")
    ledger.append(P, [late], expected=None)
    for name in ("done", "verified", "stale", "failed"):
        complete(ledger, f"{P}/{name}")
    found = ask(ledger, queries.WithoutEvidence(plan=P), queries.StepList)
    assert [item.step for item in found.steps] == ["done", "landed", "stale", "failed"]
    graph.rescope(ledger, P, "new", [step("done"), step("verified")])
    found = ask(ledger, queries.WithoutEvidence(plan=P), queries.StepList)
    assert [item.step for item in found.steps] == ["done"]


def test_the_story_is_told_the_same_way_after_a_rebuild(ledger: Ledger) -> None:
    tell(ledger)
    asked: list[GraphQuery] = [
        queries.Plan(plan=P),
        queries.Custody(node=P),
        queries.Timeline(node=P),
        queries.Difference(before=P, after="plan-001.r2"),
        queries.Blocked(step="plan-001.r2/phase-3"),
        queries.Neighbours(node="plan-001/phase-2"),
        queries.WithoutEvidence(plan="plan-001.r1"),
    ]
    before = [ask(ledger, query, queries.Answer) for query in asked]
    ledger.rebuild()
    assert [ask(ledger, query, queries.Answer) for query in asked] == before
