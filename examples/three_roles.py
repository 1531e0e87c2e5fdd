"""
Planner, worker and auditor: three processes that coordinate by events and nothing else.

    python three_roles.py            starts all three and waits for them
    python three_roles.py auditor    is one of them

The planner makes a plan and, when a step has failed twice, one with a smaller step.
The worker starts whatever is ready and proposes changes; it claims every time that
all is well. The auditor checks every proposal itself. Nobody calls anybody, and
nobody remembers anything: events say when to look, and the ledger says how things
stand. So any of them can be killed and started again, and nothing is done twice.
"""

import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

from planforge.errors import PlanforgeError
from planforge.kernel.api import Assignment, Kernel, Outcome, Proposal, Recorded, TouchedFile, planned
from planforge.kernel.events import PatchProposed, VerifyFailed
from planforge.workspace.checks.observation import observe

TRIES = 2
"""How often the worker tries a step before it is the planner's turn."""

SECONDS = 60
"""How long a role waits for an event before it takes it that nobody else is there."""


def planner(kernel: Kernel) -> None:
    """Make the plan; give it a smaller step for one that failed twice; end when every step is done."""
    steps = [planned(name, files=[f"{name}.py"]) for name in ("add", "multiply")]
    plan = kernel.plan.newest() or kernel.plan.create("Add and multiply", steps=steps)
    failures = Counter[str]()
    with kernel.subscribe(plan=plan, kinds=["VerifyFailed", "StepCompleted"]) as news:
        while recorded := news.next(SECONDS):
            if isinstance(recorded.event, VerifyFailed):
                failures[recorded.event.step] += 1
            for step in kernel.plan.view(plan).steps:
                if failures[step.step] >= TRIES and step.status != "done":
                    smaller = planned(f"{step.step}-small", files=step.files)
                    kept = [planned for planned in steps if planned.step != step.step]
                    kernel.plan.rescope(plan, f"`{step.step}` failed {TRIES} times", [*kept, smaller])
            if kernel.plan.is_done(plan):
                return
    sys.exit("planner: nobody does anything")


def worker(kernel: Kernel) -> None:
    """Start what is ready, propose, and accept or reject as the auditor's evidence says."""
    with kernel.subscribe(kinds=["ItemOpened", "PlanRescoped", "VerifyOk", "VerifyFailed"]) as news:
        while news.next(SECONDS):
            plan = kernel.plan.newest()
            for step in kernel.plan.view(plan).steps:
                try:
                    if step.holder == "worker":
                        go_on(kernel, kernel.step.under_way(plan, step.step))
                    if step.node in kernel.plan.next_steps(plan) and step.attempts < TRIES:
                        go_on(kernel, kernel.step.start(step.node, holder="worker"))
                except PlanforgeError as error:  # the plan was rescoped at this moment
                    print("worker:", error.message)
            if kernel.plan.is_done(plan):
                return
    sys.exit("worker: nobody does anything")


def go_on(kernel: Kernel, assignment: Assignment) -> None:
    """Do what is next at an attempt, whoever began it."""
    if kernel.step.proposed(assignment) is None:
        write(assignment)
        kernel.step.propose(assignment, proposal(assignment))
    for evidence in kernel.step.evidence(assignment)[-1:]:
        if evidence.outcome is Outcome.PASS:
            kernel.step.accept(assignment, proposal(assignment), evidence)
        else:
            kernel.step.reject(assignment, evidence.reason)


def write(assignment: Assignment) -> None:
    """What an agent would do: `multiply` is wrong every time, the smaller step gets it right."""
    operator = "*" if assignment.name.endswith("-small") else "+"
    Path(assignment.files[0]).write_text(f"def calculate(a, b):\n    return a {operator} b\n")


def proposal(assignment: Assignment) -> Proposal:
    """The change as it is on disk."""
    path = assignment.files[0]
    files = (TouchedFile(path=path, hash=hash_of(path)),)
    return Proposal(files=files, tree=hash_of(path), changed_lines=2, claim="all tests pass", agent="worker")


def hash_of(path: str) -> str:
    """The hash of a file, which is all there is to the tree of these steps."""
    return sha256(Path(path).read_bytes()).hexdigest()


def auditor(kernel: Kernel) -> None:
    """Check every proposal, whatever it claims."""
    with kernel.subscribe(kinds=["PatchProposed", "StepCompleted"], name="auditor") as news:
        while recorded := news.next(SECONDS):
            seen = {news.name: news.passed(recorded)}
            if isinstance(recorded.event, PatchProposed):
                audit(kernel, recorded, recorded.event, seen)
            elif kernel.plan.is_done(recorded.stream):
                return
    sys.exit("auditor: nobody does anything")


def audit(kernel: Kernel, recorded: Recorded, proposed: PatchProposed, seen: dict[str, int]) -> None:
    """Record what a check says and that this event was dealt with: both, or neither."""
    wanted = 5 if proposed.step == "add" else 6
    program = f"import runpy; assert runpy.run_path({proposed.files[0]!r})['calculate'](2, 3) == {wanted}"
    command = [sys.executable, "-c", program]
    evidence = observe(command, tree=hash_of(proposed.files[0]), tests=1, objects=kernel.ledger.objects)
    try:
        assignment = kernel.step.under_way(recorded.stream, proposed.step)
        passed = kernel.step.verify(assignment, evidence, acknowledge=seen)
        print("auditor:", proposed.step, "passes" if passed else f"fails, although: {proposed.claim}")
    except PlanforgeError as error:  # the plan was rescoped meanwhile
        print("auditor:", error.message)
        kernel.ledger.append_all([], acknowledge=seen)


ROLES = {"planner": planner, "worker": worker, "auditor": auditor}

if __name__ == "__main__":
    if sys.argv[1:]:
        with Kernel.open(".") as opened:
            ROLES[sys.argv[1]](opened)
    else:
        started = [subprocess.Popen([sys.executable, __file__, role]) for role in ROLES]
        sys.exit(max(process.wait() for process in started))
