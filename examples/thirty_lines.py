"""A plan of two steps, carried out and scored: the whole kernel in one short script."""

import sys
from hashlib import sha256
from pathlib import Path

from planforge.kernel.api import Assignment, Evidence, Kernel, Proposal, TouchedFile, planned
from planforge.workspace.checks.observation import observe


def work(assignment: Assignment) -> Proposal:
    """Change the step's only file; this is where an agent, or you, would come in."""
    path = Path(assignment.files[0])
    path.write_text(f"GREETING = 'Hello from {assignment.name}'\n")
    tree = sha256(path.read_bytes()).hexdigest()
    return Proposal(files=(TouchedFile(path=str(path), hash=tree),), tree=tree, changed_lines=1)


def verify(assignment: Assignment, proposal: Proposal) -> Evidence:
    """Run what the step left, in a process of its own; nobody's word counts."""
    program = f"import runpy; assert runpy.run_path({assignment.files[0]!r})['GREETING']"
    return observe(
        [sys.executable, "-c", program], tree=proposal.tree, tests=1, objects=kernel.ledger.objects
    )


with Kernel.open(".") as kernel:
    first = planned("first", files=["one.py"])
    second = planned("second", files=["two.py"], depends_on=["first"])
    plan = kernel.plan.create("Say hello twice", steps=[first, second])
    while steps := kernel.plan.next_steps(plan):
        outcome = kernel.step.execute(steps[0], work, verify)
        if not outcome.accepted or not outcome.score:
            sys.exit(f"{outcome.step} failed: {outcome.reason}")
        print(f"{outcome.step} done, score {outcome.score.value}")
