"""Planforge itself, by its command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from planforge.errors import PlanforgeError
from planforge.testing.guardrails import places
from planforge.testing.guardrails.calling import Person
from planforge.testing.guardrails.oracle import Owned
from planforge.testing.guardrails.sample import plan_text
from planforge.testing.guardrails.shapes import Case, Part, Place, Role, Workflow

COMMAND = (sys.executable, "-m", "planforge")

PROFILE = """\
[agents.profiles.rehearsal]
writes = ["{backstage}"]

[agents.profiles.rehearsal.env]
PLANFORGE_REHEARSAL_SCRIPT = "{script}"
PLANFORGE_REHEARSAL_JOURNAL = "{journal}"
"""

AGENTS = """\
[agents]
default = "rehearsal"
"""

VERDICTS = {
    "@APPROVE@": '{"maxSeverity": "none", "summary": "Nothing blocks.", "concerns": []}',
    "@REJECT@": '{"maxSeverity": "blocking", "summary": "It blocks.", "concerns": '
    '[{"title": "it is not what was asked for", "severity": "blocking"}]}',
}
MODULE_VERDICTS = {
    "@APPROVE@": "| ID | Severity | Location | Finding |\n|---|---|---|---|\n\nVerdict: APPROVE",
    "@REJECT@": "| ID | Severity | Location | Finding |\n|---|---|---|---|\n"
    "| 1 | required | shop | it is not what was asked for |\n\nVerdict: REJECT",
}


class Planforge:
    """Drives `planforge` with its default settings, but for which agent is asked and what a case is about."""

    name = "planforge"
    owned = Owned(
        refs=("refs/planforge/", "refs/heads/planforge/"),
        files=(".planforge/*", "docs/plans/*", "docs/tasks/*"),
    )

    def describe(self) -> str:
        """Its version."""
        said = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=False)
        return said.stdout.strip()

    def when(self, case: Case, part: Part) -> list[list[str]]:
        """Every prompt opens with who is asked, and about what."""
        more: list[str] = []
        if part.attempt is not None:
            counted = "Attempt" if part.role is Role.DEVELOPER else "Round"
            more.append(f"{counted}: {part.attempt}\n")
        if part.task and len(case.tasks) > 1:
            task = next(task for task in case.tasks if task.name == part.task)
            more.append(task.changes[0][0] if part.role is Role.DEVELOPER else task.title)
        return [[*texts, *more] for texts in self._heads(case, part.role)]

    def _heads(self, case: Case, role: Role) -> list[list[str]]:
        if case.workflow is Workflow.TASK and role is Role.REVIEWER:
            return [["Role: reviewer"]]
        if case.workflow is Workflow.TASK and role is Role.DEVELOPER:
            return [["Role: developer"], ["Role: fixer"]]
        heads = {Role.AUDITOR: ["Role: auditor", "Round: "], Role.REVIEWER: ["Role: auditor", "Step: "]}
        return [heads.get(role, [f"Role: {role.value}"])]

    def words(self, case: Case) -> Mapping[str, str]:
        """In a pipeline reviewers end with a line, elsewhere they answer with JSON."""
        return MODULE_VERDICTS if case.workflow is Workflow.TASK else VERDICTS

    def prepare(self, case: Case, place: Place) -> None:
        """Write the settings, commit them, make the repository ready."""
        profile = PROFILE.format(backstage=place.backstage, script=place.script, journal=place.journal)
        agents = "" if "[agents]" in case.settings else AGENTS
        own = case.settings.replace("[agents]\n", AGENTS)
        places.commit(place, {"planforge.toml": f"{agents}\n{own}\n{profile}"}, "Settings")
        ready = subprocess.run(
            [*COMMAND, "init"],
            cwd=place.root,
            env=places.environment(place),
            capture_output=True,
            text=True,
            check=False,
        )
        if ready.returncode:
            raise PlanforgeError(f"`planforge init` failed: {ready.stderr.strip()}")

    def run(self, case: Case, place: Place, person: Person) -> None:
        """Give the commands of a workflow."""
        {
            Workflow.PLAN: self._plans,
            Workflow.TWO_PLANS: self._plans,
            Workflow.FORGE: self._forge,
            Workflow.FIX: self._fix,
            Workflow.TASK: self._task,
        }[case.workflow](case, place, person)

    def _plans(self, case: Case, place: Place, person: Person) -> None:
        for number, task in enumerate(case.tasks, 1):
            path = place.backstage / f"{task.name}.md"
            path.write_text(plan_text(task))
            self._give(person, place, "plan", "import", str(path))
            self._give(person, place, "plan", "approve", str(number))
        for number in range(1, len(case.tasks) + 1):
            self._give(person, place, "plan", "run", str(number))
        self._land(place, person)

    def _forge(self, case: Case, place: Place, person: Person) -> None:
        for number, task in enumerate(case.tasks, 1):
            self._give(person, place, "forge", f"{task.title}\n\n{task.request}")
            self._give(person, place, "plan", "approve", str(number))
            self._give(person, place, "plan", "run", str(number))
        self._land(place, person)

    def _fix(self, case: Case, place: Place, person: Person) -> None:
        for task in case.tasks:
            self._give(person, place, "fix", task.request)
        self._land(place, person)

    def _task(self, case: Case, place: Place, person: Person) -> None:
        for number, task in enumerate(case.tasks, 1):
            self._give(person, place, "pipeline", "run", "module", f"{task.title}\n\n{task.request}")
            person.give(
                ["git", "merge", "--quiet", "--no-edit", f"planforge/task-{number:03d}"], cwd=place.root
            )

    def _land(self, place: Place, person: Person) -> None:
        """Land; what did is brought into the checkout also if not all of it did."""
        landed = person.attempt([*COMMAND, "land"], cwd=place.root)
        person.attempt([*COMMAND, "land", "--update-checkout"], cwd=place.root)
        if landed.code != 0:
            person.calls.append(person.calls.pop(-2))

    def _give(self, person: Person, place: Place, *words: str) -> None:
        person.give([*COMMAND, *words], cwd=place.root)
