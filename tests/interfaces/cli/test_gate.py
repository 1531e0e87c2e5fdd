"""`planforge gate` as a person meets it: the command as a process, in a real repository."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from decided import at
from planforge.app.decisions import gates
from planforge.app.decisions.gates import GateRow
from planforge.app.project import Project
from planforge.kernel.effects import PassGate
from planforge.kernel.events import ItemOpened, PatchProposed, Payload, RunStarted
from programs import COMMAND, document, environment, planforge
from repositories import EMAIL, NAME, commit, git, repository

CI = ".github/workflows/ci.yml"
GATE = "protected/phase-1"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project.create(repository(tmp_path / "project", {"app.py": "print(1)\n", CI: "on: push\n"}))
    created = ItemOpened(item="plan-001", title="T", request="R", path="docs/plans/plan-001-t.md")
    made.ledger.append("plan-001", [created], expected=0)
    started = RunStarted(
        run="run-001", flow="plan_run", flow_version=1, subject="plan-001", request=Payload()
    )
    made.ledger.append("run-001", [started], expected=0)
    return made


def raised(project: Project, text: str = "on: [push]\n", *, path: str = CI) -> GateRow:
    base = git(project.root, "rev-parse", "HEAD")
    made = commit(project.root, {path: text})
    tree = git(project.root, "rev-parse", f"{made}^{{tree}}")
    git(project.root, "reset", "--quiet", "--hard", base)
    return gates.raise_(
        project,
        PassGate(
            plan="plan-001",
            step="phase-1",
            attempt=2,
            gate=GATE,
            tree=tree,
            commit=made,
            parent=base,
            reasons=(f"`{path}`: a CI file is changed", "`a`: b"),
        ),
        "run-001",
    )


def test_list_says_when_nothing_waits(project: Project) -> None:
    shown = planforge("gate", "list", cwd=project.root)
    assert (shown.returncode, shown.stdout) == (0, "no gate is waiting\n")
    assert planforge("gate", "list", "--all", cwd=project.root).stdout == "no gates yet\n"
    assert document("gate", "list", cwd=project.root) == {"schema_version": 1, "gates": []}


def test_list_shows_what_waits_and_why(project: Project) -> None:
    raised(project)
    shown = planforge("gate", "list", cwd=project.root).stdout.splitlines()
    assert shown[0] == f"gate-001  plan-001/phase-1  `{CI}`: a CI file is changed (and 1 more)"
    assert shown[-1] == "next: planforge gate show gate-001"
    (found,) = document("gate", "list", cwd=project.root)["gates"]
    assert (found["name"], found["status"], found["attempt"]) == ("gate-001", "waiting", 2)


def test_show_has_the_reasons_first_then_the_files_then_the_change(project: Project) -> None:
    gate = raised(project)
    shown = planforge("gate", "show", "1", cwd=project.root).stdout
    places = [
        shown.index(text) for text in ("waiting", gate.content, "Why", "a CI file", "Files", f"=== {CI}")
    ]
    assert places == sorted(places)
    assert "\n    1       - on: push\n          1 + on: [push]\n" in shown
    assert shown.rstrip().endswith('or    planforge gate reject gate-001 --reason "..."')
    assert "\x1b" not in shown
    (file,) = document("gate", "show", "gate-001", cwd=project.root)["files"]
    assert file["hunks"] == [
        [{"old": 1, "new": None, "text": "on: push"}, {"old": None, "new": 1, "text": "on: [push]"}]
    ]


def test_show_writes_out_what_a_terminal_would_obey_or_hide(project: Project) -> None:
    raised(
        project, "a: 1\x1b[2K\x1b[1A\rb: 2\x08\x9b31m \u202eevil\u2066 \u200b#\n" + "x" * 5000 + "hidden\n"
    )
    shown = planforge("gate", "show", "1", cwd=project.root).stdout
    assert "a: 1\\x1b[2K\\x1b[1A\\x0db: 2\\x08\\x9b31m \\u202eevil\\u2066 \\u200b#" in shown
    assert "… and 3006 more characters" in shown
    assert not set("\x1b\r\x08\x9b\u202e\u2066\u200b") & set(shown)


def test_show_writes_out_odd_names(project: Project) -> None:
    raised(project, path="a\u202eb.yml")
    shown = planforge("gate", "show", "1", cwd=project.root).stdout
    assert "a\\u202eb.yml" in shown
    assert "\u202e" not in shown


def test_approve_opens_the_gate_and_says_what_to_resume(project: Project) -> None:
    gate = raised(project)
    shown = planforge("gate", "approve", "1", "--as", "Ada", "--reason", "fine", cwd=project.root)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines() == [
        f"approved gate-001 by Ada, for tree {gate.content[:12]} and no other",
        "next: planforge resume run-001",
    ]
    assert gates.every(project).gates[0].status == "approved"
    assert "approved by Ada: fine" in planforge("gate", "show", "1", cwd=project.root).stdout
    assert "approved" in planforge("gate", "list", "--all", cwd=project.root).stdout
    assert "Ada approved gate protected/phase-1" in planforge("log", "-n", "1", cwd=project.root).stdout


def test_show_says_of_a_yes_that_it_opens_nothing_any_more(project: Project) -> None:
    raised(project)
    gates.approve(project, "1", actor="Ada", reason="fine")
    assert "\napproved by Ada: fine\n" in planforge("gate", "show", "1", cwd=project.root).stdout
    raised(project, "on: [push, fork]\n")
    shown = planforge("gate", "show", "1", cwd=project.root).stdout
    assert "\napproved by Ada: fine (superseded: it opens nothing)\n" in shown
    gate = gates.approve(project, "2", actor="Ada").gate
    gates.take(project, at("plan-001", GATE, gate.content), "run-001")
    assert "\napproved by Ada\n" in planforge("gate", "show", "2", cwd=project.root).stdout


def test_reject_keeps_who_and_why(project: Project) -> None:
    raised(project)
    found = document("gate", "reject", "1", "--as", "Ada", "--reason", " no ", cwd=project.root)
    assert (found["gate"]["status"], found["gate"]["actor"], found["gate"]["reason"]) == (
        "rejected",
        "Ada",
        "no",
    )
    assert found["runs"] == ["run-001"]
    assert "Ada rejected gate protected/phase-1" in planforge("log", "-n", "1", cwd=project.root).stdout


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["show", "2"], 3, "there is no gate `2`"),
        (["approve", "nothing", "--as", "Ada"], 3, "there is no gate `nothing`"),
        (["approve", "1"], 6, "there is no terminal"),
        (["approve", "1", "--as", ""], 2, "`--as` names nobody"),
        (["approve", "1", "--as", "Grok"], 5, "is the name of an agent"),
        (["reject", "1", "--as", "Ada"], 2, "--reason"),
        (["reject", "1", "--as", "Ada", "--reason", " "], 2, "only for a reason"),
        (["approve"], 2, "GATE"),
    ],
)
def test_what_makes_no_sense_or_is_not_theirs_is_refused(
    project: Project, words: list[str], code: int, problem: str
) -> None:
    patch = PatchProposed(
        plan="plan-001", step="phase-1", attempt=1, commit="c", tree="t", files=(), claim="", agent="grok"
    )
    project.ledger.append("run-001", [patch], expected=None)
    raised(project)
    refused = planforge("gate", *words, cwd=project.root)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert problem in refused.stderr
    assert "Traceback" not in refused.stderr
    assert len(gates.waiting(project).gates) == 1


def test_a_process_that_planforge_started_is_refused(project: Project) -> None:
    raised(project)
    for words in (["approve", "1", "--as", "Ada"], ["reject", "1", "--as", "Ada", "--reason", "x"]):
        refused = planforge("gate", *words, cwd=project.root, extra={"PLANFORGE_COOKIE": "abc"})
        assert refused.returncode == 5
        assert "agents do not decide at gates" in refused.stderr
    assert len(gates.waiting(project).gates) == 1


def at_a_terminal(project: Project, *words: str) -> str:
    """What the command prints with a terminal at each end."""
    leader, follower = pty.openpty()
    variables = {name: value for name, value in environment({"TERM": "xterm"}).items() if name != "NO_COLOR"}
    with os.fdopen(leader, "rb", buffering=0) as terminal:
        process = subprocess.Popen(
            [*COMMAND, *words],
            cwd=project.root,
            env=variables,
            stdin=follower,
            stdout=follower,
            stderr=follower,
        )
        os.close(follower)
        shown = b""
        try:
            while part := terminal.read(65536):
                shown += part
        except OSError:  # how a terminal says that nobody is left at its other end
            pass
        assert process.wait(timeout=120) == 0, shown
    return shown.decode()


def test_somebody_at_a_terminal_needs_not_say_who_they_are_and_sees_colours(project: Project) -> None:
    raised(project)
    shown = at_a_terminal(project, "gate", "show", "1")
    assert "\x1b[32m" in shown
    assert "\x1b[31m" in shown
    assert f"approved gate-001 by {NAME} <{EMAIL}>" in at_a_terminal(project, "gate", "approve", "1")


@pytest.mark.parametrize("words", [[], ["list"], ["show"], ["approve"], ["reject"]])
def test_help_has_examples_that_can_be_typed(project: Project, words: list[str]) -> None:
    shown = planforge("gate", *words, "--help", cwd=project.root)
    assert shown.returncode == 0
    assert not words or "  planforge gate" in shown.stdout
