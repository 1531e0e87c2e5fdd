"""
Approvals under attack: replayed, after an edit, by the author, twice at once, from a stale view, late.

Each attack is on a plan, a gate or a question that waits, and each must be refused: with the right exit code,
with nothing started or landed, and with nothing used that was not given.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calls import Command, Said, caller
from decided import at, of
from planforge.app import cancellation
from planforge.app.decisions import approvals, deciders, gates, questions
from planforge.app.decisions.gates import GateRow
from planforge.app.plans import work
from planforge.app.project import Project
from planforge.errors import NeedsPerson, RefusedByGate
from planforge.kernel.driver import Call
from planforge.kernel.effects import AgentAnswer, AskHuman, PassGate
from planforge.kernel.events import (
    Choice,
    DecisionAsked,
    DecisionMade,
    DecisionUsed,
    EffectCompleted,
    Event,
    ItemOpened,
    PatchApplied,
    PatchProposed,
    Payload,
    PlanStarted,
    RunEnded,
    RunStarted,
)
from planforge.kernel.work import decisions
from planforge.workspace.sandbox import Level, tried
from programs import environment
from rehearsals import Rehearsal, eventually
from repositories import git

PLAN, CONTENT_GATE = "plan-001", "plan"
FILE = "docs/plans/plan-001-common-words-and-reading-time.md"
OTHER, RUN, STEP, GATE = "plan-007", "run-007", "phase-1", "protected/phase-1"
CHOICES = (Choice(name="go on", cost="a call"), Choice(name="stop", consequence="the run ends"))


@pytest.fixture
def command(plan: Rehearsal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """A command of the program, here in the process: the exit code and what it printed."""
    return caller(plan.root, monkeypatch, capsys)


@pytest.fixture
def project(plan: Rehearsal) -> Project:
    """The repository of a plan that is approved, with another plan that a run is at."""
    found = Project(plan.root)
    created = ItemOpened(item=OTHER, title="T", request="R", path="docs/plans/plan-007-t.md")
    started = RunStarted(run=RUN, flow="plan_run", flow_version=1, subject=OTHER, request=Payload())
    found.ledger.append(OTHER, [created], expected=0)
    found.ledger.append(RUN, [started], expected=0)
    return found


def tree(project: Project, text: str) -> tuple[str, str, str]:
    """A commit that adds a file, made beside the checkout; its tree and its parent."""
    base = git(project.root, "rev-parse", "HEAD")
    blob = git(project.root, "hash-object", "-w", "--stdin", stdin=text.encode())
    entries = f"{git(project.root, 'ls-tree', base)}\n100644 blob {blob}\tMakefile\n"
    made = git(project.root, "mktree", stdin=entries.encode())
    return git(project.root, "commit-tree", made, "-p", base, "-m", "x"), made, base


def raised(project: Project, text: str = "all:\n", *, gate: str = GATE, plan: str = OTHER) -> GateRow:
    made, content, base = tree(project, text)
    return gates.raise_(
        project,
        PassGate(
            plan=plan,
            step=STEP,
            attempt=1,
            gate=gate,
            tree=content,
            commit=made,
            parent=base,
            reasons=("`Makefile`: a target that checks is changed",),
        ),
        RUN,
    )


def asked(project: Project, text: str = "what now?", *, resumed: str = "") -> questions.QuestionRow:
    call = Call(run=RUN, key="/1", intended_at="", resumed=False)
    with pytest.raises(NeedsPerson):
        questions.reply(project, AskHuman(question=text, choices=CHOICES, resumed=resumed), call, OTHER)
    return questions.waiting(project).questions[-1]


def recorded(project: Project, *kinds: type[Event]) -> list[Any]:
    return [item.event for item in project.ledger.since() if isinstance(item.event, kinds)]


def made(project: Project, kind: str) -> list[DecisionMade]:
    """What people have decided, of a kind."""
    return of(recorded(project, DecisionMade), kind)


def write(project: Project, stream: str, event: Event) -> None:
    """Write an event into a stream by hand, as whoever can open the ledger may."""
    project.ledger.append(stream, [event], expected=None)


def use(project: Project, run: str = "run-002") -> str:
    """Have a run take the approval; its content."""
    (given,) = made(project, "approval")
    approvals.take(project, PLAN, CONTENT_GATE, given.content, run)
    return given.content


def nothing_ran(project: Project, *, used: int = 0) -> None:
    """No run was begun but that of forging, nothing has landed, and no approval was used once more."""
    begun = [event.run for event in recorded(project, RunStarted) if event.run != RUN]
    assert begun == ["run-001"]
    assert recorded(project, PlanStarted, PatchApplied) == []
    assert len(recorded(project, DecisionUsed)) == used
    assert git(project.root, "for-each-ref", "refs/heads/planforge") == ""


# Replayed


def test_a_yes_that_was_used_starts_no_second_run(project: Project, command: Command) -> None:
    content = use(project)
    with pytest.raises(RefusedByGate, match="not approved as it is now"):
        approvals.take(project, PLAN, CONTENT_GATE, content, "run-003")
    assert command("plan", "run", "1").code == 5
    nothing_ran(project, used=1)


@pytest.mark.parametrize("number", [1, 0, 2, 3])
def test_a_yes_that_is_written_into_the_stream_again_opens_nothing(
    project: Project, command: Command, number: int
) -> None:
    """Alone and with what it answers; also under another number, but for that of a yes that is new."""
    (given,) = made(project, "approval")
    (before,) = of(recorded(project, DecisionAsked), "approval")
    content = use(project)
    for event in (given, before, given) if number != 2 else (given,):
        write(project, PLAN, msgspec.structs.replace(event, number=number))
    said = command("plan", "run", "1")
    assert (said.code, "not approved as it is now" in said.err) == (5, True)
    with pytest.raises(RefusedByGate):
        approvals.take(project, PLAN, CONTENT_GATE, content, "run-003")
    assert command("plan", "show", "1", "--json").document["approved_by"] == ""
    nothing_ran(project, used=1)


def test_a_yes_that_a_later_one_voided_is_not_revived_by_a_copy(project: Project, command: Command) -> None:
    (given,) = made(project, "approval")
    before = (project.root / FILE).read_text()
    (project.root / FILE).write_text(before.replace("alphabetical", "reverse"))
    assert command("plan", "approve", "1").code == 0
    (project.root / FILE).write_text(before)
    write(project, PLAN, given)
    assert command("plan", "run", "1").code == 5
    nothing_ran(project)


def test_a_use_that_is_made_up_without_a_yes_lets_no_run_in(project: Project) -> None:
    (given,) = made(project, "approval")
    use(project)
    for event in (
        decisions.used(given, "run-003"),
        msgspec.structs.replace(decisions.used(given, "run-003"), number=2),
    ):
        write(project, PLAN, event)
    with pytest.raises(RefusedByGate):
        approvals.take(project, PLAN, CONTENT_GATE, given.content, "run-003")


def test_a_yes_at_a_gate_that_was_used_lets_no_second_run_through(project: Project) -> None:
    gate = raised(project)
    gates.approve(project, gate.name, actor="Ada")
    assert gates.take(project, at(OTHER, GATE, gate.content), RUN) is not None
    for run in ("run-008", "run-009"):
        assert gates.take(project, at(OTHER, GATE, gate.content), run) is None
    assert len(recorded(project, DecisionUsed)) == 1


def test_a_yes_at_a_gate_that_is_written_again_does_not_open_the_next_one(project: Project) -> None:
    """The same tree comes to a gate once more, and the old decision is copied into the stream."""
    gate = raised(project)
    gates.approve(project, gate.name, actor="Ada")
    gates.take(project, at(OTHER, GATE, gate.content), RUN)
    assert raised(project).name == "gate-002"
    (given,) = made(project, "gate")
    write(project, OTHER, given)
    assert [row.status for row in gates.every(project).gates] == ["used", "waiting"]
    assert gates.take(project, at(OTHER, GATE, gate.content), "run-008") is None
    project.ledger.rebuild()
    assert [row.status for row in gates.every(project).gates] == ["used", "waiting"]
    assert len(recorded(project, DecisionUsed)) == 1


# After an edit


def spaced(text: str) -> str:
    return text.replace("alphabetical", "alphabetical ", 1)


def lettered(text: str) -> str:
    return text.replace("alphabetical", "alphabeticaL", 1)


def shortened(text: str) -> str:
    return text.replace("alphabetical", "alphabetica", 1)


@pytest.mark.parametrize("edit", [spaced, lettered, shortened])
def test_a_plan_that_was_edited_by_one_byte_does_not_run(
    project: Project, command: Command, edit: Callable[[str], str]
) -> None:
    before = (project.root / FILE).read_text()
    after = edit(before)
    assert abs(len(after) - len(before)) <= 1
    assert after != before
    (project.root / FILE).write_text(after)
    said = command("plan", "run", "1")
    assert (said.code, "not approved as it is now" in said.err) == (5, True)
    nothing_ran(project)


def test_a_plan_that_is_edited_after_its_run_was_begun_does_not_run_either(
    project: Project, command: Command
) -> None:
    run = work.begin_plan_run(project, "1", parallel=False)
    path = project.root / FILE
    path.write_text(spaced(path.read_text()))
    assert command("resume", run).code == 5
    assert recorded(project, DecisionUsed, PlanStarted, PatchApplied) == []


def test_a_tree_that_changed_stands_at_a_gate_of_its_own(project: Project) -> None:
    gate = raised(project)
    gates.approve(project, gate.name, actor="Ada")
    other = raised(project, "all: x\n")
    assert gates.take(project, at(OTHER, GATE, other.content), RUN) is None
    assert gates.take(project, at(OTHER, GATE, gate.content), RUN) is None
    assert [row.status for row in gates.every(project).gates] == ["superseded", "waiting"]
    assert raised(project).status == "waiting"  # the first tree again, whose yes is void
    assert recorded(project, DecisionUsed) == []


# By the author


NAMES = [
    "rehearsal",
    "Rehearsal",
    " re-hearsal ",
    "REHEARSAL <r@example.org>",
    "\N{FULLWIDTH LATIN SMALL LETTER R}ehearsal",
    "re\N{ZERO WIDTH SPACE}hearsal",
    "claude",
    "Codex",
    "hired-hand",
    "Hired Hand",
    "grok-7",
    "Grok 7 <grok@example.org>",
]
"""Of the agent that wrote the plan, of known ones, of one in the settings, and of one that was there once."""


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_decides_nothing_by_whatever_name(
    plan: Rehearsal, project: Project, command: Command, name: str
) -> None:
    plan.settings('[agents.profiles.hired-hand]\ncommand = ["hired-hand"]\n')
    answer = AgentAnswer(agent="grok-7", text="", stop_reason="end_turn", tool_calls=0, usage=None)
    outcome = Payload(inline=msgspec.Raw(msgspec.json.encode(answer)))
    for run in ("run-001", RUN):
        write(project, run, EffectCompleted(effect="RunAgent", outcome=outcome))
    path = project.root / FILE
    path.write_text(lettered(path.read_text()))
    gate, question, before = raised(project), asked(project), project.ledger.head()
    for words in (
        ("plan", "approve", "1"),
        ("gate", "approve", gate.name),
        ("gate", "reject", gate.name, "--reason", "x"),
        ("question", "answer", question.name, "stop"),
    ):
        said = command(*words, "--as", name)
        assert (said.code, "is the name of an agent" in said.err) == (5, True), words
    assert project.ledger.head() == before
    nothing_ran(project)


def test_a_person_who_made_the_change_does_not_let_it_through(project: Project, command: Command) -> None:
    """Whoever is on record as its author, by whatever name: people are authors too."""
    gate = raised(project)
    proposed = PatchProposed(
        plan=OTHER, step=STEP, attempt=1, commit="c", tree="t", files=(), claim="", agent="Grace Hopper"
    )
    write(project, OTHER, proposed)
    assert command("gate", "approve", gate.name, "--as", "grace hopper <grace@example.org>").code == 5
    assert made(project, "gate") == []
    assert command("gate", "approve", gate.name, "--as", "Ada").code == 0


def test_an_agent_that_has_its_name_in_the_settings_of_git_approves_no_plan(
    project: Project, command: Command
) -> None:
    git(project.root, "config", "user.name", "Claude")
    path = project.root / FILE
    path.write_text(lettered(path.read_text()))
    assert command("plan", "approve", "1").code == 5
    assert len(made(project, "approval")) == 1


ATTEMPT = """
import json, os, subprocess, sys
def tried(*words, **more):
    program = [*more.get("before", []), sys.executable, "-m", "planforge", *words]
    done = subprocess.run(program, cwd={root!r}, env=more.get("env"), capture_output=True, text=True)
    return [done.returncode, done.stderr]
bare = {{name: value for name, value in os.environ.items() if not name.startswith("PLANFORGE")}}
answers = {{
    "plan": tried("plan", "approve", "1", "--as", "Ada"),
    "plan, as git says": tried("plan", "approve", "1"),
    "plan, without the cookie": tried("plan", "approve", "1", "--as", "Ada", env=bare),
    "gate": tried("gate", "approve", "gate-001", "--as", "Ada"),
    "gate, without the cookie": tried("gate", "reject", "gate-001", "--as", "Ada", "--reason", "x", env=bare),
    "gate, elsewhere": tried("gate", "approve", "1", "--as", "Ada", before=["setsid", "--wait"], env=bare),
    "question": tried("question", "answer", "question-001", "go on", "--as", "Ada"),
    "question, without the cookie": tried("question", "answer", "1", "stop", "--as", "Ada", env=bare),
}}
open({out!r}, "w").write(json.dumps(answers))
"""


@pytest.mark.skipif(not tried(Level.PROCESSES).works, reason="processes cannot be followed here")
def test_an_agent_at_work_that_runs_the_commands_itself_is_refused(
    plan: Rehearsal, project: Project, tmp_path: Path, running: list[subprocess.Popen[str]]
) -> None:
    """A real run of the agent, where nothing but processes is controlled: the commands are what says no."""
    gate, question, out = raised(project), asked(project), tmp_path / "answers.json"
    assert (gate.name, question.name) == ("gate-001", "question-001")
    project.ledger.close()
    plan.settings('[sandbox]\nlevel = "processes"\n\n[run]\nattempts = 1\n')
    code = ATTEMPT.format(root=str(plan.root), out=str(out))
    plan.scene("Role: developer", do=[{"run": [sys.executable, "-c", code]}, {"say": "approved"}])
    process = plan.start("plan", "run", "1")
    running.append(process)
    said = process.communicate(timeout=300)
    assert out.exists(), said
    for attempt, (code_, error) in json.loads(out.read_text()).items():
        assert (code_, "agents do not decide" in error) == (5, True), (attempt, error)
    again = Project(plan.root)
    assert [row.status for row in gates.every(again).gates] == ["waiting"]
    assert [row.status for row in questions.every(again).questions] == ["waiting"]
    assert len(made(again, "approval")) == 1
    assert made(again, "gate") + made(again, "question") + recorded(again, PatchApplied) == []


# Twice at once

AT_ONCE = """
import os, sys, time
from planforge.app.items import plans
from planforge.app.decisions import approvals, deciders, gates, questions
from planforge.interfaces.cli import foreground, main
from planforge.interfaces.cli.commands import gate, plan, question
os.open(sys.argv[1] + "." + str(os.getpid()), os.O_CREAT | os.O_WRONLY)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.0005)
sys.argv = ["planforge", *sys.argv[2:]]
main.run()
"""


def at_once(
    root: Path, place: Path, running: list[subprocess.Popen[str]], *commands: tuple[str, ...]
) -> list[Said]:
    """Start each command in a process of its own, and let them all go at the same moment."""
    go = place / "go"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", AT_ONCE, str(go), *words],
            cwd=root,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for words in commands
    ]
    running.extend(started)
    eventually(lambda: len(list(place.glob("go.*"))) == len(started), 120)
    go.touch()
    ended = [process.communicate(timeout=300) for process in started]
    return [Said(process.returncode, *told) for process, told in zip(started, ended, strict=True)]


def edited(plan: Rehearsal) -> None:
    path = plan.root / FILE
    path.write_text(lettered(path.read_text()))


def test_of_two_people_who_approve_at_once_one_has(
    plan: Rehearsal, tmp_path: Path, running: list[subprocess.Popen[str]]
) -> None:
    edited(plan)
    words = ("plan", "approve", "1", "--json", "--as")
    said = at_once(plan.root, tmp_path, running, (*words, "Ada"), (*words, "Bob"))
    assert sorted(each.code for each in said) == [0, 5], said
    (loser,) = [each for each in said if each.code]
    (_, given) = of(plan.events(DecisionMade), "approval")
    assert loser.current["actor"] == given.actor
    assert given.actor in ("Ada", "Bob")
    assert plan.events(DecisionUsed) == []


def test_one_person_who_approves_twice_at_once_has_approved_once(
    plan: Rehearsal, tmp_path: Path, running: list[subprocess.Popen[str]]
) -> None:
    edited(plan)
    words = ("plan", "approve", "1", "--as", "Ada")
    assert [each.code for each in at_once(plan.root, tmp_path, running, words, words)] == [0, 0]
    assert len(of(plan.events(DecisionMade), "approval")) == 2  # the one that the edit voided, and this


@pytest.mark.dear
def test_of_two_runs_that_start_at_once_one_has_the_yes(
    plan: Rehearsal, tmp_path: Path, running: list[subprocess.Popen[str]]
) -> None:
    plan.settings("[run]\nattempts = 1\n")
    plan.scene("Role: developer", do=[{"say": "nothing to do"}])
    said = at_once(plan.root, tmp_path, running, ("plan", "run", "1"), ("plan", "run", "1"))
    # The other is told that the yes was used, or that a run is at the plan: whichever it sees first.
    assert sorted(each.code for each in said) in ([1, 5], [1, 7]), said
    assert len(plan.events(DecisionUsed)) == 1
    assert len(plan.events(PlanStarted)) == 1
    assert plan.events(PatchApplied) == []


def test_of_a_yes_and_a_no_at_once_one_counts(
    plan: Rehearsal, project: Project, tmp_path: Path, running: list[subprocess.Popen[str]]
) -> None:
    raised(project)
    project.ledger.close()
    said = at_once(
        plan.root,
        tmp_path,
        running,
        ("gate", "approve", "1", "--as", "Ada"),
        ("gate", "reject", "1", "--as", "Bob", "--reason", "no"),
    )
    assert sorted(each.code for each in said) == [0, 5], said
    (decided,) = of(plan.events(DecisionMade), "gate")
    assert decided.actor in next(each.err for each in said if each.code)


def test_of_two_answers_at_once_one_counts(
    plan: Rehearsal, project: Project, tmp_path: Path, running: list[subprocess.Popen[str]]
) -> None:
    asked(project)
    project.ledger.close()
    words = ("question", "answer", "1")
    said = at_once(
        plan.root, tmp_path, running, (*words, "stop", "--as", "A"), (*words, "go on", "--as", "B")
    )
    assert sorted(each.code for each in said) == [0, 5], said
    (answered,) = of(plan.events(DecisionMade), "question")
    assert f"{answered.actor} answered `{answered.choice}`" in next(each.err for each in said if each.code)


# From a stale view


def test_a_plan_that_changed_since_it_was_read_is_not_approved(project: Project, command: Command) -> None:
    edited(Rehearsal(project.root, project.root))
    seen = command("plan", "show", "1", "--json").document["content"]
    path = project.root / FILE
    path.write_text(path.read_text().replace("alphabeticaL", "alphabetiCaL"))
    said = command("plan", "approve", "1", "--seen", seen, "--json")
    assert (said.code, seen[:12] in said.err) == (5, True)
    now = command("plan", "show", "1", "--json").document["content"]
    assert (said.current["hash"], said.current["next"]) == (now, f"planforge plan show {PLAN}")
    assert len(made(project, "approval")) == 1
    nothing_ran(project)
    assert now in command("plan", "show", "1").out
    assert command("plan", "approve", "1", "--seen", now).code == 0


@pytest.mark.parametrize("verdict", [("approve",), ("reject", "--reason", "no")])
def test_a_gate_with_another_tree_than_was_looked_at_is_not_decided(
    project: Project, command: Command, verdict: tuple[str, ...]
) -> None:
    seen = raised(project).content
    now = raised(project, "all: x\n")
    how, *why = verdict
    for name in ("gate-001", "gate-002"):
        said = command("gate", how, name, *why, "--as", "Ada", "--seen", seen, "--json")
        assert said.code == 5
        assert (said.current["what"], said.current["hash"]) == ("gate-002", now.content)
    assert made(project, "gate") == []
    assert command("gate", how, "gate-002", *why, "--as", "Ada", "--seen", now.content[:12]).code == 0


def test_another_question_than_was_looked_at_is_not_answered(project: Project, command: Command) -> None:
    seen = asked(project).hash
    now = asked(project, "and now?")
    for name in ("1", "2"):
        said = command("question", "answer", name, "stop", "--as", "Ada", "--seen", seen, "--json")
        assert said.code == 5
        assert (said.current["what"], said.current["hash"]) == ("question-002", now.hash)
    assert made(project, "question") == []
    assert command("question", "answer", "2", "stop", "--as", "Ada", "--seen", now.hash).code == 0


@pytest.mark.parametrize("seen", ["", "abc", "HEAD", "0123456789a", "g" * 40])
def test_what_is_no_hash_was_not_looked_at(project: Project, command: Command, seen: str) -> None:
    raised(project)
    assert command("gate", "approve", "1", "--as", "Ada", "--seen", seen).code == 2
    assert command("plan", "approve", "1", "--as", "Ada", "--seen", seen).code == 2
    assert made(project, "gate") == []


# Late


def test_what_belongs_to_a_cancelled_run_is_decided_no_more(project: Project, command: Command) -> None:
    gate, question = raised(project), asked(project)
    cancellation.cancel(project, RUN, reason="not now", actor="Ada")
    for words in (
        ("gate", "approve", gate.name),
        ("gate", "reject", gate.name, "--reason", "x"),
        ("question", "answer", question.name, "stop"),
    ):
        said = command(*words, "--as", "Ada", "--json")
        assert (said.code, "its run has ended" in said.err) == (5, True)
        assert said.current["status"] == "closed"
    assert made(project, "gate") + made(project, "question") == []
    assert gates.take(project, at(OTHER, GATE, gate.content), RUN) is None


def test_an_answer_that_was_given_before_the_cancelling_opens_nothing_after_it(project: Project) -> None:
    gate, question = raised(project), asked(project)
    gates.approve(project, gate.name, actor="Ada")
    questions.answer(project, question.name, "go on", actor="Ada")
    cancellation.cancel(project, RUN, reason="not now", actor="Ada")
    assert gates.take(project, at(OTHER, GATE, gate.content), "run-008") is None
    assert decisions.made_for(project.ledger, RUN, since="") == []
    assert recorded(project, DecisionUsed) == []


def test_no_yes_is_given_to_a_plan_that_a_run_is_at(project: Project, command: Command) -> None:
    """It would lie around, and start the same plan again after that run has failed."""
    run = work.begin_plan_run(project, "1", parallel=False)
    use(project, run)
    said = command("plan", "approve", "1", "--json")
    assert (said.code, said.current["what"]) == (5, run)
    assert len(made(project, "approval")) == 1
    cancellation.cancel(project, run, reason="not now", actor="Ada")
    assert command("plan", "run", "1").code == 5
    assert len(recorded(project, DecisionUsed)) == 1
    assert recorded(project, PlanStarted, PatchApplied) == []
    assert [event.run for event in recorded(project, RunEnded)] == ["run-001", run]


@pytest.mark.parametrize("actor", ["Ada", "Bob"])
def test_a_question_is_not_answered_twice_by_anybody(project: Project, command: Command, actor: str) -> None:
    question = asked(project)
    assert command("question", "answer", "1", "go on", "--as", "Ada", "--reason", "why not").code == 0
    said = command("question", "answer", question.name, "go on", "--as", actor, "--json")
    assert said.code == 5
    now = said.current
    assert (now["status"], now["actor"], now["answer"], now["reason"]) == (
        "answered",
        "Ada",
        "go on",
        "why not",
    )
    assert len(made(project, "question")) == 1


def test_a_gate_is_not_decided_twice_but_the_same_may_be_said_again(
    project: Project, command: Command
) -> None:
    raised(project)
    assert command("gate", "approve", "1", "--as", "Ada").code == 0
    assert command("gate", "approve", "1", "--as", "Ada").code == 0
    for words in (("approve", "1", "--as", "Bob"), ("reject", "1", "--as", "Ada", "--reason", "no")):
        said = command("gate", *words, "--json")
        assert (said.code, said.current["actor"], said.current["status"]) == (5, "Ada", "approved")
    assert len(made(project, "gate")) == 1


def test_a_plan_that_is_approved_is_not_approved_by_somebody_else_as_well(
    project: Project, command: Command
) -> None:
    (given,) = made(project, "approval")
    assert command("plan", "approve", "1").code == 0  # the same person, the same text
    said = command("plan", "approve", "1", "--as", "Bob", "--json")
    assert (said.code, said.current["actor"], said.current["hash"]) == (5, given.actor, given.content)
    assert len(made(project, "approval")) == 1


# Elsewhere


def test_a_yes_to_one_plan_runs_no_other_with_the_same_text(project: Project, command: Command) -> None:
    """Also not if it is copied into the stream of that plan."""
    twin = ItemOpened(item="plan-008", title="T", request="R", path="docs/plans/plan-008-t.md")
    write(project, "plan-008", twin)
    (project.root / twin.path).write_bytes((project.root / FILE).read_bytes())
    assert command("plan", "run", "8").code == 5
    (given,) = made(project, "approval")
    write(project, "plan-008", given)
    assert command("plan", "run", "8").code == 5
    nothing_ran(project)


@pytest.mark.parametrize("gate", ["release", "PLAN", "plan ", "", "protected/phase-1"])
def test_a_yes_at_one_gate_opens_no_other(project: Project, gate: str) -> None:
    (given,) = made(project, "approval")
    with pytest.raises(RefusedByGate):
        approvals.take(project, PLAN, gate, given.content, "run-002")
    assert recorded(project, DecisionUsed) == []


def test_a_yes_to_a_tree_is_for_its_gate_and_its_plan(project: Project) -> None:
    gate = raised(project)
    gates.approve(project, gate.name, actor="Ada")
    for plan, name in ((PLAN, GATE), (OTHER, "protected/phase-2"), (OTHER, CONTENT_GATE)):
        assert gates.take(project, at(plan, name, gate.content), RUN) is None
    with pytest.raises(RefusedByGate):
        approvals.take(project, OTHER, GATE, gate.content, RUN)
    assert recorded(project, DecisionUsed) == []


def test_the_same_commands_go_through_where_nobody_attacks(project: Project, command: Command) -> None:
    """So that what is refused above is refused for what is wrong with it."""
    assert not deciders.is_agent(project)
    gate, question = raised(project), asked(project)
    assert command("gate", "approve", "1", "--as", "Ada", "--seen", gate.content).code == 0
    assert command("question", "answer", "1", "stop", "--as", "Ada", "--seen", question.hash).code == 0
    edited(Rehearsal(project.root, project.root))
    assert command("plan", "approve", "1", "--as", "Ada").code == 0
    assert gates.take(project, at(OTHER, GATE, gate.content), RUN) is not None
    content = made(project, "approval")[-1].content
    assert approvals.take(project, PLAN, CONTENT_GATE, content, "run-002").actor == "Ada"
