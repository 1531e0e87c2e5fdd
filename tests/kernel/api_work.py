"""
Workers and checkers for tests of the API, here and, as `python api_work.py <program> ...`, in processes.

A worker's change is a tree named for the step and the attempt; a checker looks at nothing but that name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from planforge.errors import PlanforgeError
from planforge.kernel.api import Assignment, Counts, Evidence, Kernel, Outcome, Proposal, TouchedFile, planned

if TYPE_CHECKING:
    from kernel.processes import Child


def change(*paths: str, tree: str = "7ree", lines: int = 3, diff: bytes = b"") -> Proposal:
    files = tuple(TouchedFile(path=path, hash=f"hash of {path}") for path in paths)
    return Proposal(files=files, tree=tree, changed_lines=lines, claim="all tests pass", diff=diff)


def evidence(tree: str = "7ree", outcome: Outcome = Outcome.PASS, failing: tuple[str, ...] = ()) -> Evidence:
    passed = 4 if outcome is Outcome.PASS else 4 - max(len(failing), 1)
    return Evidence(
        check="command",
        outcome=outcome,
        reason=f"{passed} of 4 tests passed",
        command=("check",),
        exit_code=0 if outcome is Outcome.PASS else 1,
        counts=Counts(total=4, passed=passed, failed=4 - passed, skipped=0),
        failing=failing,
        commit="",
        tree=tree,
        output="",
        seconds=0.5,
    )


def work(assignment: Assignment) -> Proposal:
    return change(*assignment.files, tree=f"{assignment.name}-{assignment.attempt}")


def verify(assignment: Assignment, proposal: Proposal) -> Evidence:
    return evidence(proposal.tree)


def refute(assignment: Assignment, proposal: Proposal) -> Evidence:
    return evidence(proposal.tree, Outcome.FAIL, ("test_a",))


def say(words: object) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def wait() -> None:
    sys.stdin.readline()


def open_at_once(directory: str) -> None:
    """Open the kernel of a directory at the same time as others do, and make a plan."""
    say("ready")
    wait()
    with Kernel.open(directory) as kernel:
        say(kernel.plan.create("one each"))


def execute_at_once(directory: str, step: str, holder: str) -> None:
    """Execute a step at the same time as others do."""
    with Kernel.open(directory) as kernel:
        say("ready")
        wait()
        try:
            outcome = kernel.step.execute(step, work, verify, holder=holder)
            say(f"accepted attempt {outcome.attempt}")
        except PlanforgeError as error:
            say(type(error).__name__)


def hang_in_the_middle(directory: str, step: str) -> None:
    """Start a step under a name, propose, and wait to be killed."""
    with Kernel.open(directory) as kernel:
        assignment = kernel.step.start(step, holder="w1")
        kernel.step.propose(assignment, work(assignment))
        say("proposed")
        wait()


def make_a_plan(directory: str) -> None:
    """Make a plan and carry it out."""
    with Kernel.open(directory) as kernel:
        plan = kernel.plan.create("no git here", steps=[planned("a", files=["a.py"])])
        for step in kernel.plan.next_steps(plan):
            say(kernel.step.execute(step, work, verify).accepted)


PROGRAMS: dict[str, Callable[..., None]] = {
    program.__name__: program for program in (open_at_once, execute_at_once, hang_in_the_middle, make_a_plan)
}


def running(
    program: str, *arguments: object, env: dict[str, str] | None = None
) -> AbstractContextManager[Child]:
    """One of these programs as a process, which does not outlive the test."""
    from kernel.processes import started

    return started(Path(__file__), program, *arguments, env=env)


if __name__ == "__main__":
    Path(sys.argv[2]).resolve(strict=True)
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
