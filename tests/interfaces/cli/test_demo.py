"""The demo as a person meets it: what it prints, what it leaves, what can be done with it next."""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bare
from planforge.app import demo as demos
from planforge.app.project import Project
from planforge.errors import RefusedByGate
from planforge.kernel.driver import Call
from planforge.kernel.events import SessionKept
from planforge.workflows.demo import MakeSample
from programs import COMMAND, Told, document, environment, planforge
from rehearsals import eventually
from repositories import git


def attempts(told: Told, step: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = next(s for s in told.document["phases"] if s["id"] == step)["attempts"]
    return found


@pytest.mark.dear
def test_the_document_has_the_rounds_and_their_verdicts(told: Told) -> None:
    rounds = told.document["rounds"]
    assert [(r["round"], r["verdict"], r["decision"]) for r in rounds] == [
        (1, "revision", "continue"),
        (2, "approved", "done"),
    ]
    assert rounds[0]["findings"][0]["severity"] == "blocking"


def test_the_lying_attempt_stands_there_with_its_claim_beside_its_evidence(told: Told) -> None:
    lie, truth = attempts(told, "phase-1")
    assert "all 6 tests pass" in lie["claim"]
    assert lie["evidence"][0]["outcome"] == "fail"
    assert lie["evidence"][0]["exit_code"] == 1
    assert lie["evidence"][0]["counts"] == {"total": 6, "passed": 4, "failed": 2, "skipped": 0}
    assert lie["evidence"][0]["tree"] == lie["tree"]
    assert not lie["accepted"]
    assert "tests failed" in lie["rejected"]
    assert truth["accepted"]
    assert truth["evidence"][0]["outcome"] == "pass"


def test_the_landed_commits_carry_trailers_and_their_exact_trees_passed(told: Told) -> None:
    log = git(
        told.root,
        "log",
        "--format=%H %T %(trailers:key=Planforge-Run,valueonly,separator=)",
        told.document["branch"],
    )
    landed = [line.split() for line in log.splitlines()][:-1]
    passed = {
        evidence["tree"]: evidence
        for step in told.document["phases"]
        for attempt in step["attempts"]
        for evidence in attempt["evidence"]
        if evidence["outcome"] == "pass"
    }
    assert len(landed) == 2
    for _, tree, run in landed:
        assert tree in passed
        assert run == told.document["run"]
    assert landed[0][0] == told.document["landed_commit"]
    assert landed[0][1] == told.document["landed_tree"]
    body = git(told.root, "log", "-1", "--format=%B", told.document["branch"])
    assert "Planforge-Step: plan-001/phase-" in body
    assert "Planforge-Attempt: " in body


def test_the_landed_tree_really_passes_its_tests(told: Told, tmp_path: Path) -> None:
    git(told.root, "worktree", "add", "--detach", str(tmp_path / "check"), told.document["branch"])
    command = next(a for a in attempts(told, "phase-1") if a["accepted"])["evidence"][-1]["command"]
    run = subprocess.run(command, cwd=tmp_path / "check", capture_output=True, text=True, check=False)
    git(told.root, "worktree", "remove", "--force", str(tmp_path / "check"))
    assert run.returncode == 0
    assert "Ran 9 tests" in run.stderr


def test_the_main_checkout_is_untouched(told: Told) -> None:
    assert git(told.root, "status", "--porcelain") == ""
    assert git(told.root, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert git(told.root, "rev-list", "--count", "main") == "1"
    assert git(told.root, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert not (told.root / "wordcount" / "frequency.py").exists()


def test_the_two_phases_ran_at_the_same_time(told: Told) -> None:
    kinds = [
        (event["kind"], event["event"].get("step"))
        for event in map(json.loads, planforge("log", "-n", "0", "--json", cwd=told.root).stdout.splitlines())
        if event["kind"] in ("StepStarted", "StepCompleted")
    ]
    first_end = kinds.index(next(kind for kind in kinds if kind[0] == "StepCompleted"))
    assert {step for kind, step in kinds[:first_end] if kind == "StepStarted"} >= {"phase-1", "phase-2"}


def test_the_story_is_told_on_standard_error_and_says_that_no_model_was_called(told: Told) -> None:
    for words in (
        "drafted",
        "1 blocking",
        "revised",
        "approved by",
        "evidence says fail",
        "landed on",
        "No model",
    ):
        assert words in told.progress


def test_the_commands_it_ends_with_work(tmp_path: Path) -> None:
    process = planforge("demo", "my story", "--pace", "0", cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert "No model is called" in process.stdout
    assert "the agent said  Done: `most_common` is in and all 6 tests pass." in process.stdout
    assert "Planforge saw   fail: 2 of 6 tests failed" in process.stdout
    commands = [line.strip() for line in process.stdout.split("Try next:")[1].splitlines() if line.strip()]
    assert shlex.split(commands[0]) == ["cd", str(tmp_path / "my story")]
    for name in ("status", "log", "plan show 1"):
        assert any(command.endswith(name) for command in commands)
    for command in commands[1:]:
        tried = subprocess.run(
            shlex.split(command),
            cwd=tmp_path / "my story",
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert tried.returncode == 0, (command, tried.stderr)
        assert tried.stdout.strip()


def test_a_directory_that_is_not_empty_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    process = planforge("demo", str(tmp_path), cwd=tmp_path)
    assert process.returncode == 2
    assert "not empty" in process.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.dear
def test_without_a_directory_each_demo_gets_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "planforge-demo").mkdir()
    process = planforge("demo", "--pace", "0", "--json", cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert document("status", cwd=tmp_path / "planforge-demo-2")["plans"][0]["plan"]["status"] == "DONE"


def test_a_demo_with_an_agent_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    extra = {"PATH": "/usr/bin:/bin"}
    process = planforge("demo", "story", "--agent", "gemini", cwd=tmp_path, extra=extra)
    assert process.returncode == 4
    assert "agent `gemini` needs `gemini`, which is not on PATH" in process.stderr
    assert not (tmp_path / "story").exists()


def test_a_demo_is_live_only_with_an_agent_that_is_named(tmp_path: Path) -> None:
    process = planforge("demo", "story", "--live", cwd=tmp_path)
    assert process.returncode == 2
    assert "--live needs --agent" in process.stderr
    assert not (tmp_path / "story").exists()


def test_an_agent_that_cannot_be_pointed_at_a_script_is_refused(tmp_path: Path) -> None:
    process = planforge("demo", "story", "--agent", "rehearsal", cwd=tmp_path)
    assert process.returncode == 2
    assert "agent `rehearsal` cannot be pointed at a scripted server" in process.stderr
    assert not (tmp_path / "story").exists()


def same_story(document: dict[str, Any]) -> tuple[object, ...]:
    """What must be the same whoever plays."""
    return (
        [(r["round"], r["verdict"], r["findings"]) for r in document["rounds"]],
        [
            (step["id"], [(a["accepted"], a["claim"], a["tree"]) for a in step["attempts"]])
            for step in document["phases"]
        ],
        document["score"],
    )


@pytest.mark.dear
def test_an_agent_with_a_script_for_its_model_tells_the_same_story_also_if_it_is_interrupted(
    told: Told, tmp_path: Path
) -> None:
    pytest.importorskip("pydantic_ai", reason="the extra `[api]` is not installed")
    place, log = tmp_path / "story", tmp_path / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [*COMMAND, "demo", str(place), "--agent", "api-openai", "--pace", "0"],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=file,
        )
        try:
            eventually(lambda: "attempt 1 begins" in log.read_text() or process.poll() is not None, 300)
        finally:
            process.kill()
            process.wait()
    resumed = subprocess.run(
        [*COMMAND, "resume", "--json"], cwd=place, env=environment(), capture_output=True, check=False
    )
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert same_story(json.loads(resumed.stdout)) == same_story(told.document)
    tree = "planforge/plan-001^{tree}"
    assert git(place, "rev-parse", tree) == git(told.root, "rev-parse", tree)
    assert list((place / ".planforge" / "homes").glob("*")) == []
    ledger = Project(place).ledger
    kept = [item.event for item in ledger.since() if isinstance(item.event, SessionKept)]
    assert all(event.agent == "api-openai" for event in kept)


# Without any sandbox


@pytest.fixture
def without_sandbox(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Calls the command where nothing can be confined: the kernel refuses, and there is no bubblewrap."""
    if bare.PRCTL is None or sys.platform != "linux":
        pytest.skip("how to refuse system calls is not known for this kind of machine")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("env", "git", "prlimit", "python3", "sh"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    (programs / "gemini").write_text("#!/bin/sh\n")
    (programs / "gemini").chmod(0o755)

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, bare.__file__, *COMMAND, *words]
        env = environment() | {"PATH": str(programs)}
        return subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    return call


def test_without_any_sandbox_no_real_agent_is_started_and_it_is_said_what_to_do(
    without_sandbox: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    process = without_sandbox("demo", "story", "--agent", "gemini")
    assert process.returncode == RefusedByGate.exit_code
    assert "no sandbox works on this machine, and agent `gemini` is not started without one" in process.stderr
    assert "`planforge demo`" in process.stderr
    assert not (tmp_path / "story").exists()


@pytest.mark.dear
def test_without_any_sandbox_the_demo_says_what_that_means_and_is_played(
    without_sandbox: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    process = without_sandbox("demo", "story", "--pace", "0")
    assert process.returncode == 0, process.stderr
    assert (
        "This machine has no sandbox: agents and checks can read and change all your files" in process.stderr
    )
    assert "agent rehearsal (none)" in process.stderr
    settings = (tmp_path / "story" / "planforge.toml").read_text()
    assert settings.endswith("[sandbox]\nunconfined = true\n")


@pytest.mark.parametrize("there", [True, False])
def test_a_demo_is_checked_with_our_python_if_that_of_the_path_cannot_be_used(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    if there:
        (tmp_path / "python3").write_text("#!/bin/sh\necho 'python3: command not found' >&2\nexit 127\n")
        (tmp_path / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    project, _ = demos.begin(tmp_path / "story", pace=0)
    call = Call(run="run-001", key="", intended_at="2026-01-01T00:00:00Z", resumed=False)
    asyncio.run(demos.make_sample(project, MakeSample(sample="words"), call))
    assert project.settings.check is not None
    assert project.settings.check.command[:2] == (sys.executable, "-m")
