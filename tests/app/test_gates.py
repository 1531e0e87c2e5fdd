"""Gates: exact trees, one use, one decision, and nobody lets a change of their own through."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from decided import at
from planforge.app.decisions import deciders, gates
from planforge.app.decisions.gates import GateRow
from planforge.app.project import Project
from planforge.errors import GitFailed, InvalidInput, NeedsPerson, NotFound, RefusedByGate
from planforge.interfaces.cli.typed import text
from planforge.kernel.effects import Decision, PassGate
from planforge.kernel.events import (
    DecisionAsked,
    DecisionMade,
    Event,
    ItemOpened,
    Judged,
    PatchProposed,
    Payload,
    PlanEnded,
    RunEnded,
    RunStarted,
)
from planforge.kernel.objects import address
from planforge.workspace import processes
from planforge.workspace.launch.trees import COOKIE
from planforge.workspace.sandbox import RECORDS, Level, Policy, tried
from repositories import EMAIL, NAME, commit, git, repository

PLAN, STEP, GATE = "plan-001", "phase-1", "protected/phase-1"
CI = ".github/workflows/ci.yml"
REASONS = ("`.github/workflows/ci.yml`: a CI file is changed",)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project.create(repository(tmp_path / "project", {"app.py": "print(1)\n", CI: "on: push\n"}))
    record(made, ItemOpened(item=PLAN, title="T", request="R", path="docs/plans/plan-001-t.md"))
    record(made, RunStarted(run="run-001", flow="plan_run", flow_version=1, subject=PLAN, request=Payload()))
    return made


def record(project: Project, event: Event) -> None:
    project.ledger.append("events", [event], expected=None)


def changed(project: Project, text: str) -> tuple[str, str, str]:
    """A commit that changes the CI file, its tree and its parent."""
    base = git(project.root, "rev-parse", "HEAD")
    made = commit(project.root, {CI: text})
    git(project.root, "reset", "--quiet", "--hard", base)
    return made, git(project.root, "rev-parse", f"{made}^{{tree}}"), base


def raised(project: Project, text: str = "on: [push]\n", reasons: tuple[str, ...] = REASONS) -> GateRow:
    made, tree, base = changed(project, text)
    return gates.raise_(
        project,
        PassGate(
            plan=PLAN, step=STEP, attempt=1, gate=GATE, tree=tree, commit=made, parent=base, reasons=reasons
        ),
        "run-001",
    )


def said(project: Project, content: str) -> tuple[str, str, str]:
    """What the newest gate says of this tree."""
    newest = gates.every(project).gates[-1]
    assert newest.content == content
    return newest.status, newest.actor, newest.reason


def take(project: Project, content: str, run: str = "run-001") -> Decision | None:
    return gates.take(project, at(PLAN, GATE, content), run)


YES = Decision(approved=True, actor="Ada", reason="")


def test_a_gate_waits_until_a_person_decides(project: Project) -> None:
    gate = raised(project)
    assert [row.name for row in gates.waiting(project).gates] == ["gate-001"]
    assert take(project, gate.content) is None
    decided = gates.approve(project, gate.name, actor="Ada", reason=" it is what we wanted ")
    assert decided.runs == ("run-001",)
    assert said(project, gate.content) == ("approved", "Ada", "it is what we wanted")
    assert take(project, gate.content) == Decision(approved=True, actor="Ada", reason="it is what we wanted")
    assert gates.waiting(project).gates == ()


def test_a_rejection_says_why_and_lets_nothing_through(project: Project) -> None:
    gate = raised(project)
    gates.reject(project, "1", actor="Ada", reason="no scripts from elsewhere")
    assert take(project, gate.content) == Decision(
        approved=False, actor="Ada", reason="no scripts from elsewhere"
    )
    assert raised(project).status == "rejected"  # the same tree again is rejected already


def test_raising_the_same_gate_again_changes_nothing(project: Project) -> None:
    first = raised(project)
    events = project.ledger.head()
    assert raised(project) == first
    gates.approve(project, "1", actor="Ada")
    assert raised(project).status == "approved"
    assert project.ledger.head() == events + 1


@pytest.mark.parametrize("content", ["0" * 40, "", "HEAD"])
def test_a_yes_is_for_no_other_tree(project: Project, content: str) -> None:
    raised(project)
    gates.approve(project, "1", actor="Ada")
    assert take(project, content) is None


@pytest.mark.parametrize(
    ("plan", "gate"), [("plan-002", GATE), (PLAN, "protected/phase-2"), (PLAN, "protected")]
)
def test_a_yes_is_for_no_other_gate(project: Project, plan: str, gate: str) -> None:
    content = raised(project).content
    gates.approve(project, "1", actor="Ada")
    assert gates.take(project, at(plan, gate, content), "run-001") is None


def test_a_yes_is_used_once_and_by_one_run(project: Project) -> None:
    content = raised(project).content
    gates.approve(project, "1", actor="Ada")
    assert take(project, content, "run-001") == YES
    assert take(project, content, "run-002") is None
    assert said(project, content) == ("used", "Ada", "")


def test_the_run_that_used_it_may_ask_again_after_a_crash(project: Project) -> None:
    content = raised(project).content
    gates.approve(project, "1", actor="Ada")
    take(project, content, "run-001")
    events = project.ledger.head()
    assert take(project, content, "run-001") == YES
    assert project.ledger.head() == events


def test_a_tree_that_comes_back_after_its_yes_was_used_waits_anew(project: Project) -> None:
    content = raised(project).content
    gates.approve(project, "1", actor="Ada")
    take(project, content, "run-001")
    again = raised(project)
    assert (again.name, again.content, again.status) == ("gate-002", content, "waiting")
    assert take(project, content, "run-002") is None


def test_another_tree_takes_the_place_of_one_that_waits(project: Project) -> None:
    first, second = raised(project), raised(project, "on: [push, fork]\n")
    assert [row.name for row in gates.waiting(project).gates] == ["gate-002"]
    with pytest.raises(RefusedByGate, match="another has taken its place") as refusal:
        gates.approve(project, first.name, actor="Ada")
    assert text(refusal.value.hint) == "see `planforge gate show gate-002`"
    gates.approve(project, second.name, actor="Ada")
    assert take(project, first.content) is None


def test_another_tree_voids_a_yes_that_was_not_used(project: Project) -> None:
    first = raised(project)
    gates.approve(project, first.name, actor="Ada")
    raised(project, "on: [push, fork]\n")
    assert take(project, first.content) is None
    assert [row.status for row in gates.every(project).gates] == ["superseded", "waiting"]
    again = raised(project)
    assert (again.name, again.status) == ("gate-003", "waiting")


def test_nobody_decides_twice(project: Project) -> None:
    raised(project)
    gates.approve(project, "1", actor="Ada")
    events = project.ledger.head()
    gates.approve(project, "1", actor="Ada")
    assert project.ledger.head() == events
    with pytest.raises(RefusedByGate, match="approved by Ada"):
        gates.reject(project, "1", actor="Bob", reason="no")
    with pytest.raises(RefusedByGate, match="approved by Ada"):
        gates.approve(project, "1", actor="Bob")


@pytest.mark.parametrize(
    "end",
    [
        RunEnded(run="run-001", succeeded=False, reason="cancelled", exit_code=1),
        PlanEnded(plan=PLAN, run="run-001", succeeded=False, reason="", branch="b", commit="c"),
    ],
)
def test_the_gates_of_a_run_that_has_ended_wait_no_longer(project: Project, end: Event) -> None:
    raised(project)
    record(project, end)
    assert gates.waiting(project).gates == ()
    with pytest.raises(RefusedByGate, match="its run has ended"):
        gates.approve(project, "1", actor="Ada")
    assert [row.status for row in gates.every(project).gates] == ["closed"]


def test_a_commit_with_another_tree_is_not_taken(project: Project) -> None:
    made, _, base = changed(project, "on: [push]\n")
    with pytest.raises(GitFailed, match="does not have the tree"):
        gates.raise_(
            project,
            PassGate(
                plan=PLAN,
                step=STEP,
                attempt=1,
                gate=GATE,
                tree="0" * 40,
                commit=made,
                parent=base,
                reasons=REASONS,
            ),
            "run-001",
        )


# What the run asks


def asked(project: Project, text: str = "on: [push]\n") -> PassGate:
    made, tree, base = changed(project, text)
    return PassGate(
        plan=PLAN, step=STEP, attempt=1, gate=GATE, commit=made, tree=tree, parent=base, reasons=REASONS
    )


def test_a_run_waits_until_somebody_decided_and_then_goes_on(project: Project) -> None:
    effect = asked(project)
    for _ in range(2):
        with pytest.raises(NeedsPerson, match="`gate-001` must be opened first") as waiting:
            gates.passed(project, effect, "run-001")
    assert "planforge resume run-001" in text(waiting.value.hint)
    gates.approve(project, "gate-1", actor="Ada")
    assert gates.passed(project, effect, "run-001") == YES
    assert gates.passed(project, effect, "run-001") == YES
    with pytest.raises(NeedsPerson, match="gate-002"):
        gates.passed(project, effect, "run-002")


def about_a_document(project: Project) -> tuple[PassGate, Path]:
    """A gate about a document besides the tree, which waits; and the document."""
    effect, path = asked(project), project.root / "PLAN.md"
    path.write_text("# Plan\n")
    judged = Judged(path=path.name, object=address(path.read_bytes()))
    effect = msgspec.structs.replace(effect, documents=(judged,))
    with pytest.raises(NeedsPerson, match="gate-001"):
        gates.passed(project, effect, "run-001")
    return effect, path


def missing(path: Path) -> None:
    path.unlink()


def other(path: Path) -> None:
    path.write_text("# Plan!\n")


def no_file(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("edit", [missing, other, no_file])
def test_a_yes_is_for_documents_as_they_were_when_it_was_asked(
    project: Project, edit: Callable[[Path], None]
) -> None:
    effect, path = about_a_document(project)
    gates.approve(project, "1", actor="Ada")
    edit(path)
    assert gates.passed(project, effect, "run-001").void
    assert [(gate.status, gate.edited) for gate in gates.every(project).gates] == [("void", "PLAN.md")]
    if path.is_dir():
        path.rmdir()
    path.write_text("# Plan\n")
    assert gates.passed(project, effect, "run-001") == YES
    edit(path)
    assert gates.passed(project, effect, "run-001") == YES  # it was used before
    assert [gate.status for gate in gates.every(project).gates] == ["used"]


def test_the_same_tree_with_another_document_takes_the_place_of_what_waits(project: Project) -> None:
    effect, path = about_a_document(project)
    gates.approve(project, "1", actor="Ada")
    other(path)
    judged = Judged(path=path.name, object=address(path.read_bytes()))
    anew = msgspec.structs.replace(effect, documents=(judged,))
    with pytest.raises(NeedsPerson, match="gate-002"):
        gates.passed(project, anew, "run-001")
    assert [gate.status for gate in gates.every(project).gates] == ["superseded", "waiting"]


def test_a_no_stands_though_a_document_is_edited_after_it(project: Project) -> None:
    effect, path = about_a_document(project)
    gates.reject(project, "1", actor="Ada", reason="too long")
    other(path)
    assert gates.passed(project, effect, "run-001") == Decision(
        approved=False, actor="Ada", reason="too long"
    )


def test_a_run_is_told_a_no(project: Project) -> None:
    effect = asked(project)
    with pytest.raises(NeedsPerson):
        gates.passed(project, effect, "run-001")
    gates.reject(project, "1", actor="Ada", reason="no")
    assert gates.passed(project, effect, "run-001") == Decision(approved=False, actor="Ada", reason="no")


def race(root: Path, run: str, content: str, start: object, results: object) -> None:
    start.wait()  # type: ignore[attr-defined]
    taken = take(Project(root), content, run)
    results.put(run if taken else "")  # type: ignore[attr-defined]


@pytest.mark.dear
def test_of_several_runs_that_take_a_yes_at_once_one_gets_it(project: Project) -> None:
    content = raised(project).content
    gates.approve(project, "1", actor="Ada")
    project.ledger.close()
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(4), context.Queue()
    workers = [
        context.Process(target=race, args=(project.root, f"run-{n}", content, start, results))
        for n in range(4)
    ]
    for worker in workers:
        worker.start()
    won = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(120)
    assert len([run for run in won if run]) == 1


# Who decides


def proposed(project: Project, agent: str) -> None:
    record(
        project,
        PatchProposed(
            plan=PLAN, step=STEP, attempt=1, commit="c", tree="t", files=(), claim="done", agent=agent
        ),
    )


@pytest.mark.parametrize(
    "actor",
    [
        "grok-7",
        "Grok 7",
        "GROK-7",
        " grok_7 ",
        "grok-7 <grok@example.org>",
        "\N{FULLWIDTH LATIN SMALL LETTER G}rok-7",
        "claude",
        "Claude",
        "codex",
        "rehearsal",
    ],
)
def test_an_agent_does_not_decide_by_whatever_name(project: Project, actor: str) -> None:
    proposed(project, "grok-7")
    raised(project)
    for decide in (gates.approve, gates.reject):
        with pytest.raises(RefusedByGate, match="is the name of an agent"):
            decide(project, "1", actor=actor, reason="fine")
    assert gates.waiting(project).gates


@pytest.mark.parametrize("actor", ["Claude Monet", "Ada", f"{NAME} <{EMAIL}>"])
def test_a_person_decides_though_the_name_reminds_of_one(project: Project, actor: str) -> None:
    proposed(project, "claude")
    raised(project)
    assert gates.approve(project, "1", actor=actor).gate.actor == actor


def test_an_agent_that_worked_on_another_plan_is_an_agent_here_if_it_is_known(project: Project) -> None:
    raised(project)
    with pytest.raises(RefusedByGate):
        gates.approve(project, "1", actor="gemini")


def test_somebody_at_a_terminal_is_who_git_says(project: Project) -> None:
    assert deciders.person(project, None, terminal=True, environment={}) == f"{NAME} <{EMAIL}>"
    assert deciders.person(project, " Ada ", terminal=False, environment={}) == "Ada"


def test_without_a_terminal_it_has_to_be_said_who_decides(project: Project) -> None:
    with pytest.raises(NeedsPerson, match="no terminal"):
        deciders.person(project, None, terminal=False, environment={})
    with pytest.raises(InvalidInput, match="names nobody"):
        deciders.person(project, "  ", terminal=False, environment={})


def test_somebody_whom_git_does_not_know_says_who_they_are(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    git(project.root, "config", "--unset", "user.name")
    if project.git.identity()[0] == "Planforge":  # no setting of the machine's either
        with pytest.raises(InvalidInput, match="git does not know who you are"):
            deciders.person(project, None, terminal=True, environment={})


def test_a_process_that_planforge_started_decides_nothing(project: Project) -> None:
    for given in ("Ada", None):
        with pytest.raises(RefusedByGate, match="started by Planforge"):
            deciders.person(project, given, terminal=True, environment={COOKIE: "abc"})


ASK = """
import sys
from collections.abc import Callable
from pathlib import Path
from planforge.app.decisions import deciders, gates
from planforge.app.project import Project
from planforge.errors import RefusedByGate
try:
    print(deciders.person(Project(Path(sys.argv[1])), "Ada", terminal=False, environment={}))
except RefusedByGate as error:
    print(error.message)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the environment of another process cannot be read here")
@pytest.mark.parametrize(
    ("known", "answer"), [(True, "this process was started by Planforge"), (False, "Ada")]
)
def test_dropping_the_cookie_does_not_help_a_child_of_an_agent(
    project: Project, known: bool, answer: str
) -> None:
    """The shell has the cookie of a program that this project runs; its child has not."""
    records = project.state / RECORDS
    records.mkdir(parents=True, exist_ok=True)
    if known:
        (records / "c00k1e").write_text("{}")
    words = [
        "sh",
        "-c",
        '"$@"; true',
        "sh",
        "env",
        "-u",
        COOKIE,
        sys.executable,
        "-c",
        ASK,
        str(project.root),
    ]
    shown = subprocess.run(
        words, env=os.environ | {COOKIE: "c00k1e"}, capture_output=True, text=True, timeout=120, check=False
    )
    assert shown.stdout.startswith(answer), shown.stderr


@pytest.mark.skipif(not tried(Level.PROCESSES).works, reason="processes cannot be followed here")
@pytest.mark.parametrize(
    "without", [[], ["env", "-u", COOKIE], ["setsid", "--wait", "env", "-i", "PATH=/usr/bin:/bin"]]
)
def test_an_agent_that_runs_the_command_itself_is_refused(project: Project, without: list[str]) -> None:
    """Started as agents are, where files are not confined: the command is the last thing that says no."""
    raised(project)
    project.ledger.close()
    words = [*without, sys.executable, "-m", "planforge", "gate", "approve", "1", "--as", "Ada"]
    policy = Policy(writable=(project.root,), records=project.state / RECORDS)
    ended = asyncio.run(
        processes.run(words, cwd=project.root, seconds=120, policy=policy, level=Level.PROCESSES)
    )
    assert ended.exit_code == 5, ended.output
    assert b"agents do not decide at gates" in ended.output
    assert len(gates.waiting(Project(project.root)).gates) == 1


# What is kept and shown


def test_the_diff_and_the_reasons_are_kept_without_secrets(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "a-canary-in-a-coal-mine-7")
    raised(project, "token: a-canary-in-a-coal-mine-7\n", ("`x` is new (`a-canary-in-a-coal-mine-7`)",))
    shown = msgspec.json.encode(gates.show(project, "1")).decode()
    assert "[redacted:DEPLOY_TOKEN]" in shown
    project.ledger.close()
    kept = [path.read_bytes() for path in project.state.rglob("*") if path.is_file()]
    assert not any(b"a-canary-in-a-coal-mine-7" in content for content in kept)


def test_what_is_shown_is_what_was_raised_though_the_repository_moved_on(project: Project) -> None:
    gate = raised(project)
    git(project.root, "reflog", "expire", "--expire=now", "--all")
    git(project.root, "gc", "--quiet", "--prune=now")
    view = gates.show(project, gate.name)
    assert [(file.path, file.added, file.removed) for file in view.files] == [(CI, 1, 1)]


@pytest.mark.parametrize("name", ["gate-001", "gate-1", "1", "001", " 1 "])
def test_a_gate_is_found_by_its_name_and_by_its_number(project: Project, name: str) -> None:
    raised(project)
    assert gates.show(project, name).gate.name == "gate-001"


@pytest.mark.parametrize(
    "name", ["2", "gate-", "", "gate-one", "-1", "1; drop", "99999999999999999999", "plan-001"]
)
def test_what_is_no_gate_is_not_found(project: Project, name: str) -> None:
    raised(project)
    with pytest.raises(NotFound, match="there is no gate"):
        gates.show(project, name)


def test_a_rejection_needs_a_reason(project: Project) -> None:
    raised(project)
    with pytest.raises(InvalidInput, match="only for a reason"):
        gates.reject(project, "1", actor="Ada", reason="  ")


def test_the_tables_are_folded_anew_to_the_same_rows(project: Project) -> None:
    proposed(project, "grok-7")
    content = raised(project).content
    gates.approve(project, "1", actor="Ada")
    take(project, content, "run-001")
    raised(project, "on: [push, fork]\n")
    gates.reject(project, "2", actor="Ada", reason="no")
    raised(project, "on: []\n")
    before = gates.every(project), list(project.ledger.query("SELECT * FROM authors"))
    project.ledger.rebuild()
    assert (gates.every(project), list(project.ledger.query("SELECT * FROM authors"))) == before
    assert [row.status for row in before[0].gates] == ["used", "rejected", "waiting"]
    kinds = {type(item.event) for item in project.ledger.stream(PLAN)}
    assert {DecisionAsked, DecisionMade} <= kinds
