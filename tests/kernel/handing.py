"""
A scripted agent that works through a step, and a program that hands over until it is killed.

The agent's conversation is the list of events that it made itself: it never looks into the
ledger. So one that went on knows all by heart, and one that takes over knows what it was told.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kernel.api_work import evidence, say, wait
from planforge.kernel import continuation, events
from planforge.kernel.api import (
    Action,
    AgentContext,
    Assignment,
    Evidence,
    Kernel,
    Outcome,
    Proposal,
    StepOutcome,
    TokenState,
    TouchedFile,
)
from planforge.kernel.events import ArtifactKind, Event
from planforge.kernel.objects import address

FULL = TokenState(used=100_123, threshold=100_000, estimated=False)

NEEDED = {"a.py": 1, "b.py": 3, "c.py": 2}
"""How good each file has to be for its test to pass; each mending makes it one better."""


def check(directory: Path, tree: str) -> Evidence:
    """What the files are worth."""
    failing = tuple(f"test_{path}" for path, good in NEEDED.items() if _level(directory / path) < good)
    return evidence(tree, Outcome.FAIL if failing else Outcome.PASS, failing)


def _level(path: Path) -> int:
    return len(path.read_text().split()) if path.exists() else 0


class Agent:
    """Does what is next, a turn at a time."""

    def __init__(self, kernel: Kernel, directory: Path, assignment: Assignment) -> None:
        self._kernel, self._directory = kernel, directory
        self.assignment = assignment
        self.history: list[Event] = [self._of(events.StepStarted, base="")]
        self.failing: tuple[str, ...] = ()
        self.unrecorded: dict[str, TouchedFile] = {}
        self.turns: list[tuple[Action, ...]] = []
        self.outcome: StepOutcome | None = None

    @classmethod
    def taking_over(
        cls, kernel: Kernel, directory: Path, assignment: Assignment, context: AgentContext
    ) -> Agent:
        """An agent that knows nothing but what a handoff tells."""
        agent = cls(kernel, directory, assignment)
        assert assignment.files == context.scope
        agent.failing = context.summary.failing
        agent.history = list(context.history())
        return agent

    @property
    def next_actions(self) -> tuple[Action, ...]:
        state = continuation.fold(self.history, self.failing)
        return continuation.next_actions(self.assignment.files, state)

    def turn(self) -> None:
        """Take the next action; mendings are made together, and lead to another proposal."""
        actions = self.next_actions
        self.turns.append(actions)
        match actions[0]:
            case Action(action="change", target=path):
                self._write(path)
            case Action(action="mend"):
                for action in actions:
                    if action.action == "mend":
                        self._write(action.target.removeprefix("test_"))
                self._propose()
            case Action(action="propose"):
                self._propose()
            case Action(action="verify"):
                self._verify()
            case Action(action="land"):
                self._land()

    def _write(self, path: str) -> None:
        file = self._directory / path
        file.write_text(f"{file.read_text() if file.exists() else ''}better ")
        self.unrecorded[path] = touched = TouchedFile(path=path, hash=address(file.read_bytes()))
        self.history.append(
            self._of(events.ArtifactRecorded, kind=ArtifactKind.FILE, name=path, hash=touched.hash)
        )

    def _proposal(self) -> Proposal:
        paths = [path for path in NEEDED if (self._directory / path).exists()]
        files = tuple(
            TouchedFile(path=path, hash=address((self._directory / path).read_bytes())) for path in paths
        )
        return Proposal(
            files=files, tree=address(repr(files).encode()), changed_lines=9, claim="I am sure", agent="me"
        )

    def _propose(self) -> None:
        proposal = self._proposal()
        self._kernel.step.propose(self.assignment, proposal)
        self.unrecorded.clear()
        paths = tuple(file.path for file in proposal.files)
        fields = {"commit": "", "tree": proposal.tree, "files": paths, "claim": "", "agent": ""}
        self.history.append(self._of(events.PatchProposed, **fields))

    def _verify(self) -> None:
        seen = check(self._directory, self._proposal().tree)
        passed = self._kernel.step.verify(self.assignment, seen)
        self.history.append(self._of(events.VerifyOk if passed else events.VerifyFailed, evidence=seen))

    def _land(self) -> None:
        proposal = self._proposal()
        self.outcome = self._kernel.step.accept(
            self.assignment, proposal, check(self._directory, proposal.tree)
        )

    def start_over(self) -> None:
        """Have the attempt rejected and make another one."""
        self._kernel.step.reject(self.assignment, "too many failures")
        self.history.append(self._of(events.AttemptRejected, reason="too many failures"))
        self.assignment = self._kernel.step.start(self.assignment.step, holder=self.assignment.holder)
        self.history.append(self._of(events.StepStarted, base=""))

    def _of(self, fact: type[Event], /, **fields: object) -> Event:
        own = {"plan": self.assignment.plan, "step": self.assignment.name, "attempt": self.assignment.attempt}
        return fact(**own, **fields)


def hand_over(directory: str, step: str, holder: str, successor: str, fence: str) -> None:
    """Hand a step over when told to, and say so once it is on record."""
    with Kernel.open(directory) as kernel:
        plan, _, name = step.rpartition("/")
        assignment = Assignment(
            step=step, plan=plan, name=name, attempt=1, holder=holder, files=("**",), fence=int(fence)
        )
        files = [TouchedFile(path=f"{number}.py", hash="#") for number in range(20)]
        say("ready")
        wait()
        say(kernel.handoff.emit(assignment, FULL, successor=successor, files=files))


if __name__ == "__main__":
    hand_over(*sys.argv[1:])
