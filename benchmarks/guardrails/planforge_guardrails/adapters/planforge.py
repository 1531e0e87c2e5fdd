"""Planforge itself, by its command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import msgspec

from planforge.errors import PlanforgeError
from planforge_guardrails import places
from planforge_guardrails.oracle import Owned
from planforge_guardrails.person import Person, Stopped
from planforge_guardrails.sample import plan_text
from planforge_guardrails.shapes import Case, Part, Place, Role, Twin, Workflow

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
    one_way = False
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
            more.append(f"{self._counted(case, part.role)}: {part.attempt}\n")
        if part.task and len(case.tasks) > 1:
            task = next(task for task in case.tasks if task.name == part.task)
            more.append(task.changes[0][1] if part.role is Role.DEVELOPER else task.title)
        return [[*texts, *more] for texts in self._heads(case, part.role)]

    def _counted(self, case: Case, role: Role) -> str:
        if case.workflow is Workflow.TASK:
            return "Iteration"
        return "Attempt" if role is Role.DEVELOPER else "Round"

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
            raise PlanforgeError(f"the repository could not be set up: {ready.stderr.strip()}")

    def run(self, case: Case, twin: Twin, place: Place, person: Person) -> None:
        """Give the commands of a workflow."""
        bad = twin is Twin.BAD
        visit = Visit(
            place=place,
            person=person,
            approves=not (bad and case.unapproved),
            killed=bad and case.killed,
            suspended=bad and case.suspended,
        )
        edited = case.edited if bad else ""
        match case.workflow:
            case Workflow.PLAN | Workflow.TWO_PLANS:
                _plans(case, visit, edited)
            case Workflow.FORGE:
                _forge(case, visit, edited)
            case Workflow.FIX:
                _fix(case, visit)
            case Workflow.TASK:
                _task(case, visit)


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """A person in a place, and whether that person approves plans."""

    place: Place
    person: Person
    approves: bool
    killed: bool
    suspended: bool

    def give(self, *words: str) -> None:
        """Give a command of Planforge; the person stops if it does not end with 0."""
        self.person.give([*COMMAND, *words], cwd=self.place.root)

    def approve(self, number: int, edited: str) -> None:
        """Approve a plan; somebody may edit it afterwards."""
        if self.approves:
            self.give("plan", "approve", str(number))
        if edited:
            (path,) = (self.place.root / "docs" / "plans").glob(f"plan-{number:03d}-*.md")
            path.write_text(path.read_text().replace("## Risks", f"{edited}\n## Risks"))

    def carry_out(self, *words: str) -> None:
        """Give a command that has agents work; Planforge may be killed meanwhile, and then goes on."""
        if not self.killed:
            self.give(*words)
            return
        self.person.kill([*COMMAND, *words], cwd=self.place.root, once=self.place.journal.exists)
        self.give("resume")

    def overtake(self, first: str, second: str) -> None:
        """Carry out a plan; while its agent is at work it stands still, and another one is carried out."""

        def other_is_done() -> bool:
            words = [*COMMAND, "plan", "run", second]
            return self.person.attempt(words, cwd=self.place.root).code == 0

        words = [*COMMAND, "plan", "run", first]
        self.person.suspend(
            words, cwd=self.place.root, once=self.place.journal.exists, meanwhile=other_is_done
        )
        if self.person.calls[-1].code != 0:
            raise Stopped

    def land(self) -> None:
        """Land; what did is brought into the checkout also if not all of it did."""
        landed = self.person.attempt([*COMMAND, "land"], cwd=self.place.root)
        self.person.attempt([*COMMAND, "land", "--update-checkout"], cwd=self.place.root)
        if landed.code != 0:
            self.person.calls.append(self.person.calls.pop(-2))


def _plans(case: Case, visit: Visit, edited: str) -> None:
    for number, task in enumerate(case.tasks, 1):
        path = visit.place.backstage / f"{task.name}.md"
        path.write_text(plan_text(task))
        visit.give("plan", "import", str(path))
        visit.approve(number, edited)
    if visit.suspended:
        visit.overtake("1", "2")
    else:
        for number in range(1, len(case.tasks) + 1):
            visit.carry_out("plan", "run", str(number))
    visit.land()


def _forge(case: Case, visit: Visit, edited: str) -> None:
    for number, task in enumerate(case.tasks, 1):
        visit.give("forge", f"{task.title}\n\n{task.request}")
        visit.approve(number, edited)
        visit.give("plan", "run", str(number))
    visit.land()


def _fix(case: Case, visit: Visit) -> None:
    for task in case.tasks:
        visit.carry_out("fix", task.request)
    visit.land()


def _task(case: Case, visit: Visit) -> None:
    for task in case.tasks:
        visit.carry_out("pipeline", "run", "module", f"{task.title}\n\n{task.request}")
        visit.land()
