"""
Repositories with finished plans that wait to land, and landings driven without the command.

The plans are on record as if agents had carried them out: commits on the plan's
branch, evidence, approvals. Whether a tree passes is said by a function of its
files. Git and the ledger are real.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from decided import approval
from planforge.app import landing
from planforge.app.landing import lander
from planforge.app.project import Project
from planforge.kernel import effects, events
from planforge.kernel.driver import Call, Driver
from planforge.kernel.events import Event, PlannedStep
from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.objects import encode
from planforge.kernel.payloads import pack
from planforge.kernel.work import decisions
from planforge.workflows.flows import FLOWS
from planforge.workflows.landing import LandRequest, LandResult, land
from planforge.workspace.git import Git
from repositories import git, repository

Judge = Callable[[Mapping[str, str]], Outcome]
Table = dict[Any, Callable[[Any, Call], Awaitable[object]]]

FILES = {"README.md": "# A project\n", "a.txt": "1\n2\n3\n", "b.txt": "1\n2\n3\n"}
AT = "2026-03-01T12:00:00+00:00"


def passes(files: Mapping[str, str]) -> Outcome:
    """Every tree passes."""
    del files
    return Outcome.PASS


def evidence(outcome: Outcome, commit: str, tree: str, output: str = "") -> Evidence:
    """What a check of one test says."""
    failed = int(outcome is Outcome.FAIL)
    return Evidence(
        check="tests",
        outcome=outcome,
        reason={Outcome.PASS: "1 of 1 test passed", Outcome.FAIL: "1 of 1 test failed"}.get(
            outcome, "no test ran"
        ),
        command=("test",),
        exit_code=failed,
        counts=None
        if outcome is Outcome.CANNOT_TELL
        else Counts(total=1, passed=1 - failed, failed=failed, skipped=0),
        failing=("test_it",) if failed else (),
        commit=commit,
        tree=tree,
        output=output,
        seconds=0.1,
    )


class Field:
    """A project whose plans are done."""

    def __init__(self, place: Path, *, object_format: str = "sha1") -> None:
        self.root = place if place.exists() else repository(place, FILES, object_format=object_format)
        self.project = Project.create(self.root)
        self.git: Git = self.project.git
        self.nothing = self.project.ledger.objects.put(b"")
        self.judge: Judge = passes
        self.checks: list[str] = []
        """The trees that were checked."""
        self.plans = 0
        self._approved = 0
        self.runs = 0

    def say(self, *recorded: tuple[str, Event]) -> None:
        """Put facts on record."""
        for stream, event in recorded:
            self.project.ledger.append(stream, [event], expected=None)

    def commit(self, files: Mapping[str, str | None], parent: str, message: str) -> str:
        """A commit that changes `files` (None: removes), made without the checkout."""
        index = self.project.state / "scratch-index"
        self.git.run("read-tree", parent, index=index)
        for name, text in files.items():
            if text is None:
                self.git.run("update-index", "--force-remove", "--", name, index=index)
            else:
                blob = (
                    self.git.run("hash-object", "-w", "--stdin", stdin=text.encode()).stdout.decode().strip()
                )
                self.git.run("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", index=index)
        return self.git.commit_tree(self.git.line("write-tree", index=index), [parent], f"{message}\n", AT)

    def plan(
        self,
        *steps: Mapping[str, str | None],
        base: str | None = None,
        approved: bool = True,
        passed: bool = True,
        ended: bool = True,
    ) -> str:
        """A plan whose steps changed these files, carried out and done; its name."""
        self.plans += 1
        plan, run = f"plan-{self.plans:03d}", self.new_run()
        branch, content = f"planforge/{plan}", "c" * 64
        tip = base or self.git.commit_of("HEAD")
        names = [f"phase-{number}" for number in range(1, len(steps) + 1)]
        planned = tuple(
            PlannedStep(step=name, title=name, kind="implement", files=tuple(files), depends_on=())
            for name, files in zip(names, steps, strict=True)
        )
        self.say(
            (
                plan,
                events.ItemOpened(item=plan, title=f"Change {plan}", request="Do it", path=f"docs/{plan}.md"),
            ),
            (
                run,
                events.RunStarted(
                    run=run, flow="plan_run", flow_version=1, subject=plan, request=events.Payload()
                ),
            ),
        )
        if approved:
            asked, made = approval(plan, content, number=self._approved + 1)
            self._approved += 1
            self.say((plan, asked), (plan, made), (plan, decisions.used(made, run)))
        started = events.PlanStarted(
            plan=plan, run=run, content=content, branch=branch, base=tip, steps=planned, kept=()
        )
        self.say((run, started))
        for name, files in zip(names, steps, strict=True):
            tip = self._step(plan, run, name, files, tip, content, passed=passed)
        git(self.root, "update-ref", f"refs/heads/{branch}", tip)
        if ended:
            done = events.PlanEnded(
                plan=plan, run=run, succeeded=True, reason="every step is done", branch=branch, commit=tip
            )
            self.say((run, done), (run, events.RunEnded(run=run, succeeded=True, reason="", exit_code=0)))
        return plan

    def _step(
        self,
        plan: str,
        run: str,
        step: str,
        files: Mapping[str, str | None],
        base: str,
        content: str,
        *,
        passed: bool,
    ) -> str:
        trailers = f"Planforge-Run: {run}\nPlanforge-Step: {plan}/{step}\nPlanforge-Attempt: 1"
        commit = self.commit(files, base, f"{plan} {step}\n\n{trailers}")
        tree = self.git.tree_of(commit)
        git(self.root, "update-ref", f"refs/planforge/archive/{run}/{step}-1", commit)
        self.say((run, events.StepStarted(plan=plan, step=step, attempt=1, base=base)))
        if passed:
            self.say(
                (
                    run,
                    events.VerifyOk(
                        plan=plan,
                        step=step,
                        attempt=1,
                        evidence=evidence(Outcome.PASS, commit, tree, self.nothing),
                    ),
                )
            )
        applied = events.PatchApplied(
            plan=plan,
            step=step,
            attempt=1,
            content=content,
            scope=(),
            branch=f"planforge/{plan}",
            commit=commit,
            tree=tree,
            parent=base,
        )
        self.say((run, applied), (run, events.StepCompleted(plan=plan, step=step, attempts=1, score=None)))
        return commit

    def tip(self, plan: str) -> str:
        """Where the branch of a plan is."""
        return git(self.root, "rev-parse", f"refs/heads/planforge/{plan}")

    def new_run(self) -> str:
        """The name of the next run."""
        self.runs += 1
        return f"run-{self.runs:03d}"

    def begin(self, *plans: str, onto: str = "main", tries: int = 5) -> str:
        """Put a landing on record; its run."""
        run = self.new_run()
        request = LandRequest(run=run, branch=onto, plans=plans, tries=tries)
        body = pack(self.project.ledger, encode(request))
        self.say(
            (
                run,
                events.RunStarted(
                    run=run,
                    flow="land",
                    flow_version=FLOWS["land"].version,
                    subject=f"refs/heads/{onto}",
                    request=body,
                ),
            )
        )
        return run

    def performers(self, run: str) -> Table:
        """Who does what: the real ones, but for the check and the plan file."""

        async def check(effect: effects.RunCheck, call: Call) -> Evidence:
            del call
            self.checks.append(effect.tree)
            return evidence(self.judge(self.files(effect.commit)), effect.commit, effect.tree, self.nothing)

        async def mark(effect: effects.MarkPlan, call: Call) -> None:
            """There is no plan file."""

        return {**lander.performers(self.project, run), effects.RunCheck: check, effects.MarkPlan: mark}

    def files(self, commit: str) -> dict[str, str]:
        """The files of a commit."""
        names = git(self.root, "ls-tree", "-r", "-z", "--name-only", commit).split("\0")
        return {name: git(self.root, "show", f"{commit}:{name}") for name in names if name}

    def land(self, *plans: str, onto: str = "main", tries: int = 5, table: Table | None = None) -> LandResult:
        """Land, as the only one who does."""
        run = self.begin(*plans, onto=onto, tries=tries)
        return self.go_on(run, *plans, onto=onto, tries=tries, table=table)

    def go_on(
        self, run: str, *plans: str, onto: str = "main", tries: int = 5, table: Table | None = None
    ) -> LandResult:
        """Drive a landing that is on record."""
        request = LandRequest(run=run, branch=onto, plans=plans, tries=tries)
        with landing.only_lander(self.project, f"refs/heads/{onto}"):
            driver = Driver(self.project.ledger, run, self.performers(run) | (table or {}))
            result = asyncio.run(driver.drive(land(request)))
        driver.record(events.RunEnded(run=run, succeeded=result.done, reason=result.reason, exit_code=0))
        return result

    def recorded(self, *kinds: type[Event]) -> list[Any]:
        """What is on record, of these kinds."""
        return [item.event for item in self.project.ledger.since() if isinstance(item.event, kinds)]


def with_line(number: int, text: str) -> str:
    """The text of `a.txt` and `b.txt` with one line changed."""
    lines = FILES["a.txt"].splitlines()
    lines[number] = text
    return "\n".join(lines) + "\n"
