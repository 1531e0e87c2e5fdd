"""Runs: what is stored of a request, and the way on for one that cannot be taken up."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import planforge as package
from planforge.app.demo import story
from planforge.app.project import Project
from planforge.kernel import leases
from planforge.kernel.events import ItemOpened, PatchApplied, PlanStarted, RunStarted
from planforge.kernel.payloads import unpack
from programs import document, planforge
from rehearsals import eventually, rehearsal
from workshops import workshop

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that do not survive the test."""
    found: list[subprocess.Popen[str]] = []
    yield found
    for process in found:
        process.kill()
        process.communicate()


def another_version(place: Path) -> dict[str, str]:
    """The environment of a Planforge that asks its agents in other words."""
    shutil.copytree(Path(package.__file__).parent, place / "planforge")
    prompts = place / "planforge" / "workflows" / "prompts.py"
    assert "Do not commit" in prompts.read_text()
    prompts.write_text(prompts.read_text().replace("Do not commit", "Never commit"))
    return {"PYTHONPATH": str(place)}


@pytest.mark.dear
def test_a_run_that_another_version_cannot_take_up_has_a_way_on_that_keeps_what_landed(
    tmp_path: Path, running: list[subprocess.Popen[str]]
) -> None:
    plan = rehearsal(tmp_path / "here")
    plan.scene("Step: phase-2", do=[{"hang": True}])
    process = plan.start("plan", "run", "1")
    running.append(process)
    journal = plan.script.with_name("journal.jsonl")
    calls = 4 + 3  # to forge it, and to come to the second step
    eventually(lambda: journal.read_text().count('"asked"') == calls)
    process.kill()
    process.communicate()
    plan.as_it_was()
    newer = another_version(tmp_path / "newer")
    # The agent is still of the version that is installed, which a sandbox must be told to show.
    settings, table = plan.root / "planforge.toml", "[agents.profiles.rehearsal]\n"
    shown = f'{table}reads = ["{Path(story.__file__).parents[2]}"]\n'
    settings.write_text(settings.read_text().replace(table, shown))

    refused = planforge("resume", cwd=plan.root, extra=newer)

    assert refused.returncode == 1
    assert "diverged: recorded `RunAgent`" in refused.stderr
    hint = refused.stderr.partition("\nhint: ")[2].strip()
    assert hint == (
        "end it with `planforge cancel run-002 --reason TEXT`, then `planforge plan approve plan-001` and "
        "`planforge plan run plan-001`: what has landed is kept"
    )
    assert leases.held(plan.ledger) == []
    for words in (
        ("cancel", "run-002", "--reason", "another version"),
        ("plan", "approve", "plan-001"),
        ("plan", "run", "plan-001"),
    ):
        done = planforge(*words, cwd=plan.root, extra=newer)
        assert done.returncode == 0, done.stderr
    assert plan.events(PlanStarted)[-1].kept == ("phase-1",)
    assert [event.step for event in plan.events(PatchApplied)] == ["phase-1", "phase-2"]


@pytest.mark.dear
def test_a_secret_in_a_request_is_not_stored(tmp_path: Path) -> None:
    root = workshop(tmp_path)
    request = f"{story.REQUEST}\nThe token is {SECRET}, and mine is hunter2-and-more."
    process = planforge("forge", request, cwd=root, extra={"MY_API_TOKEN": "hunter2-and-more"})
    assert process.returncode == 0, process.stderr
    ledger = Project(root).ledger
    events = [item.event for item in ledger.since()]
    (started,) = [event for event in events if isinstance(event, RunStarted)]
    (created,) = [event for event in events if isinstance(event, ItemOpened)]
    for text in (unpack(ledger, started.request).decode(), created.request):
        assert "[redacted:github-token]" in text
        assert "[redacted:MY_API_TOKEN]" in text
    every = b"".join(
        path.read_bytes()
        for path in (root / ".planforge").rglob("*")
        if path.is_file() and path.stat().st_size
    )
    assert SECRET.encode() not in every
    assert document("plan", "list", cwd=root)[0]["status"] == "REVIEW"
