"""The matrix: it goes on where it was, and nothing of it is left, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from guardrails.test_scores import seen
from planforge.errors import InvalidInput, NotFound
from planforge_guardrails import adapters, matrix
from planforge_guardrails.cases import SAMPLE, case_named, chosen
from planforge_guardrails.matrix import Job, Progress
from planforge_guardrails.shapes import Seen, Twin, Workflow

LIAR = case_named("liar")
LIAR_EVERYWHERE = chosen(["liar"])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where places are made, so that whatever is started for one can be told from all else."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_each_case_is_run_by_both_twins_with_each_orchestrator() -> None:
    jobs = matrix.jobs_for([LIAR], ["planforge", "bare"])
    assert [(job.orchestrator, job.twin) for job in jobs] == [
        ("planforge", Twin.BAD),
        ("planforge", Twin.HONEST),
        ("bare", Twin.BAD),
        ("bare", Twin.HONEST),
    ]


def test_each_workflow_of_a_case_is_run_but_what_goes_one_way_has_it_once() -> None:
    jobs = matrix.jobs_for(LIAR_EVERYWHERE, ["planforge", "bare"])
    assert [(job.orchestrator, job.workflow.value) for job in jobs if job.twin is Twin.BAD] == [
        ("planforge", "plan run"),
        ("bare", "plan run"),
        ("planforge", "fix"),
        ("planforge", "task review"),
    ]


def test_what_is_done_is_not_done_again_and_what_was_cut_off_is(tmp_path: Path) -> None:
    done = tmp_path / "deep" / "done.jsonl"
    matrix.note_done(done, seen(LIAR, Twin.BAD, "bare", tokens=7))
    whole = done.read_bytes()
    done.write_bytes(whole + whole[: len(whole) // 2])
    told: list[Progress] = []
    found = matrix.run(matrix.jobs_for([LIAR], ["bare"]), at_once=2, tell=told.append, done=done)
    assert [(each.twin, each.tokens == 7) for each in found] == [(Twin.BAD, True), (Twin.HONEST, False)]
    assert [each.resumed for each in told] == [True, False]
    assert found[1].done, found[1]
    again = matrix.run(matrix.jobs_for([LIAR], ["bare"]), at_once=2, tell=told.append, done=done)
    assert len(again) == 2
    assert told[-1].resumed


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    for text in ("my notes\nmore of them\n", "my notes"):
        path.write_text(text)
        with pytest.raises(InvalidInput, match="line 1"):
            matrix.run(matrix.jobs_for([LIAR], ["bare"]), at_once=1, tell=lambda _: None, done=path)
        assert path.read_text() == text


def test_a_script_that_never_ends_is_ended_and_that_is_seen(here: Path) -> None:
    job = Job(case="hanger", workflow=Workflow.PLAN, twin=Twin.BAD, orchestrator="bare", seconds=1.5)
    (found,) = matrix.run((job,), at_once=1, tell=lambda _: None)
    assert any("still running" in harm for harm in found.harm), found
    assert not _bearing(here)


@pytest.mark.dear
def test_a_daemon_that_has_forgotten_where_it_came_from_is_found_and_ended(here: Path) -> None:
    job = Job(case="forker", workflow=Workflow.PLAN, twin=Twin.BAD, orchestrator="bare")
    (found,) = matrix.run((job,), at_once=1, tell=lambda _: None)
    assert len(found.processes) == 1, found
    assert "time.sleep(600)" in found.processes[0]
    assert not _bearing(here)


def test_a_benchmark_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    words = [
        "bench",
        "guardrails",
        "--only",
        "hanger",
        "--no-baseline",
        "--orchestrator",
        "bare",
        "--jobs",
        "2",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "planforge", *words],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("guardrails-*/place/backstage/journal.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.wait(30)
    assert process.returncode
    assert not _bearing(tmp_path)
    assert not list(tmp_path.glob("guardrails-*"))


def test_a_case_that_cannot_be_run_is_a_result_and_not_a_success() -> None:
    (found,) = matrix.run(
        (Job(case="liar", workflow=Workflow.PLAN, twin=Twin.BAD, orchestrator="none"),),
        at_once=1,
        tell=lambda _: None,
    )
    assert "there is no orchestrator `none`" in found.error
    assert msgspec.json.decode(msgspec.json.encode(found), type=Seen) == found


def test_cases_are_chosen_by_name_by_group_by_workflow_and_as_a_sample() -> None:
    assert [(case.name, case.workflow.value) for case in chosen(["liar"])] == [
        ("liar", "plan run"),
        ("liar", "fix"),
        ("liar", "task review"),
    ]
    assert {case.group for case in chosen(groups=["tests"])} == {"tests"}
    assert {case.workflow for case in chosen(workflows=["fix"])} == {Workflow.FIX}
    assert sorted(case.name for case in chosen(sample=True)) == sorted(SAMPLE)
    assert len({case.group for case in chosen(sample=True)}) == len({case.group for case in chosen()})
    for wrong in (
        lambda: chosen(["nobody"]),
        lambda: chosen(groups=["nothing"]),
        lambda: chosen(workflows=["never"]),
        lambda: case_named("lease thief", Workflow.FIX),
        lambda: adapters.named("x"),
    ):
        with pytest.raises(NotFound):
            wrong()


def test_another_orchestrator_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_adapter.py").write_text(
        "from planforge_guardrails.adapters.bare import Bare\n\n\nclass Mine(Bare):\n    name = 'mine'\n"
    )
    about = tmp_path / "mine-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[planforge.orchestrators]\nmine = my_adapter:Mine\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "mine" in adapters.names()
    assert adapters.named("mine").name == "mine"


def _bearing(directory: Path) -> list[str]:
    """The processes whose command line or environment names a directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            told = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(directory) in told:
            found.append(path.name)
    return found
