"""Plans as graphs: what is refused, what is recorded, and that the table of ready steps is always right."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel.histories import FAILED, PASSED, any_event
from kernel.ledger_contract import tables
from kernel.plans import GATES, NAMES, complete, fresh, layered, planned, record, reject, risk, risky, step
from planforge.errors import (
    InvalidGraph,
    InvalidInput,
    NotFound,
    PlanforgeError,
    RefusedByGate,
    StepBlocked,
    Superseded,
)
from planforge.interfaces.cli.typed import text
from planforge.kernel import events, graph, projections
from planforge.kernel.events import (
    ArtifactKind,
    Event,
    GateOpened,
    ItemOpened,
    Payload,
    PlannedRisk,
    PlannedStep,
    PlanRescoped,
    PlanStarted,
    Recorded,
    RiskRaised,
    RiskSettled,
    RunStarted,
    StepCompleted,
    StepFailed,
    StepStarted,
)
from planforge.kernel.graph.answers import run_query
from planforge.kernel.graph.queries import NextSteps, StepList
from planforge.kernel.ledger import Ledger
from planforge.kernel.projections.revisions import content_of
from planforge.kernel.scores import score
from tries import tries

CHAIN = (step("a"), step("b", "a"), step("c", "b"))
many = settings(max_examples=tries(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def ready(ledger: Ledger, plan: str = "plan-001") -> list[str]:
    found = run_query(ledger, NextSteps(plan=plan))
    assert isinstance(found, StepList)
    return [item.step for item in found.steps]


def status(ledger: Ledger, plan: str = "plan-001") -> str:
    ((found,),) = ledger.query("SELECT status FROM plans WHERE plan = ?", plan)
    return str(found)


# What can be a plan


@pytest.mark.parametrize(
    ("steps", "risks", "message"),
    [
        ([step("a", "c"), step("b", "a"), step("c", "b")], [], "steps wait for each other: `a → c → b → a`"),
        ([step("a", "a")], [], "step `a` depends on itself: `a → a`"),
        ([step("a", "x")], [], "step `a` depends on `x`, which is not in the plan"),
        ([step("a"), step("b"), step("a")], [], "there are 2 steps with the id `a`"),
        ([step("")], [], "`` cannot be the id of a step"),
        ([step("a/b")], [], "`a/b` cannot be the id of a step"),
        ([step(".a")], [], "`.a` cannot be the id of a step"),
        ([step("a\n")], [], "`a\n` cannot be the id of a step"),
        ([step("a", weight=0)], [], "step `a` has the weight 0"),
        ([step("a", weight=10**10)], [], "step `a` has the weight 10000000000"),
        ([step("a", gates=[""])], [], "step `a` has a gate without a name"),
        ([step("a", files=["../b"])], [], "step `a`: "),
        ([step("a")], [risk("r", "x")], "risk `r` blocks `x`, which is not in the plan"),
        ([step("a")], [risk("r"), risk("r")], "there are 2 risks with the id `r`"),
        ([step("a")], [risk("r r")], "`r r` cannot be the id of a risk"),
    ],
)
def test_what_cannot_be_a_plan_is_refused_and_says_why(
    ledger: Ledger, steps: list[PlannedStep], risks: list[PlannedRisk], message: str
) -> None:
    with pytest.raises(InvalidGraph) as refused:
        graph.create_plan(ledger, "goal", steps=steps, risks=risks)
    assert refused.value.message.startswith(message)
    assert ledger.head() == 0


@pytest.mark.dear
def test_a_chain_of_100000_steps_is_no_trouble_and_neither_is_a_cycle_as_long() -> None:
    chain = [step("s0"), *(step(f"s{n}", f"s{n - 1}") for n in range(1, 100_000))]
    graph.check_steps(chain)
    chain[0] = step("s0", "s99999")
    with pytest.raises(InvalidGraph) as refused:
        graph.check_steps(chain)
    assert refused.value.message.count("→") == 100_000


@given(steps=planned(), data=st.data())
def test_a_plan_without_cycles_is_taken_and_one_edge_backwards_is_refused_with_a_real_cycle(
    steps: tuple[PlannedStep, ...], data: st.DataObject
) -> None:
    graph.check_steps(steps)
    above = {item.step: {item.step} for item in steps}
    for _ in steps:
        for item in steps:
            above[item.step].update(*(above[needed] for needed in item.depends_on))
    backwards = [(low, high) for high in above for low in above[high]]
    if not backwards:
        return
    low, high = data.draw(st.sampled_from(backwards))
    changed = tuple(
        step(item.step, *item.depends_on, *([high] if item.step == low else [])) for item in steps
    )
    with pytest.raises(InvalidGraph) as refused:
        graph.check_steps(changed)
    path = refused.value.message.split("`")[-2].split(" → ")
    needs = {item.step: item.depends_on for item in changed}
    assert path[0] == path[-1]
    assert len(path) > 1
    assert all(after in needs[before] for before, after in pairwise(path))
    assert len(set(path)) == len(path) - 1


# Plans


def test_plans_are_numbered_in_turn_and_beside_those_with_a_file(ledger: Ledger) -> None:
    file = ItemOpened(item="plan-041", title="t", request="r", path="docs/plans/plan-041.md")
    assert graph.create_plan(ledger, "one") == "plan-001"
    ledger.append("plan-041", [file], expected=0)
    assert graph.create_plan(ledger, "two\nlines", criteria=["fast"]) == "plan-042"
    assert graph.newest(ledger, "plan-042") == "plan-042"


def test_a_plan_without_a_goal_is_refused(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput):
        graph.create_plan(ledger, " ")


def test_a_plan_that_is_kept_in_the_ledger_goes_from_draft_to_done_with_its_steps(ledger: Ledger) -> None:
    plan = graph.create_plan(ledger, "goal", steps=[step("a"), step("b", "a", kind="audit")])
    seen = [status(ledger)]
    for name in ("a", "b"):
        graph.start_step(ledger, f"{plan}/{name}", "w")
        seen.append(status(ledger))
        complete(ledger, f"{plan}/{name}", score(PASSED, 1))
    seen.append(status(ledger))
    assert seen == ["DRAFT", "IMPLEMENTING", "AUDITING", "DONE"]
    graph.rescope(ledger, plan, "more", [step("a"), step("b", "a", kind="audit"), step("c")])
    assert status(ledger) == "IMPLEMENTING"
    graph.rescope(ledger, plan, "less", [step("a")])
    assert status(ledger) == "DONE"


def test_a_plan_with_a_file_is_not_done_before_its_run_says_so(ledger: Ledger) -> None:
    plan, steps = "plan-001", (step("a"),)
    created = ItemOpened(item=plan, title="It", request="goal", path="docs/plans/plan-001.md", steps=steps)
    ledger.append(plan, [created], expected=0)
    graph.start_step(ledger, f"{plan}/a", "w")
    complete(ledger, f"{plan}/a")
    assert status(ledger) == "DRAFT"


def test_a_rescope_keeps_what_is_done_and_unchanged_with_its_score(ledger: Ledger) -> None:
    plan = graph.create_plan(ledger, "goal", steps=[step("a"), step("b"), step("c")])
    for name in ("a", "b"):
        graph.start_step(ledger, f"{plan}/{name}", "w")
        complete(ledger, f"{plan}/{name}", score(PASSED, 7))
    node = graph.rescope(
        ledger, plan, "b was wrong", [step("a"), step("b", weight=2), step("c"), step("d", "a")]
    )
    assert node == graph.newest(ledger, plan) == "plan-001.r2"
    assert ready(ledger) == ["b", "c", "d"]
    assert graph.score_of(ledger, "plan-001.r2/a") == graph.score_of(ledger, "plan-001/a") == score(PASSED, 7)
    assert graph.find(ledger, "plan-001.r2/a").attempts == 1
    assert graph.find(ledger, "plan-001/b").status == "done"
    assert graph.find(ledger, "plan-001.r2/b").attempts == 0
    assert list(ledger.query("SELECT source, target FROM edges WHERE kind = 'PLAN_SUPERSEDES'")) == [
        ("plan-001.r2", "plan-001")
    ]
    assert graph.rescope(ledger, "plan-001.r2", "again", [step("a")]) == "plan-001.r3"


def test_an_open_risk_outlives_a_rescope_and_a_settled_one_does_not(ledger: Ledger) -> None:
    plan = graph.create_plan(
        ledger, "goal", steps=[step("a"), step("b")], risks=[risk("r1", "a"), risk("r2", "b")]
    )
    graph.settle_risk(ledger, plan, "r2", "measured", "A")
    graph.rescope(ledger, plan, "new", [step("a"), step("b"), step("c")])
    assert ready(ledger) == ["b", "c"]
    graph.rescope(ledger, plan, "without a", [step("b"), step("c")])
    assert ready(ledger) == ["b", "c"]


def test_an_open_gate_stays_open_only_for_the_step_that_it_was_opened_for(ledger: Ledger) -> None:
    plan = graph.create_plan(ledger, "goal", steps=[step("a", gates=["legal"]), step("b", gates=["legal"])])
    for name in ("a", "b"):
        graph.open_gate(ledger, f"{plan}/{name}", "legal", "A")
    assert ready(ledger) == ["a", "b"]
    graph.rescope(ledger, plan, "new", [step("a", gates=["legal"]), step("b", gates=["legal"], weight=2)])
    assert ready(ledger) == ["a"]


def test_a_plan_that_runs_cannot_be_rescoped_and_the_run_is_named(ledger: Ledger) -> None:
    plan = graph.create_plan(ledger, "goal", steps=[step("a")])
    run = RunStarted(run="run-007", flow="plan_run", flow_version=1, subject=plan, request=Payload())
    ledger.append("run-007", [run], expected=0)
    with pytest.raises(RefusedByGate, match="unfinished run, `run-007`"):
        graph.rescope(ledger, plan, "no", [step("b")])


def begun(*steps: PlannedStep, content: str = "c", kept: tuple[str, ...] = ()) -> PlanStarted:
    return PlanStarted(
        plan="plan-001", run="run-001", content=content, branch="b", base="x", steps=steps, kept=kept
    )


def done(name: str) -> StepCompleted:
    return StepCompleted(plan="plan-001", step=name, attempts=1, score=None)


def test_a_plan_file_begun_again_unchanged_is_the_same_revision_with_what_was_not_kept_pending(
    ledger: Ledger,
) -> None:
    file = ItemOpened(item="plan-001", title="t", request="r", path="p.md")
    ledger.append("x", [file, begun(*CHAIN), done("a"), done("b"), begun(*CHAIN, kept=("a",))], expected=0)
    assert graph.newest(ledger, "plan-001") == "plan-001"
    assert ready(ledger) == ["b"]
    assert graph.find(ledger, "plan-001/a").completed == 3
    assert graph.find(ledger, "plan-001/b").status == "pending"


# Steps


def test_a_step_that_waits_is_refused_and_everything_it_waits_for_is_named(ledger: Ledger) -> None:
    steps = [step("a"), step("b", "a", gates=["legal", "safety"])]
    plan = graph.create_plan(ledger, "goal", steps=steps, risks=[risk("r1", "b")])
    graph.raise_risk(ledger, plan, "r2", "it burns", "blocking", ["b"])
    with pytest.raises(StepBlocked) as refused:
        graph.start_step(ledger, "plan-001/b", "w")
    for part in (
        "dependency `plan-001/a` (is pending)",
        "risk `r1`",
        "risk `r2`",
        "gate `legal`",
        "gate `safety`",
    ):
        assert part in refused.value.message
    graph.start_step(ledger, "plan-001/a", "w")
    complete(ledger, "plan-001/a")
    graph.settle_risk(ledger, plan, "r1", "measured", "A")
    graph.settle_risk(ledger, plan, "r2", "it does not", "A")
    graph.open_gate(ledger, "plan-001/b", "legal", "A")
    with pytest.raises(StepBlocked, match=r"waits for gate `safety` \(nobody has opened it\)$"):
        graph.start_step(ledger, "plan-001/b", "w")
    graph.open_gate(ledger, "plan-001/b", "safety", "A")
    assert graph.start_step(ledger, "plan-001/b", "w", base="abc", fence=7) == 1
    assert ledger.last(1)[0].event == StepStarted(
        plan="plan-001", step="b", attempt=1, base="abc", holder="w", fence=7
    )


def test_opening_and_settling_twice_records_one_fact(ledger: Ledger) -> None:
    plan = graph.create_plan(ledger, "goal", steps=[step("a", gates=["legal"])], risks=[risk("r", "a")])
    for _ in range(2):
        graph.open_gate(ledger, f"{plan}/a", "legal", "A")
        graph.settle_risk(ledger, plan, "r", "measured", "A")
    assert ledger.head() == 3
    assert ready(ledger) == ["a"]


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda ledger: graph.raise_risk(ledger, "plan-001", "r", "", "", ["a"]), "has a risk `r` already"),
        (
            lambda ledger: graph.raise_risk(ledger, "plan-001", "r2", "", "", ["x"]),
            "blocks `x`, which is not",
        ),
        (lambda ledger: graph.settle_risk(ledger, "plan-001", "x", "y", "A"), "has no risk `x`"),
        (lambda ledger: graph.settle_risk(ledger, "plan-001", "r", "", "A"), "say why"),
        (lambda ledger: graph.open_gate(ledger, "plan-001/a", "x", "A"), "has no gate `x`"),
        (lambda ledger: graph.start_step(ledger, "plan-001/x", "w"), "has no step `x`"),
        (lambda ledger: graph.start_step(ledger, "plan-009/x", "w"), "there is no step `plan-009/x`"),
        (lambda ledger: graph.start_step(ledger, "plan-001/a", ""), "say who"),
        (lambda ledger: complete(ledger, "plan-001/a"), "is not under way"),
        (lambda ledger: reject(ledger, "plan-001/a", ""), "is not under way"),
        (lambda ledger: graph.rescope(ledger, "plan-009", "x", []), "there is no plan `plan-009`"),
        (lambda ledger: graph.rescope(ledger, "plan-001.r5", "x", [step("a", "a")]), "depends on itself"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_recorded(
    ledger: Ledger, refused: Callable[[Ledger], None], message: str
) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a", gates=["legal"])], risks=[risk("r", "a")])
    with pytest.raises(PlanforgeError, match=message):
        refused(ledger)
    assert ledger.head() == 1


def test_a_step_in_progress_is_its_holders_until_it_is_given_back(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a")])
    assert graph.start_step(ledger, "plan-001/a", "w1") == 1
    with pytest.raises(RefusedByGate, match="`w1` is at attempt 1"):
        graph.start_step(ledger, "plan-001/a", "w2")
    with pytest.raises(RefusedByGate, match="by `w1`, not by `w2`"):
        complete(ledger, "plan-001/a", holder="w2")
    assert graph.start_step(ledger, "plan-001/a", "w1") == 2
    assert ready(ledger) == []
    reject(ledger, "plan-001/a", "the tests fail", holder="w1")
    assert ready(ledger) == ["a"]
    assert graph.start_step(ledger, "plan-001/a", "w2") == 3
    graph.fail_step(ledger, "plan-001/a", "no more")
    assert ready(ledger) == []
    assert graph.start_step(ledger, "plan-001/a", "w3") == 4
    with pytest.raises(RefusedByGate, match="attempt 3 at `plan-001/a` is not under way"):
        graph.require_attempt(ledger, "plan-001/a", 3)
    complete(ledger, "plan-001/a", holder="w3")
    for refused in (graph.start_step, graph.fail_step):
        with pytest.raises(RefusedByGate, match="`plan-001/a` is done"):
            refused(ledger, "plan-001/a", "w3")


def test_a_handoff_makes_the_successor_the_holder(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a")])
    graph.start_step(ledger, "plan-001/a", "w1")
    passed_on = events.HandoffEmitted(
        handoff="handoff-001",
        plan="plan-001",
        step="a",
        holder="w1",
        successor="w2",
        fence=0,
        used=1,
        threshold=1,
        estimated=False,
        summary=Payload(),
    )
    ledger.append("plan-001", [passed_on], expected=None)
    with pytest.raises(RefusedByGate, match="by `w2`, not by `w1`"):
        complete(ledger, "plan-001/a", holder="w1")
    complete(ledger, "plan-001/a", holder="w2")


def test_what_belongs_to_an_older_revision_cannot_go_on(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a", gates=["legal"]), step("b")])
    graph.start_step(ledger, "plan-001/b", "w")
    graph.rescope(ledger, "plan-001", "new", [step("a", gates=["legal"]), step("b")])
    before = ledger.head()
    for late in (
        lambda: graph.start_step(ledger, "plan-001/b", "w"),
        lambda: complete(ledger, "plan-001/b"),
        lambda: reject(ledger, "plan-001/b", "no"),
        lambda: graph.fail_step(ledger, "plan-001/b", "no"),
        lambda: graph.open_gate(ledger, "plan-001/a", "legal", "A"),
        lambda: record(ledger, "plan-001/b", ArtifactKind.FILE, "x", "h"),
        lambda: graph.require_attempt(ledger, "plan-001/b", 1),
    ):
        with pytest.raises(Superseded) as refused:
            late()
        assert text(refused.value.hint) == "the plan goes on as `plan-001.r2`"
    assert ledger.head() == before
    assert graph.start_step(ledger, "plan-001.r2/b", "w") == 1


def test_what_a_step_leaves_are_nodes_that_lead_back_to_it(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a", files=["src/*.py"])])
    graph.start_step(ledger, "plan-001/a", "w")
    for kind in ArtifactKind:
        record(ledger, "plan-001/a", kind, "x", "h1")
    record(ledger, "plan-001/a", ArtifactKind.FILE, "x", "h2")
    found = ledger.query("SELECT kind, target, hash FROM edges WHERE source = 'plan-001/a' ORDER BY target")
    assert list(found) == [
        ("STEP_TOUCHES_FILE", "file:src/*.py", ""),
        ("STEP_TOUCHES_FILE", "file:x", "h2"),
        ("STEP_PRODUCES_PATCH", "patch:h1", "h1"),
        ("STEP_RECORDS", "report:h1", "h1"),
        ("STEP_RECORDS", "symbol:x", "h1"),
        ("STEP_RECORDS", "test:x", "h1"),
    ]


def _compete(place: str, name: str, barrier: Any, wins: Any) -> None:
    ledger = Ledger.open(Path(place))
    for number in range(20):
        barrier.wait(60)
        try:
            graph.start_step(ledger, f"plan-001/s{number}", name)
            wins.put(number)
        except RefusedByGate:
            pass
    ledger.close()


@pytest.mark.dear
def test_of_several_processes_that_start_a_step_at_once_exactly_one_does(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    graph.create_plan(ledger, "goal", steps=[step(f"s{number}") for number in range(20)])
    context = multiprocessing.get_context("spawn")
    barrier, wins = context.Barrier(3), context.Queue()
    workers = [
        context.Process(target=_compete, args=(str(tmp_path), f"w{n}", barrier, wins)) for n in range(3)
    ]
    for worker in workers:
        worker.start()
    found = sorted(wins.get(timeout=60) for _ in range(20))
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert wins.empty()
    assert found == list(range(20))
    assert ledger.head() == 21
    ledger.close()


# The table against a model


class Model:
    """A plan as plain sets, counted anew each time."""

    def __init__(self, steps: tuple[PlannedStep, ...], risks: tuple[PlannedRisk, ...]) -> None:
        self.steps = {item.step: item for item in steps}
        self.status = dict.fromkeys(self.steps, "pending")
        self.risks = {item.risk: set(item.blocks) for item in risks}
        self.opened: set[tuple[str, str]] = set()

    def unmet(self, name: str) -> int:
        item = self.steps[name]
        return (
            sum(self.status[needed] != "done" for needed in set(item.depends_on))
            + sum(name in blocks for blocks in self.risks.values())
            + sum((name, gate) not in self.opened for gate in item.gates)
        )

    def ready(self) -> list[str]:
        return [name for name in self.steps if self.status[name] == "pending" and not self.unmet(name)]

    def rescope(self, steps: tuple[PlannedStep, ...], risks: tuple[PlannedRisk, ...]) -> None:
        after = Model(steps, risks)
        for name, blocks in self.risks.items():
            left = blocks & set(after.steps)
            if left and name not in after.risks:
                after.risks[name] = left
        for name, item in after.steps.items():
            if self.steps.get(name) == item:
                after.status[name] = "done" if self.status[name] == "done" else "pending"
                after.opened |= {(name, gate) for gate in item.gates if (name, gate) in self.opened}
        self.__dict__ = after.__dict__


ACTS = ["start", "complete"] * 4 + ["open", "settle"] * 2 + ["fail", "reject", "raise", "rescope"]


def likely(model: Model, what: str) -> list[str]:
    """The steps with which an act would not be refused; any at all if there are none."""
    if what == "start":
        return model.ready() or [*NAMES]
    started = [name for name in model.steps if model.status[name] == "in-progress"]
    return (started if what in ("complete", "reject") else [*model.steps]) or [*NAMES]


def act(data: st.DataObject, ledger: Ledger, model: Model, number: int) -> None:
    """One command, on the ledger and, if it is not refused, on the model."""
    draw = data.draw
    what = draw(st.sampled_from(ACTS))
    name = draw(st.sampled_from(likely(model, what) if draw(st.integers(0, 9)) else NAMES))
    node = f"{graph.newest(ledger, 'plan-001')}/{name}"
    match what:
        case "start":
            graph.start_step(ledger, node, "w")
            assert name in model.ready() or (
                model.status[name] in ("failed", "in-progress") and not model.unmet(name)
            )
            model.status[name] = "in-progress"
        case "complete":
            complete(ledger, node, score(PASSED, 1))
            assert model.status[name] == "in-progress"
            model.status[name] = "done"
        case "fail":
            graph.fail_step(ledger, node, "no")
            model.status[name] = "failed"
        case "reject":
            reject(ledger, node, "no")
            model.status[name] = "pending"
        case "raise":
            blocks = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3))
            graph.raise_risk(ledger, "plan-001", f"more-{number}", "", "minor", blocks)
            model.risks[f"more-{number}"] = set(blocks)
        case "settle":
            known = draw(st.sampled_from([*model.risks, "unknown"]))
            graph.settle_risk(ledger, "plan-001", known, "measured", "A")
            del model.risks[known]
        case "open":
            gate = draw(st.sampled_from(GATES))
            graph.open_gate(ledger, node, gate, "A")
            model.opened.add((name, gate))
        case "rescope":
            steps = draw(planned(least=3))
            risks = draw(risky(steps))
            graph.rescope(ledger, "plan-001", "new", steps, risks)
            model.rescope(steps, risks)


WAITING = """(
  (SELECT count(*) FROM edges LEFT JOIN steps AS needed ON needed.node = edges.target
   WHERE edges.source = steps.node AND edges.kind = 'STEP_DEPENDS_ON'
   AND coalesce(needed.status, '') NOT IN ('done', 'skipped'))
  + (SELECT count(*) FROM edges JOIN risks ON risks.node = edges.target
     WHERE edges.source = steps.node AND edges.kind = 'STEP_BLOCKED_BY' AND risks.open)
  + (SELECT count(*) FROM gates WHERE gates.node = steps.node AND NOT gates.open)
)"""
"""What `waiting` means, counted anew: unmet dependencies, open risks, closed gates."""

MISCOUNTED = f"SELECT node FROM steps WHERE waiting IS NOT {WAITING}"  # noqa: S608

UNFINISHED = """
SELECT node FROM revisions WHERE unfinished <> (SELECT count(*) FROM steps
WHERE steps.plan = revisions.plan AND steps.revision = revisions.revision
AND status NOT IN ('done', 'skipped'))
"""


@many
@given(data=st.data())
def test_after_any_history_the_ready_steps_are_those_that_a_recount_finds(data: st.DataObject) -> None:
    with fresh() as ledger:
        steps = data.draw(planned(least=4))
        risks = data.draw(risky(steps))
        graph.create_plan(ledger, "goal", steps=steps, risks=risks)
        model = Model(steps, risks)
        for number in range(data.draw(st.integers(15, 30))):
            with suppress(InvalidGraph, NotFound, RefusedByGate):
                act(data, ledger, model, number)
            assert ready(ledger) == model.ready()
            newest = graph.newest(ledger, "plan-001")
            waiting = dict(ledger.query("SELECT step, waiting FROM steps WHERE node LIKE ? || '/%'", newest))
            assert waiting == {name: model.unmet(name) for name in model.steps}
            assert list(ledger.query(UNFINISHED)) == []
        before = tables(ledger)
        ledger.rebuild()
        assert tables(ledger) == before


def test_a_step_that_is_done_twice_or_begun_again_is_counted_once(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=CHAIN)
    started = StepStarted(plan="plan-001", step="a", attempt=1, base="")
    seen = []
    for event in (done("a"), done("a"), started, started, done("a")):
        ledger.append("plan-001", [event], expected=None)
        seen.append(graph.find(ledger, "plan-001/b").waiting)
    assert seen == [0, 0, 1, 1, 0]


# Any events at all

plans = st.sampled_from(["plan-001", "plan-002"])
step_names = st.sampled_from(["a", "b", "c", ""])
wild_steps = st.lists(
    st.builds(
        step,
        step_names,
        step_names,
        step_names,
        gates=st.lists(st.sampled_from(GATES)),
        weight=st.integers(-(2**63), 2**63 - 1),
        files=st.lists(st.sampled_from(["x.py", ""])),
    ),
    max_size=4,
).map(tuple)
wild_risks = st.lists(st.builds(risk, st.sampled_from(["r", "s"]), step_names, step_names), max_size=2).map(
    tuple
)
contents = st.one_of(
    st.just(""), st.builds(content_of, st.builds(step, step_names, gates=st.just(["legal"])))
)
WILD: dict[str, st.SearchStrategy[Any]] = {
    "plan": plans,
    "step": step_names,
    "steps": wild_steps,
    "risks": wild_risks,
    "risk": st.sampled_from(["r", "s"]),
    "blocks": st.lists(step_names).map(tuple),
    "kept": st.lists(step_names).map(tuple),
    "gate": st.sampled_from(GATES),
    "content": contents,
    "attempt": st.integers(0, 3),
    "attempts": st.integers(0, 3),
    "path": st.sampled_from(["", "p.md"]),
    "evidence": st.sampled_from([PASSED, FAILED]),
    "holder": st.sampled_from(["", "w"]),
}
wild: list[type[Event]] = [
    kind for kind in events.EVENTS.values() if "plan" in kind.__struct_fields__ and kind is not ItemOpened
]
wild += [StepStarted, StepCompleted, StepFailed, GateOpened, RiskRaised, RiskSettled, PlanStarted] * 4
wild += [events.StepSkipped, events.StepReopened, events.PhasesGenerated] * 4


@st.composite
def wild_event(draw: st.DrawFn) -> Event:
    kind = draw(st.sampled_from(wild))
    event = draw(any_event(kind))
    known = [name for name in kind.__struct_fields__ if name in WILD]
    if kind is events.PhasesGenerated:
        known.remove("kept")  # which are no names there
    given = {name: draw(WILD[name]) for name in known}
    return kind(**({name: getattr(event, name) for name in kind.__struct_fields__} | given))


@pytest.mark.dear
@many
@given(
    history=st.lists(st.tuples(st.sampled_from(["run-001", "plan-001"]), wild_event()), max_size=25),
    data=st.data(),
)
def test_no_history_stops_the_fold_or_makes_it_miscount(
    history: list[tuple[str, Event]], data: st.DataObject
) -> None:
    created = [
        ItemOpened(
            item=plan, title="", request="", path="", steps=data.draw(wild_steps), risks=data.draw(wild_risks)
        )
        for plan in ("plan-001", "plan-002")
    ]
    place = data.draw(st.integers(0, len(history)))
    with fresh() as ledger:
        for stream, event in [*history[:place], *(("plan-001", item) for item in created), *history[place:]]:
            ledger.append(stream, [event], expected=None)
            assert list(ledger.query(MISCOUNTED)) == []
            assert list(ledger.query(UNFINISHED)) == []
        before = tables(ledger)
        ledger.rebuild()
        assert tables(ledger) == before


# What it costs


def recorded(event: Event, seq: int) -> Recorded:
    return Recorded(seq=seq, stream="plan-001", version=seq, at="now", key="", event=event, hash="")


@pytest.mark.parametrize("dependents", [0, 1, 10])
def test_completing_a_step_touches_only_the_steps_that_depend_on_it(dependents: int) -> None:
    changed = []
    for others in (10, 1000):
        db = apsw.Connection(":memory:")
        projections.create(db)
        steps = [step("a"), *(step(f"d{n}", "a") for n in range(dependents))]
        steps += [step(f"o{n}") for n in range(others)]
        created = ItemOpened(item="plan-001", title="", request="", path="", steps=tuple(steps))
        projections.project(db, created, recorded(created, 1))
        before = db.total_changes()
        projections.project(db, done("a"), recorded(done("a"), 2))
        changed.append(db.total_changes() - before)
    assert changed[0] == changed[1]
    # the step, its revision, two lines of history, and those that wait for it
    assert changed[0] == 4 + dependents


def test_the_ready_steps_come_from_the_index_that_holds_nothing_else(ledger: Ledger) -> None:
    from planforge.kernel.graph.answers import READY

    graph.create_plan(ledger, "goal", steps=layered(300, 30, 3))
    select = f"EXPLAIN QUERY PLAN SELECT node, title FROM steps {READY}"  # noqa: S608
    found = ledger.query(select, "plan-001", 1, 20)
    (plan,) = [row[-1] for row in found]
    assert "USING INDEX steps_that_are_ready (plan=? AND revision=?)" in plan
    ((made,),) = ledger.query("SELECT sql FROM sqlite_schema WHERE name = 'steps_that_are_ready'")
    assert made.endswith("WHERE status = 'pending' AND waiting = 0")


def test_the_events_of_a_step_are_found_by_an_index(ledger: Ledger) -> None:
    statement = (
        "SELECT body FROM history JOIN events USING (seq) WHERE node = ? AND seq > ? ORDER BY history.seq"
    )
    found = [row[-1] for row in ledger.query(f"EXPLAIN QUERY PLAN {statement}", "plan-001", 0)]
    assert found == [
        "SEARCH history USING PRIMARY KEY (node=? AND seq>?)",
        "SEARCH events USING INTEGER PRIMARY KEY (rowid=?)",
    ]


def test_events_name_the_steps_of_their_own_plan_only(ledger: Ledger) -> None:
    for _ in range(2):
        graph.create_plan(ledger, "goal", steps=[step("a", gates=["legal"])], risks=[risk("r", "a")])
    opened = GateOpened(plan="plan-001", step="a", gate="legal", content="another", actor="A")
    ledger.append("plan-001", [opened], expected=None)
    assert graph.find(ledger, "plan-001/a").waiting == 2
    settled = RiskSettled(plan="plan-001", risk="r", reason="", actor="")
    failed = StepFailed(plan="plan-001", step="a", attempts=1, reason="")
    ledger.append("plan-001", [settled, failed], expected=None)
    assert (graph.find(ledger, "plan-001/a").waiting, graph.find(ledger, "plan-002/a").waiting) == (1, 2)
    assert graph.find(ledger, "plan-002/a").status == "pending"


def test_a_rescope_in_the_ledger_is_what_the_caller_was_told(ledger: Ledger) -> None:
    graph.create_plan(ledger, "goal", steps=[step("a")])
    graph.rescope(ledger, "plan-001", "why", [step("b")], [risk("r", "b")])
    assert ledger.last(1)[0].event == PlanRescoped(
        plan="plan-001", revision=2, reason="why", steps=(step("b"),), risks=(risk("r", "b"),), kept=()
    )
