"""The examples run, as programs of their own in an empty directory, and leave what they say."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import pytest

from planforge.kernel.api import Kernel
from planforge.kernel.events import Event, PatchProposed, StepCompleted, VerifyFailed, VerifyOk
from planforge.kernel.graph.queries import WithoutEvidence
from programs import environment

EXAMPLES = Path(__file__).parents[1] / "examples"
PATIENCE = 60


def run(example: str, place: Path) -> list[str]:
    """Run an example to a good end; the lines it prints."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / example],
        cwd=place,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def left_in(place: Path) -> list[Event]:
    """The events that are left, of which none may be damaged and no step may be done without evidence."""
    with Kernel.open(place, create=False) as kernel:
        assert list(kernel.ledger.faults()) == []
        assert kernel.plan.is_done("plan-001")
        assert kernel.lease.held() == []
        found = kernel.graph.query(WithoutEvidence(plan="plan-001"))
        assert getattr(found, "steps", None) == ()
        return [recorded.event for recorded in kernel.ledger.since()]


def kinds(events: list[Event]) -> Counter[str]:
    return Counter(type(event).__name__ for event in events)


def lines_of_code(path: Path) -> int:
    """Lines that are neither empty nor a comment nor a docstring."""
    text = path.read_text()
    documented = set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            documented.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(
        [
            line
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.strip().startswith("#") and number not in documented
        ]
    )


def test_the_short_script_is_short_and_does_two_steps(tmp_path: Path) -> None:
    assert lines_of_code(EXAMPLES / "thirty_lines.py") <= 30
    assert run("thirty_lines.py", tmp_path) == [
        "plan-001/first done, score 899",
        "plan-001/second done, score 899",
    ]
    assert (tmp_path / "two.py").read_text() == "GREETING = 'Hello from second'\n"
    assert kinds(left_in(tmp_path))["StepCompleted"] == 2


@pytest.mark.dear
def test_a_langgraph_graph_can_use_the_kernel_and_does_nothing_twice(tmp_path: Path) -> None:
    assert run("langgraph_nodes.py", tmp_path) == [
        "plan-001/parse accepted",
        "plan-001/render accepted",
        "plan-001/join accepted",
    ]
    before = left_in(tmp_path)
    assert run("langgraph_nodes.py", tmp_path) == []
    assert left_in(tmp_path) == before


@pytest.mark.dear
def test_a_langgraph_graph_that_was_killed_goes_on(tmp_path: Path) -> None:
    with started("langgraph_nodes.py", tmp_path) as process:
        wait_for(tmp_path, "StepStarted", 2)
        process.kill()
    with Kernel.open(tmp_path) as kernel:  # the end may have come between two steps; then here is one begun
        steps = kernel.plan.view("plan-001").steps
        if not any(step.holder for step in steps):
            kernel.step.start(kernel.plan.next_steps("plan-001")[0], holder="langgraph")
    assert run("langgraph_nodes.py", tmp_path)[-1:] == ["plan-001/join accepted"]
    events = left_in(tmp_path)
    done = [event.step for event in events if isinstance(event, StepCompleted)]
    assert sorted(done) == ["join", "parse", "render"]


def test_a_pipeline_is_tried_on_a_scripted_agent_and_a_scripted_model(tmp_path: Path) -> None:
    assert run("scripted_agents.py", tmp_path) == [
        "agent: It works.",
        "it does not print 42",
        "agent: Now it works.",
        "the model is busy for 1 s",
        "verdict: pass",
        "the model was asked 2 times, last for: 'Review:\\nprint(21 * 2)'",
    ]


@contextmanager
def started(example: str, place: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """An example as a process, with all that it starts, which does not outlive the test."""
    argv = [sys.executable, str(EXAMPLES / example), *arguments]
    with subprocess.Popen(
        argv, cwd=place, env=environment(), stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        watchdog = Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def wait_for(place: Path, kind: str, count: int) -> None:
    """Return once there are so many events of a kind."""
    with Kernel.open(place) as kernel, kernel.subscribe(kinds=[kind]) as news:
        for _ in range(count):
            assert news.next(PATIENCE) is not None


def check_roles(place: Path) -> None:
    """What must be left whoever was killed: no plan, change, check or step twice."""
    events = left_in(place)
    found = kinds(events)
    assert (found["ItemOpened"], found["PlanRescoped"]) == (1, 1)
    done = [(event.step, event.attempts) for event in events if isinstance(event, StepCompleted)]
    assert done == [("add", 1), ("multiply-small", 1)]
    attempts = [("add", 1), ("multiply", 1), ("multiply", 2), ("multiply-small", 1)]
    proposed = [(event.step, event.attempt) for event in events if isinstance(event, PatchProposed)]
    checked = [(event.step, event.attempt) for event in events if isinstance(event, VerifyOk | VerifyFailed)]
    assert sorted(proposed) == attempts
    assert sorted(checked) == attempts
    assert found["StepStarted"] == len(attempts)
    assert "a * b" in (place / "multiply.py").read_text()


@pytest.mark.dear
def test_three_roles_coordinate_by_events_alone(tmp_path: Path) -> None:
    lines = run("three_roles.py", tmp_path)
    assert [line for line in lines if line.startswith("auditor:")] == [
        "auditor: add passes",
        "auditor: multiply fails, although: all tests pass",
        "auditor: multiply fails, although: all tests pass",
        "auditor: multiply-small passes",
    ]
    check_roles(tmp_path)


@pytest.mark.dear
@pytest.mark.parametrize(
    ("role", "kind", "count"),
    [
        ("planner", "ItemOpened", 1),
        ("planner", "VerifyFailed", 1),
        ("planner", "VerifyFailed", 2),
        ("worker", "StepStarted", 1),
        ("worker", "PatchProposed", 2),
        ("worker", "VerifyFailed", 1),
        ("worker", "StepStarted", 4),
        ("auditor", "PatchProposed", 1),
        ("auditor", "VerifyOk", 1),
        ("auditor", "PatchProposed", 3),
    ],
)
def test_a_role_that_is_killed_in_the_middle_and_started_again_does_nothing_twice(
    tmp_path: Path, role: str, kind: str, count: int
) -> None:
    others = [name for name in ("planner", "worker", "auditor") if name != role]
    with (
        started("three_roles.py", tmp_path, others[0]) as one,
        started("three_roles.py", tmp_path, others[1]) as other,
    ):
        with started("three_roles.py", tmp_path, role) as victim:
            wait_for(tmp_path, kind, count)
            victim.kill()
        with started("three_roles.py", tmp_path, role) as heir:
            assert [process.wait(PATIENCE) for process in (heir, one, other)] == [0, 0, 0]
    check_roles(tmp_path)


@pytest.mark.dear
def test_an_auditor_that_is_killed_has_said_of_every_check_that_it_was_made(tmp_path: Path) -> None:
    with started("three_roles.py", tmp_path, "planner") as planner:
        with started("three_roles.py", tmp_path, "worker") as worker:
            wait_for(tmp_path, "PatchProposed", 2)
            worker.kill()
        with started("three_roles.py", tmp_path, "auditor") as auditor:
            wait_for(tmp_path, "VerifyFailed", 1)
            auditor.kill()
        with Kernel.open(tmp_path) as kernel:
            recorded = list(kernel.ledger.since())
            proposed = [item.seq for item in recorded if isinstance(item.event, PatchProposed)]
            assert kernel.ledger.cursor("auditor") >= proposed[1]
        with (
            started("three_roles.py", tmp_path, "worker") as worker,
            started("three_roles.py", tmp_path, "auditor") as auditor,
        ):
            assert [process.wait(PATIENCE) for process in (worker, auditor, planner)] == [0, 0, 0]
    check_roles(tmp_path)
