"""A flow declares itself in one place, and nothing else asks which flow a run is of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import planforge
from planforge.actions import TEXT, Action, Advice
from planforge.app import compose, driver, runs
from planforge.app.chat import endings
from planforge.app.history import replays
from planforge.app.overview import report
from planforge.app.project import Project
from planforge.errors import Diverged, RefusedByGate
from planforge.kernel.effects import ReadPlan
from planforge.workflows.flows import DECLARED, FLOWS, Declaration, Outcome
from rehearsals import Rehearsal, copied
from texts import forged

SOURCE = Path(planforge.__file__).parent


class CountRequest(msgspec.Struct, frozen=True):
    plan: str
    enough: int = 1


class CountResult(msgspec.Struct, frozen=True):
    words: int
    enough: bool


async def count(request: CountRequest) -> CountResult:
    """Count the words of a plan."""
    text = (await ReadPlan(plan=request.plan)).text
    words = len(text.split())
    return CountResult(words, enough=words >= request.enough)


async def other_count(request: CountRequest) -> CountResult:
    """The same in another version, which reads another plan first."""
    await ReadPlan(plan="plan-002")
    return await count(request)


COUNT = Declaration(
    name="count",
    flow=count,
    request=CountRequest,
    outcome=lambda result: Outcome(result.enough, f"it has {result.words} words", 0 if result.enough else 5),
    again=lambda plan: Advice("{} is enough", Action("plan show", plan)),
    end=lambda run, plan: Action("plan cancel", plan, run=run),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return forged(tmp_path_factory.mktemp("made"))


@pytest.fixture
def project(made: Rehearsal, tmp_path: Path) -> Iterator[Project]:
    found = Project(copied(made, tmp_path).root)
    yield found
    found.ledger.close()


def begun(project: Project, enough: int = 1) -> str:
    return runs.begin(project, "count", "plan-001", lambda _: CountRequest("plan-001", enough), alone=True)


def test_a_flow_is_added_by_its_declaration_alone(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins, runs, is told, says what comes next and replays; one table has one entry more."""
    before = len(FLOWS), len(compose.GROUPS), len(endings.TOLD)
    monkeypatch.setitem(FLOWS, "count", COUNT)

    run = begun(project)
    with pytest.raises(RefusedByGate) as refused:
        runs.require_free(project, "plan-001")
    end = Action("plan cancel", "plan-001", run=run)
    hint = Advice("go on with it: {}, or end it: {}", Action("resume", run), end)
    assert refused.value.hint == hint
    ended = driver.drive(project, run, lambda _: None)
    assert (ended.succeeded, ended.exit_code) == (True, 0)
    assert ended.reason.startswith("it has ")
    story = report.of_run(project, run)
    assert report.following(project, story)[0] == Action("plan show", "plan-001")
    assert replays.replayed(project.ledger, run).difference is None

    work = driver.drive_beside(project, begun(project, enough=100_000))
    assert work.wait(60)
    assert endings.reply(project, work).exit_code == 5

    assert (len(FLOWS) - 1, len(compose.GROUPS), len(endings.TOLD)) == before


def test_a_run_that_another_version_began_says_how_its_work_goes_on(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FLOWS, "count", COUNT)
    run = begun(project)

    class Killed(Exception):
        pass

    def kill(recorded: object) -> None:
        if getattr(recorded, "kind", "") == "EffectCompleted":
            raise Killed

    with pytest.raises(Killed):
        driver.drive(project, run, kill)
    monkeypatch.setitem(FLOWS, "count", msgspec.structs.replace(COUNT, flow=other_count))
    with pytest.raises(Diverged) as diverged:
        driver.drive(project, run, lambda _: None)
    end = Action("cancel", run, reason=TEXT)
    assert diverged.value.hint == Advice(
        "end it with {}, then {} is enough", end, Action("plan show", "plan-001")
    )


def test_what_a_flow_names_is_there() -> None:
    assert [each.name for each in DECLARED] == list(FLOWS)
    for each in DECLARED:
        assert set(each.needs) <= set(compose.GROUPS), each.name
        assert each.told in endings.TOLD, each.name


# Nobody asks which flow it is


def places(source: str) -> list[int]:
    """The lines of a module that compare a flow, or take a flow's result apart."""
    tree = ast.parse(source)
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Compare) and any(map(_is_flow, (node.left, *node.comparators))))
        or (isinstance(node, ast.Match) and _is_flow(node.subject))
        or (isinstance(node, ast.ImportFrom) and _takes_results(node))
    ]


def _is_flow(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return any(map(_is_flow, node.elts))
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.lower() == "flow"


def _takes_results(node: ast.ImportFrom) -> bool:
    from_flow = (node.module or "").startswith("planforge.workflows.")
    return from_flow and any(name.name in RESULTS for name in node.names)


RESULTS = {
    "ChatResult",
    "FixResult",
    "LandResult",
    "PlanRunResult",
}


@pytest.mark.parametrize("room", ["app", "interfaces"])
def test_nothing_outside_of_the_declarations_asks_which_flow_a_run_is_of(room: str) -> None:
    modules = sorted((SOURCE / room).rglob("*.py"))
    assert modules
    found = [f"{each.relative_to(SOURCE)}:{line}" for each in modules for line in places(each.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "if row.flow == 'forge': pass",
        "if flow not in (LAND, UPDATE): pass",
        "found = [row for row in rows if row.flow != FLOW]",
        "if (row.flow, row.subject) == (flow, branch): pass",
        "match started.flow:\n    case 'chat': pass",
        "from planforge.workflows.fix import FixResult",
    ],
)
def test_such_a_question_is_found_however_it_is_put(source: str) -> None:
    assert places(source)
