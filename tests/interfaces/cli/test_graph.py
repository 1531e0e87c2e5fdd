"""The commands about the plan graph: `graph`, `why`, `score`, as a user types them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.histories import PASSED
from kernel.plans import complete, risk, step
from planforge.app.history.graphs import points
from planforge.kernel import graph
from planforge.kernel.graph.queries import QueryResult, Timeline
from planforge.kernel.ledger import Ledger
from planforge.kernel.scores import Measures, compute, measure
from programs import document, planforge
from repositories import NAME, repository


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a plan of two revisions, half done."""
    root = repository(tmp_path_factory.mktemp("graph") / "repository")
    ledger = Ledger.create(root / ".planforge")
    first = [step("read", files=["a.py"]), step("write", "read"), step("audit", "write", kind="audit")]
    graph.create_plan(ledger, "Count the words\nof a text", steps=first)
    graph.start_step(ledger, "plan-001/read", "w1")
    complete(ledger, "plan-001/read", compute(measure(PASSED, diff_size=200)))
    long = "A title that is much too long to fit into the eighty columns of a narrow terminal window"
    then = [
        first[0],
        step("write", "read", weight=3, title=long, files=["b.py"]),
        step("test-everything", "read", "write", gates=["legal"], title='Say "no" <now>'),
        step("audit", "test-everything", kind="audit"),
    ]
    graph.rescope(ledger, "plan-001", "the tests were missing", then, [risk("slow", "write")])
    ledger.close()
    return root


def said(root: Path, *words: str) -> str:
    process = planforge(*words, cwd=root)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_a_plan_is_drawn_in_waves_that_fit_the_terminal(workshop: Path) -> None:
    shown = said(workshop, "graph")
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("plan-001.r2 ")
    assert "supersedes plan-001: the tests were missing" in lines
    waves = re.findall(r"^(wave \d|[* ] \S \S+)", shown, flags=re.MULTILINE)
    assert waves == [
        *("wave 1", "  ✓ read"),
        *("wave 2", "* · write"),
        *("wave 3", "* · test-everything"),
        *("wave 4", "* · audit"),
    ]
    assert "← read, write" in shown
    assert "risk slow (medium): slow may happen" in lines
    assert lines[-1] == "critical path: write → test-everything → audit (weight 5 of 6)"


def test_a_plan_is_drawn_for_other_programs(workshop: Path) -> None:
    mermaid = said(workshop, "graph", "1", "--format", "mermaid")
    assert mermaid.startswith("graph TD\n")
    assert 's2["· test-everything: Say &quot;no&quot; &lt;now&gt;"]' in mermaid
    assert mermaid.count(" --> ") == 4
    dot = said(workshop, "graph", "plan-1", "--format", "dot")
    assert dot.startswith('digraph "plan-001.r2" {')
    assert 'label="· test-everything: Say \\"no\\" <now>"' in dot
    assert dot.count(" -> ") == 4
    assert '"write" -> "test-everything";' in dot
    assert json.loads(said(workshop, "graph", "--format", "json")) == document("graph", cwd=workshop)
    assert document("graph", "plan-001.r1", cwd=workshop)["waves"] == [
        ["plan-001/read"],
        ["plan-001/write"],
        ["plan-001/audit"],
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["1", "--next"], "plan-001.r2: none\n"),
        (["--critical"], "left (weight 5): write → test-everything → audit\n"),
        (["--up", "1/audit"], "plan-001.r2/read\nplan-001.r2/write\nplan-001.r2/test-everything\n"),
        (["--down", "plan-001/read"], "plan-001/write\nplan-001/audit\n"),
        (["--diff", "plan-001", "plan-001.r2"], "+ test-everything\n~ write\n    title: WRITE → A title"),
        (["--custody", "1/read"], "plan-001.r2/read  done, kept from plan-001/read"),
        (["plan-001/read", "--timeline"], "StepCompleted  done in 1 attempt"),
        (["--without-evidence"], "plan-001.r2/read"),
        (["--query", '{"query": "neighbours", "node": "file:a.py"}'], "STEP_TOUCHES_FILE  plan-001.r2/read"),
        (["--query", '{"query": "node", "id": "plan-001!x"}', "--json"], ""),
    ],
)
def test_every_question_has_an_option(workshop: Path, words: list[str], expected: str) -> None:
    if not expected:
        assert planforge("graph", *words, cwd=workshop).returncode == 3
        return
    assert expected in said(workshop, "graph", *words)
    answer = said(workshop, "graph", *words, "--json")
    msgspec.json.decode(answer, type=QueryResult)


def test_a_query_as_json_is_answered_as_json(workshop: Path) -> None:
    query = msgspec.json.encode(Timeline(node="plan-001", limit=2)).decode()
    found = document("graph", "--query", query, cwd=workshop)
    assert [event["kind"] for event in found["events"]] == ["ItemOpened", "StepStarted"]
    assert found["next"] == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["graph", "9"], 3, "there is no plan `plan-009` in the graph"),
        (["graph", "--next", "--critical"], 2, "`--next` and `--critical` ask for different things"),
        (["graph", "--query", "{"], 2, "that is not a query"),
        (["why", "1/nothing"], 3, "`plan-001` has no step `nothing`"),
        (["why", "1/write", "--settle", "slow"], 2, "say why risk `slow` is settled"),
        (["why", "1/write", "--open", "none"], 3, "`plan-001.r2/write` has no gate `none`"),
        (["score", "9/a"], 3, "there is no plan `plan-009` in the graph"),
    ],
)
def test_what_cannot_be_answered_is_one_line_and_an_exit_code(
    workshop: Path, words: list[str], code: int, message: str
) -> None:
    process = planforge(*words, cwd=workshop)
    assert process.returncode == code
    assert process.stderr.splitlines()[0].startswith(f"error: {message}")
    assert process.stdout == ""


def test_without_a_plan_there_is_nothing_to_draw(tmp_path: Path) -> None:
    root = repository(tmp_path / "repository")
    Ledger.create(root / ".planforge").close()
    process = planforge("graph", cwd=root)
    assert (process.returncode, process.stderr.splitlines()[0]) == (3, "error: there is no plan yet")


def test_why_names_each_blocker_with_the_command_that_helps_and_those_commands_do(tmp_path: Path) -> None:
    root = repository(tmp_path / "repository")
    ledger = Ledger.create(root / ".planforge")
    steps = [step("a"), step("b", "a", gates=["legal"])]
    graph.create_plan(ledger, "goal", steps=steps, risks=[risk("slow", "b")])
    assert said(root, "why", "1/b").splitlines() == [
        "plan-001/b  dependency plan-001/a: is pending",
        "    try: planforge why plan-001/a",
        "plan-001/b  risk slow: medium: slow may happen",
        "    try: planforge why plan-001/b --settle slow --reason TEXT",
        "plan-001/b  gate legal: nobody has opened it",
        "    try: planforge why plan-001/b --open legal",
    ]
    assert said(root, "why", "plan-001/a") == "plan-001/a is ready: nothing holds it back\n"
    said(root, "why", "plan-001/b", "--settle", "slow", "--reason", "measured")
    left = document("why", "plan-001/b", "--open", "legal", cwd=root)
    assert [item["kind"] for item in left["blockers"]] == ["dependency"]
    actors = {getattr(item.event, "actor", "") for item in ledger.last(2)}
    assert all(actor.startswith(NAME) for actor in actors)
    graph.start_step(ledger, "plan-001/a", "w")
    assert said(root, "why", "1/a").splitlines()[0] == "plan-001/a  status: w is at attempt 1"
    graph.rescope(ledger, "plan-001", "new", steps)
    assert "try: planforge why plan-001.r2/a" in said(root, "why", "plan-001/a")
    ledger.close()


def test_a_score_shows_every_measure_and_what_it_added(workshop: Path) -> None:
    shown = said(workshop, "score", "1/read")
    assert shown.startswith("plan-001.r2/read  done  score 775 of 1000\n")
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines()[1:]}
    assert rows["tests_passed"] == ["7", "700", "of", "700", "points"]
    assert rows["diff_size"] == ["200", "75", "of", "150", "points"]
    assert rows["warnings_delta"] == ["unknown", "0", "of", "50", "points"]
    assert rows["compile_ok"] == ["yes"]
    plan = document("score", "1", cwd=workshop)["steps"]
    assert [(item["step"], item["reason"]) for item in plan] == [
        ("plan-001.r2/read", ""),
        ("plan-001.r2/write", "the step is pending"),
        ("plan-001.r2/test-everything", "the step is pending"),
        ("plan-001.r2/audit", "the step is pending"),
    ]


amounts = st.none() | st.integers(-5, 500)


@given(
    measures=st.builds(
        Measures,
        compile_ok=st.sampled_from([True, True, None, False]),
        tests_passed=amounts,
        tests_total=amounts,
        warnings_delta=amounts,
        lint_delta=amounts,
        diff_size=amounts,
        rollback_count=amounts,
        regression_hits=st.sampled_from([0, 0, None, 1]),
    )
)
def test_the_points_that_are_shown_add_up_to_the_score(measures: Measures) -> None:
    scored = compute(measures)
    parts = points(scored)
    assert sum(part.earned for part in parts) == (scored.value or 0)
    assert all(0 <= part.earned <= part.of for part in parts)


@pytest.mark.parametrize("command", ["graph", "why", "score"])
def test_help_has_examples(tmp_path: Path, command: str) -> None:
    text = planforge(command, "--help", cwd=tmp_path).stdout
    assert "Examples:\n" in text
    assert f"  planforge {command} 1" in text
    assert "--json" in text
