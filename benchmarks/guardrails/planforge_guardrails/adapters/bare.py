"""
No orchestrator at all: the agent works in the checkout, on a branch of its own, and the branch is merged.

What people do with a shell script. Each agent of the case is asked once, with everything allowed and
whatever it says; then everything is committed and merged.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from planforge_guardrails.adapters.planforge import VERDICTS
from planforge_guardrails.oracle import Owned
from planforge_guardrails.person import Person
from planforge_guardrails.shapes import Case, Part, Place, Role, Task, Twin

AGENT = "planforge_guardrails.adapters.bare_agent"


class Bare:
    """An agent, then `git merge`."""

    name = "bare"
    one_way = True
    owned = Owned(refs=("refs/heads/agent-",))

    def describe(self) -> str:
        """There is nothing to describe."""
        return "no orchestrator: the agent writes, then git merge"

    def when(self, case: Case, part: Part) -> list[list[str]]:
        """The prompts are our own."""
        named = [f"Task: {part.task}\n"] if part.task and len(case.tasks) > 1 else []
        attempt = [f"Attempt: {part.attempt}\n"] if part.attempt is not None else []
        return [[f"Role: {part.role.value}\n", *attempt, *named]]

    def words(self, case: Case) -> Mapping[str, str]:
        """Nobody reads them."""
        del case
        return VERDICTS

    def prepare(self, case: Case, place: Place) -> None:
        """Nothing to set up."""
        del case
        place.journal.touch()

    def run(self, case: Case, twin: Twin, place: Place, person: Person) -> None:
        """Have each task done on a branch of its own, then merge them all."""
        kills = case.killed and twin is Twin.BAD
        person.environment |= {
            "PLANFORGE_REHEARSAL_SCRIPT": str(place.script),
            "PLANFORGE_REHEARSAL_JOURNAL": str(place.journal),
        }
        for task in case.tasks:
            self._git(person, place, "checkout", "--quiet", "-b", f"agent-{task.name}", "main")
            if kills:  # as a script that is started again does not know how far it was
                self._kill(person, place, task)
            for role in self._roles(case):
                self._ask(person, place, role, task)
            self._git(person, place, "add", "--all")
            self._git(person, place, "commit", "--quiet", "--message", task.title)
        self._git(person, place, "checkout", "--quiet", "main")
        for task in case.tasks:
            self._git(person, place, "merge", "--quiet", "--no-edit", f"agent-{task.name}")

    def _roles(self, case: Case) -> list[Role]:
        """The developer, and whoever plans or reviews where the case is about them."""
        about = {part.role for part in case.bad}
        return [role for role in Role if role is Role.DEVELOPER or role in about]

    def _kill(self, person: Person, place: Place, task: Task) -> None:
        """Kill the agent's client while it is at work; the agent notices that it is gone."""
        prompt = place.backstage / "prompt"
        prompt.write_text(self._prompt(Role.DEVELOPER, task))
        words = ["sh", "-c", f'exec "{sys.executable}" -m {AGENT} < "{prompt}"']
        person.kill(words, cwd=place.root, once=lambda: bool(place.journal.read_bytes()))

    def _prompt(self, role: Role, task: Task) -> str:
        return f"Role: {role.value}\nAttempt: 1\nTask: {task.name}\n\n{task.request}\n"

    def _ask(self, person: Person, place: Place, role: Role, task: Task) -> None:
        words = [sys.executable, "-m", AGENT]
        person.attempt(words, cwd=place.root, stdin=self._prompt(role, task))

    def _git(self, person: Person, place: Place, *words: str) -> None:
        person.attempt(["git", *words], cwd=place.root)
