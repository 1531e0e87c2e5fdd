"""Handoffs in runs of the real program: an agent whose context is full is followed by another."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

from planforge.app.demo import story
from planforge.kernel import leases
from planforge.kernel.events import (
    AttemptRejected,
    EffectIntended,
    HandoffEmitted,
    HandoffLoaded,
    LeasePassed,
    PatchApplied,
)
from planforge.kernel.payloads import unpack
from programs import document, planforge
from rehearsals import Actions, Rehearsal, copied, eventually
from repositories import git

SECRET = "I have only written the tests so far."
TEST: Actions = [{"write": {"path": "tests/test_frequency.py", "text": story.FREQUENCY_TEST}}]
CODE: Actions = [{"write": {"path": "wordcount/frequency.py", "text": story.FREQUENCY}}]
FULL: Actions = [{"say": SECRET}, {"context": 100_000}, {"hang": True}]
FIRST = ("Role: developer", "Step: phase-1", "Attempt: 1")


def half_and_half(plan: Rehearsal) -> None:
    """The first agent of the first step writes the test and is full; the second one writes the code."""
    plan.scene(*FIRST, do=[*TEST, *FULL])
    plan.scene(*FIRST, "Turn: 2", do=[*CODE, {"say": "The rest is in."}])


def tree(plan: Rehearsal) -> str:
    return git(plan.root, "rev-parse", "planforge/plan-001^{tree}")


def prompts(plan: Rehearsal) -> list[str]:
    """What agents were asked about the first step, in order."""
    ledger = plan.ledger
    found = []
    for event in plan.events(EffectIntended):
        if event.effect == "RunAgent":
            prompt = str(json.loads(unpack(ledger, event.body))["prompt"])
            found += [prompt] if "Step: phase-1" in prompt else []
    return found


@pytest.mark.dear
def test_a_run_with_a_handover_ends_like_one_without(one_plan: Rehearsal, tmp_path: Path) -> None:
    without, handing = copied(one_plan, tmp_path / "without"), copied(one_plan, tmp_path / "handing")
    without.scene(*FIRST, do=[*TEST, *CODE, {"say": "It is in."}])
    half_and_half(handing)

    for plan in (without, handing):
        process = planforge("plan", "run", "1", cwd=plan.root)
        assert process.returncode == 0, process.stderr

    assert tree(handing) == tree(without)
    assert handing.events(AttemptRejected) == without.events(AttemptRejected) == []
    assert [event.attempt for event in handing.events(PatchApplied)] == [1, 1]
    (emitted,), (loaded,), (passed,) = (
        handing.events(kind) for kind in (HandoffEmitted, HandoffLoaded, LeasePassed)
    )
    assert (emitted.holder, emitted.successor) == ("run-002/phase-1", "run-002/phase-1-1.2")
    assert (emitted.used, emitted.threshold, emitted.estimated) == (100_000, 100_000, False)
    assert (passed.successor, passed.new_fence) == (emitted.successor, emitted.fence)
    assert (loaded.handoff, loaded.holder) == (emitted.handoff, emitted.successor)
    assert leases.held(handing.ledger) == []
    assert without.events(HandoffEmitted) == []
    shown = document("handoff", "show", "plan-001/phase-1", cwd=handing.root)
    assert [file["path"] for file in shown["summary"]["touched_files"]] == ["tests/test_frequency.py"]


@pytest.mark.dear
def test_the_successor_is_told_what_is_on_record_and_not_what_the_agent_before_it_said(
    plan: Rehearsal,
) -> None:
    half_and_half(plan)
    assert planforge("plan", "run", "1", cwd=plan.root).returncode == 0
    first, second = prompts(plan)
    assert "Turn: 2" in second
    assert SECRET not in second
    assert first not in second
    state = json.loads(second[second.index("\n{") : second.rindex("\n}") + 2])
    written = git(plan.root, "hash-object", "--stdin", stdin=story.FREQUENCY_TEST.encode())
    assert state["summary"]["touched_files"] == [{"path": "tests/test_frequency.py", "hash": written}]
    assert state["summary"]["next_actions"][0] == {"action": "change", "target": "wordcount/frequency.py"}
    assert len(state["answers"]) == len(state["summary"]["queries"])


@pytest.mark.dear
def test_an_agent_that_says_nothing_of_its_context_is_counted_by_what_it_was_told_and_said(
    plan: Rehearsal,
) -> None:
    settings, table = plan.root / "planforge.toml", "[agents.profiles.rehearsal]\n"
    settings.write_text(settings.read_text().replace(table, f"{table}handoff_tokens = 1500\n"))
    plan.scene(*FIRST, do=[*TEST, {"flood": 8000}, {"hang": True}])
    plan.scene(*FIRST, "Turn: 2", do=[*CODE, {"say": "The rest is in."}])
    process = planforge("plan", "run", "1", cwd=plan.root)
    assert process.returncode == 0, process.stderr
    emitted = plan.events(HandoffEmitted)[0]
    assert emitted.estimated
    assert emitted.used >= emitted.threshold == 1500
    assert "about " in planforge("handoff", "list", cwd=plan.root).stdout


@pytest.mark.dear
def test_handing_over_has_an_end_and_the_next_attempt_is_told_why(plan: Rehearsal) -> None:
    plan.settings("[run]\nhandoffs = 1\nattempts = 2\nlease_patience = 5\n")
    plan.scene(*FIRST, do=[*TEST, *FULL])
    process = planforge("plan", "run", "1", cwd=plan.root)
    assert process.returncode == 0, process.stderr
    (rejected,) = plan.events(AttemptRejected)
    assert rejected.reason == "it handed over once and was still not done"
    assert len(plan.events(HandoffEmitted)) == 1
    assert rejected.reason in prompts(plan)[-1]
    assert leases.held(plan.ledger) == []


@pytest.mark.dear
def test_each_attempt_hands_over_for_itself(plan: Rehearsal) -> None:
    plan.scene(*FIRST, do=[*TEST, *FULL])
    plan.scene(*FIRST, "Turn: 2", do=[{"exit": 3}])
    plan.scene("Step: phase-1", "Attempt: 2", do=[*CODE, *FULL])
    plan.scene("Step: phase-1", "Attempt: 2", "Turn: 2", do=[*TEST, {"say": "The rest is in."}])
    process = planforge("plan", "run", "1", cwd=plan.root)
    assert process.returncode == 0, process.stderr
    emitted = plan.events(HandoffEmitted)
    assert [event.handoff for event in emitted] == ["plan-001/phase-1#1", "plan-001/phase-1#2"]
    assert [event.successor for event in emitted] == ["run-002/phase-1-1.2", "run-002/phase-1-2.2"]
    second = prompts(plan)[-1]
    assert '"wordcount/frequency.py"' in second[second.index('"touched_files"') :]
    assert leases.held(plan.ledger) == []


@pytest.mark.dear
def test_without_handoffs_an_agent_is_left_to_look_after_its_context_itself(plan: Rehearsal) -> None:
    plan.settings("[run]\nhandoffs = 0\n")
    plan.scene(*FIRST, do=[{"context": 120_000}, {"sleep": 1}, *TEST, *CODE, {"say": "It is in."}])
    assert planforge("plan", "run", "1", cwd=plan.root).returncode == 0
    assert plan.events(HandoffEmitted) == []
    assert plan.events(AttemptRejected) == []


@pytest.mark.dear
def test_who_only_reads_never_hands_over(plan: Rehearsal) -> None:
    plan.scene("Role: auditor", do=[{"context": 120_000}, {"sleep": 1}, {"say": story.CLEAN_AUDIT}])
    assert planforge("plan", "run", "1", cwd=plan.root).returncode == 0
    assert plan.events(HandoffEmitted) == []


@pytest.mark.dear(but="the handover")
@pytest.mark.parametrize("moment", ["the handover", "the second turn"])
def test_a_run_that_is_killed_in_a_handover_loses_none_of_the_work(
    plan: Rehearsal, running: list[subprocess.Popen[str]], moment: str
) -> None:
    half_and_half(plan)
    if moment == "the second turn":
        plan.scene(*FIRST, "Turn: 2", do=[{"hang": True}])
    process = plan.start("plan", "run", "1")
    running.append(process)
    if moment == "the handover":
        eventually(lambda: any(event.effect == "HandOver" for event in plan.events(EffectIntended)))
    else:
        eventually(lambda: len(prompts(plan)) == 2)
    process.kill()
    process.communicate()
    plan.as_it_was()
    half_and_half(plan)

    resumed = planforge("resume", cwd=plan.root)

    assert resumed.returncode == 0, resumed.stderr
    assert plan.events(AttemptRejected) == []
    (emitted,) = plan.events(HandoffEmitted)
    assert emitted.successor == "run-002/phase-1-1.2"
    partial = "refs/planforge/archive/run-002/phase-1-1.turn-1"
    assert git(plan.root, "show", f"{partial}:tests/test_frequency.py") == story.FREQUENCY_TEST.rstrip("\n")
    asked = [json.loads(line) for line in journal(plan).read_text().splitlines()]
    first = hashlib.sha256(prompts(plan)[0].encode()).hexdigest()
    assert sum(line["event"] == "asked" and line["prompt"] == first for line in asked) == 1
    assert leases.held(plan.ledger) == []


def journal(plan: Rehearsal) -> Path:
    return plan.script.with_name("journal.jsonl")
