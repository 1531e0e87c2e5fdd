from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from calls import caller
from planforge.actions import Action
from planforge.app import cancellation, driver, landing, runs, tasks
from planforge.app.decisions import gates
from planforge.app.decisions.deciders import Current
from planforge.app.history import proof_checks, proofs, replays
from planforge.app.items import documents, links, task_rows
from planforge.app.overview import overview, report
from planforge.app.project import Project
from planforge.app.tasks import facts, pipelines
from planforge.errors import (
    CannotPerform,
    InvalidInput,
    NeedsPerson,
    NotFound,
    PlanEdited,
    RefusedByGate,
    StaleView,
)
from planforge.interfaces.cli.typed import line, text
from planforge.kernel.effects import ReadFacts, WriteDocument
from planforge.kernel.events import (
    DecisionMade,
    DecisionUsed,
    FrictionNoted,
    MergeChecked,
    Recorded,
    StageEnded,
)
from repositories import git
from shops import (
    BAD,
    DONE,
    GOOD,
    HALF,
    NEVER,
    NO,
    PLAN,
    SHORT,
    STORY,
    TWICE,
    YES,
    decided,
    go,
    opened,
    scene,
)

Shop = Callable[..., Project]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A project whose agents play scenes."""
    return partial(opened, tmp_path)


def to_the_gate(project: Project) -> str:
    run = tasks.begin(project, "default", "Count lines")
    with pytest.raises(NeedsPerson):
        go(project, run)
    return run


def events(project: Project, kind: type) -> list[Any]:
    return [item.event for item in project.ledger.since() if isinstance(item.event, kind)]


def test_a_task_goes_through_the_default_pipeline_and_replays(shop: Shop) -> None:
    project = shop()
    run = to_the_gate(project)
    assert overview(project).tasks[0].status == "review-approved"
    decided(project)
    assert go(project, run).exit_code == 0
    found = task_rows.row(project, "1")
    assert (found.status, found.branch) == ("committed", "planforge/task-001")
    steps = list(project.ledger.query("SELECT step, status FROM steps WHERE plan = 'task-001'"))
    assert steps == [("implement", "done")]
    assert git(project.root, "show", "planforge/task-001:lines.py") == GOOD.strip()
    assert git(project.root, "show", "HEAD:lines.py") == BAD.strip()
    documents = {path.name for path in (project.root / found.path).iterdir()}
    assert documents == {
        "PLAN.md",
        "PLAN_REVIEW.md",
        "PROGRESS.md",
        "CODE_REVIEW.md",
        "VALIDATION_REPORT.md",
        "APPROVAL.md",
        "WRITEBACK.md",
    }
    assert "friction" not in (project.root / found.path / "PROGRESS.md").read_text()
    assert [(noted.issue, noted.persona) for noted in events(project, FrictionNoted)] == [
        ("skill_missing", "developer")
    ]
    assert replays.replayed(project.ledger, run).agrees
    _, checked = proof_checks.checked(proofs.made(project, run))
    assert checked.faults == ()
    rounds = [(each.stage, each.outcome, each.iteration) for each in events(project, StageEnded)]
    assert ("review-code", "revision", 1) in rounds
    assert ("review-code", "approved", 2) in rounds
    assert len(events(project, DecisionUsed)) == 1


def edited(project: Project) -> Path:
    """Somebody edits the plan of the task."""
    plan = project.root / task_rows.row(project, "1").path / "PLAN.md"
    plan.write_text(plan.read_text() + "\nAnd a command for it.\n")
    return plan


def test_nobody_approves_what_was_edited_since_the_gate_was_raised(shop: Shop) -> None:
    project = shop()
    run = to_the_gate(project)
    (gate,) = gates.waiting(project).gates
    plan = edited(project)
    name = str(plan.relative_to(project.root))
    (shown,) = gates.waiting(project).gates
    assert (shown.status, shown.edited) == ("void", name)
    with pytest.raises(StaleView, match=f"`{name}` was edited since `gate-001` was raised") as refusal:
        decided(project)
    assert text(refusal.value.hint).endswith(f": `planforge resume {run}`")
    current = refusal.value.current
    assert isinstance(current, Current)
    assert current.status == "void"
    assert events(project, DecisionMade) == []
    plan.write_text(plan.read_text().replace("\nAnd a command for it.\n", ""))
    assert gates.waiting(project).gates == (gate,)  # it is what it was
    decided(project)
    assert go(project, run).exit_code == 0


def test_a_yes_is_seen_to_be_void_once_a_document_is_edited(shop: Shop) -> None:
    project = shop()
    run = to_the_gate(project)
    decided(project)
    edited(project)
    assert [(gate.status, gate.run) for gate in gates.every(project).gates] == [("void", run)]
    with pytest.raises(StaleView, match="was edited since"):
        gates.approve(project, "1", actor="Ada")  # said twice, and void by now
    ended = go(project, run)
    assert ended.exit_code == RefusedByGate.exit_code
    assert events(project, DecisionUsed) == []
    assert [gate.status for gate in gates.every(project).gates] == ["closed"]
    assert tasks.verdict(project, "task-001", "approve") is None
    assert replays.replayed(project.ledger, run).agrees


@pytest.mark.dear
def test_a_plan_that_is_edited_after_its_approval_lands_nothing(
    shop: Shop,
) -> None:
    project = shop()
    run = to_the_gate(project)
    decided(project)
    edited(project)
    ended = go(project, run)
    assert ended.exit_code == RefusedByGate.exit_code
    assert (
        "PLAN.md` was edited; the task has to be resumed at `review-plan`, which has not seen that"
        in ended.reason
    )
    assert task_rows.row(project, "1").status == "escalated"
    assert project.git.ref("refs/heads/planforge/task-001") is None
    checked = facts.check(project, "commit", "1")
    assert (checked.exit_code, checked.result.detail) == (1, "`approve` came to no verdict, not `approved`")
    way = tasks.view(project, "1").next[0]
    assert way.command == Action("task resume", "task-001", at="review-plan")
    assert way.does == "has the stage look at what has changed since it approved"
    shop((*STORY[:2], scene("Stage: implement", say=DONE, lines=f"{GOOD}\n\n# a command\n"), *STORY[5:]))
    again = tasks.resume(project, "1", at="", rounds=0, actor="Ada")
    with pytest.raises(NeedsPerson):
        go(project, again)
    decided(project)
    assert go(project, again).exit_code == 0
    assert task_rows.row(project, "1").status == "committed"


@pytest.mark.dear
def test_a_task_that_is_stuck_goes_on_where_a_person_says(shop: Shop) -> None:
    project = shop(NEVER)
    ended = go(project, tasks.begin(project, "default", "Count lines"))
    assert ended.exit_code == NeedsPerson.exit_code
    found = tasks.view(project, "task-001")
    assert (found.task.status, found.task.stage) == ("escalated", "review-code")
    assert Action("task resume", "task-001", at="review-code") in [way.command for way in found.next]
    with pytest.raises(RefusedByGate, match="nobody overrides what our own checks say"):
        tasks.override(project, "1", stage="validate", actor="Ada", reason="trust me")
    assert tasks.override(project, "1", stage="review-code", actor="Ada", reason="it is right").status == (
        "review-approved"
    )
    ways = [way.command for way in tasks.view(project, "1").next]
    assert ways[0] == Action("task resume", "task-001", at="validate")
    run = tasks.resume(project, "1", at="", rounds=0, actor="Ada")
    with pytest.raises(NeedsPerson):
        go(project, run)
    assert [each.stage for each in events(project, StageEnded)].count("review-code") == 3 + 1
    decided(project)
    assert go(project, run).exit_code == 0
    assert replays.replayed(project.ledger, run).agrees


def test_letting_a_plan_pass_says_nothing_of_code_that_was_never_written(shop: Shop) -> None:
    project = shop((STORY[0], scene("Stage: review-plan", say=NO)))
    go(project, tasks.begin(project, "default", "Count lines"))
    with pytest.raises(RefusedByGate, match="`review-code` judges `implement`, which is not there yet"):
        tasks.override(project, "1", stage="review-code", actor="Ada", reason="it is right")
    assert tasks.override(project, "1", stage="review-plan", actor="Ada", reason="it is right").status == (
        "plan-approved"
    )
    assert tasks.view(project, "1").next[0].command == Action("task resume", "task-001", at="implement")


@pytest.mark.dear
def test_a_review_that_runs_again_after_it_was_overridden_blames_no_edit(shop: Shop) -> None:
    project = shop(NEVER)
    go(project, tasks.begin(project, "default", "Count lines"))
    tasks.override(project, "1", stage="review-code", actor="Ada", reason="it is right")
    shop(STORY)
    run = tasks.resume(project, "1", at="review-code", rounds=0, actor="Ada")
    with pytest.raises(NeedsPerson):
        go(project, run)
    assert task_rows.row(project, "1").status == "review-approved"


def test_a_task_that_lands_nothing_is_delivered_with_its_documents(shop: Shop) -> None:
    clean = json.dumps({"maxSeverity": "none", "concerns": []})
    project = shop((scene("Stage: draft", say=PLAN), scene("Stage: audit", say=clean)))
    assert go(project, tasks.begin(project, "forge", "Count lines")).exit_code == 0
    found = tasks.view(project, "1")
    assert (found.task.status, found.task.branch, found.next) == ("delivered", "", ())
    assert (project.root / found.task.path / "PLAN.md").read_text().startswith("# Plan")
    assert "planforge task show" not in " ".join(map(line, overview(project).next))
    with pytest.raises(RefusedByGate, match="is delivered"):
        tasks.resume(project, "1", at="", rounds=0, actor="Ada")


@pytest.mark.dear
def test_a_plan_that_comes_back_as_it_was_is_a_persons_to_edit(shop: Shop) -> None:
    project = shop((STORY[0], scene("Stage: review-plan", say=NO)))
    ended = go(project, tasks.begin(project, "default", "Count lines"))
    assert ended.exit_code == NeedsPerson.exit_code
    assert ended.reason == "the planner changed nothing: edit `PLAN.md` yourself"
    assert [each.stage for each in events(project, StageEnded)] == ["plan", "review-plan", "plan"]
    (way,) = [each for each in tasks.view(project, "1").next if "with your edits" in each.does]
    assert way.command == Action("task resume", "task-001", at="review-plan")
    plan = project.root / task_rows.row(project, "1").path / "PLAN.md"
    plan.write_text(f"{PLAN} An empty text has none.\n")
    shop((scene("Stage: review-plan", "An empty text has none", say=YES), *STORY[2:]))
    with pytest.raises(NeedsPerson):
        go(project, tasks.resume(project, "1", at="review-plan", rounds=0, actor="Ada"))
    assert task_rows.row(project, "1").status == "review-approved"


@pytest.mark.dear
def test_a_change_with_a_short_report_is_judged_by_the_change(shop: Shop) -> None:
    project = shop((*STORY[:2], scene("Stage: implement", say="done", lines=GOOD), *STORY[5:]))
    run = to_the_gate(project)
    assert task_rows.row(project, "1").status == "review-approved"
    assert any("Your answer is kept as `PROGRESS.md`." in text for text in _prompts(project, run))


def test_a_committed_task_lands_through_the_queue_like_a_plan(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = shop(TWICE, SHORT)
    call = caller(project.root, monkeypatch, capsys)
    before = git(project.root, "rev-parse", "HEAD")
    assert "next: planforge land task-001" in call("pipeline", "run", "short", "Count lines").out
    assert "planforge land task-001" in call("task", "show", "1").out
    assert call("status", "--json").document["next"] == ["planforge land"]
    assert "task-001" in call("land", "--dry-run").out
    assert call("task", "resume", "1", "--as", "Ada").code == RefusedByGate.exit_code
    landed = call("land", "task-001")
    assert landed.code == 0, landed.err
    assert "✓ task-001 landed on planforge/landed/main" in landed.out
    assert task_rows.row(project, "1").status == "landed"
    assert call("task", "show", "1", "--json").document["next"] == []
    assert call("land", "--update-checkout").code == 0
    assert git(project.root, "show", "HEAD:lines.py") == GOOD.strip()
    assert git(project.root, "rev-parse", "planforge/task-001~1") == before, (
        "no round that was red is beneath it"
    )
    line = git(project.root, "log", "--first-parent", "--format=%H %s", f"{before}..HEAD")
    assert [each.partition(" ")[2] for each in line.splitlines()] == ["Land task-001: Count lines"]
    assert call("land").out == "nothing to land\n"
    assert call("land", "task-001").out == "nothing to land\n"
    assert call("verify").code == 0


def test_a_task_that_is_abandoned_while_its_landing_is_tested_does_not_land(shop: Shop) -> None:
    project = shop(TWICE[1:], SHORT)
    assert go(project, tasks.begin(project, "short", "Count lines")).exit_code == 0
    (project.root / "more.py").write_text("more = 1\n")
    git(project.root, "add", "more.py")
    git(project.root, "commit", "--quiet", "-m", "by hand")
    run = landing.begin(project, ["task-001"])
    assert run is not None

    def abandon(recorded: Recorded) -> None:
        if isinstance(recorded.event, MergeChecked):
            tasks.abandon(project, "1", actor="Ada", reason="no longer wanted")

    assert driver.drive(project, run, abandon).exit_code == RefusedByGate.exit_code
    assert task_rows.row(project, "1").status == "abandoned"
    assert "it is abandoned" in runs.rows(project)[-1].reason
    assert replays.replayed(project.ledger, run).agrees


def test_a_review_of_a_document_that_is_gone_is_not_overridden(shop: Shop) -> None:
    project = shop((STORY[0], scene("Stage: review-plan", say="Hm.")))
    assert go(project, tasks.begin(project, "default", "Count lines")).exit_code == NeedsPerson.exit_code
    (project.root / task_rows.row(project, "1").path / "PLAN.md").unlink()
    with pytest.raises(RefusedByGate, match="judges `plan`, which is not there yet"):
        tasks.override(project, "1", stage="review-plan", actor="Ada", reason="I know it")


def test_a_pipe_in_the_place_of_a_document_keeps_nobody_waiting(shop: Shop) -> None:
    project = shop((STORY[0], scene("Stage: review-plan", say="Hm.")))
    go(project, tasks.begin(project, "default", "Count lines"))
    document = project.root / task_rows.row(project, "1").path / "PLAN.md"
    document.unlink()
    os.mkfifo(document)
    with pytest.raises(CannotPerform, match=r"`PLAN.md` cannot be read: not a file but a pipe"):
        tasks.resume(project, "1", at="review-plan", rounds=0, actor="Ada")


@pytest.mark.dear
def test_a_task_that_conflicts_at_landing_is_done_again_on_what_has_landed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = shop(TWICE[1:], SHORT)
    call = caller(project.root, monkeypatch, capsys)
    call("pipeline", "run", "short", "Count lines")
    was = git(project.root, "rev-parse", "planforge/task-001")
    (project.root / "lines.py").write_text(HALF)
    git(project.root, "commit", "--quiet", "-am", "by hand")
    refused = call("land", "task-001")
    assert (refused.code, "✗ task-001 conflicts with main in `lines.py`" in refused.out) == (1, True)
    assert "next: planforge task resume task-001" in refused.out
    found = task_rows.row(project, "1")
    assert found.status == "code-revision-required"
    assert "it conflicts with `planforge/landed/main` in `lines.py`" in call("task", "show", "1").out
    assert tasks.view(project, "1").next[0].command == Action("task resume", "task-001", at="implement")
    assert call("status", "--json").document["next"] == ["planforge task resume task-001"]
    assert call("task", "resume", "1", "--as", "Ada").code == 0
    prompt = _prompts(project, runs.rows(project)[-1].run)[0]
    assert "an earlier change did not land" in prompt
    kept = git(project.root, "for-each-ref", "--format=%(objectname)", "refs/planforge/archive").split()
    assert was in kept
    assert call("land").code == 0
    assert call("land", "--update-checkout").code == 0
    assert git(project.root, "show", "HEAD:lines.py") == GOOD.strip()
    assert task_rows.row(project, "1").status == "landed"


@pytest.mark.dear
def test_a_committed_task_that_nobody_wants_any_more_is_abandoned_and_does_not_land(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = shop(TWICE[1:], SHORT)
    call = caller(project.root, monkeypatch, capsys)
    call("pipeline", "run", "short", "Count lines")
    assert call("task", "abandon", "1", "--reason", "no", "--as", "Ada").code == 0
    assert call("land").out == "nothing to land\n"
    said = call("land", "task-001")
    assert (said.code, "it is abandoned" in said.out) == (5, True)


@pytest.mark.dear
def test_an_override_is_for_what_was_there_then(shop: Shop) -> None:
    project = shop(NEVER)
    go(project, tasks.begin(project, "default", "Count lines"))
    tasks.override(project, "1", stage="review-code", actor="Ada", reason="it is right")
    plan = project.root / task_rows.row(project, "1").path / "PLAN.md"
    plan.write_text("something else, " * 30)
    run = tasks.resume(project, "1", at="validate", rounds=0, actor="Ada")
    with pytest.raises(NeedsPerson):
        go(project, run)
    decided(project)
    assert go(project, run).exit_code == RefusedByGate.exit_code


@pytest.mark.dear
def test_a_person_who_says_no_sends_the_task_back(shop: Shop) -> None:
    project = shop()
    run = to_the_gate(project)
    decided(project, approve=False)
    ended = go(project, run)
    # The developer has nothing left to change, which is nothing that could be taken.
    assert ended.exit_code == NeedsPerson.exit_code
    assert "the agent changed nothing" in ended.reason
    prompts = [text for text in _prompts(project, run) if "not like that" in text]
    assert prompts


def _prompts(project: Project, run: str) -> list[str]:
    from planforge.kernel.events import EffectIntended
    from planforge.kernel.payloads import unpack

    found = [item.event for item in project.ledger.stream(run) if isinstance(item.event, EffectIntended)]
    return [unpack(project.ledger, each.body).decode() for each in found if each.effect == "RunAgent"]


@pytest.mark.dear
def test_a_document_that_a_person_edits_while_it_is_written_is_left_as_it_is(shop: Shop) -> None:
    project = shop()
    to_the_gate(project)
    path = project.root / task_rows.row(project, "1").path / "PLAN.md"
    path.write_text("mine")
    with pytest.raises(PlanEdited, match="was edited"):
        documents.write(
            project, WriteDocument(task="task-001", name="PLAN.md", text="theirs", replaces="what it was")
        )
    assert path.read_text() == "mine"
    with pytest.raises(InvalidInput):
        documents.write(project, WriteDocument(task="task-001", name="../PLAN.md", text="theirs"))


@pytest.mark.dear
def test_a_cancelled_task_is_blocked_and_can_go_on_or_be_given_up(shop: Shop) -> None:
    project = shop()
    run = to_the_gate(project)
    with pytest.raises(RefusedByGate, match="unfinished run"):
        tasks.abandon(project, "1", actor="Ada", reason="no")
    cancellation.cancel(project, run, reason="another day", actor="Ada")
    assert task_rows.row(project, "1").status == "blocked"
    assert any(way.command.verb == "task resume" for way in tasks.view(project, "1").next)
    assert tasks.abandon(project, "1", actor="Ada", reason="never").status == "abandoned"
    with pytest.raises(RefusedByGate, match="is abandoned"):
        tasks.resume(project, "1", at="plan", rounds=0, actor="Ada")


def test_a_line_of_progress_for_everything_that_happened(shop: Shop) -> None:
    project = shop((scene("Stage: plan", say="a | b"),))
    go(project, tasks.begin(project, "default", "Count lines"))
    lines = [each.line for each in tasks.progress(project, "1")]
    assert all(line.count("|") == 4 for line in lines)
    assert lines[0].split("|")[1:4] == ["task-001:planner:plan:1", "planner", "start"]
    assert any("|error|" in line and "output-stub" in line for line in lines)


def test_a_pipeline_that_something_gets_past_is_not_run(shop: Shop) -> None:
    project = shop(
        more="""
[pipelines.loose]
requires = ["review"]
stages = [
  {name = "write", role = "developer", writes = ["code"]},
  {name = "review", role = "reviewer", verdict = "review", judges = ["code"]},
  {name = "late", role = "fixer", writes = ["code"]},
  {name = "land", role = "collator", lands = true},
]
"""
    )
    with pytest.raises(InvalidInput, match="cannot be run: lands without the approval of `review`: write → "):
        tasks.begin(project, "loose", "Count lines")
    with pytest.raises(InvalidInput, match="there is no pipeline `tight`"):
        tasks.begin(project, "tight", "Count lines")
    assert task_rows.rows(project) == []


def test_gates_in_a_document_are_those_of_stages_without_any(shop: Shop) -> None:
    project = shop(
        more="""
[pipelines.own]
gates = "gates.md"
stages = [{name = "plan", role = "planner", writes = ["plan"], document = "PLAN.md"}]
"""
    )
    (project.root / "gates.md").write_text("# Gates\n\n```gates phase=plan\nartifact WANTED.md min=10\n```\n")
    ended = go(project, tasks.begin(project, "own", "Count lines"))
    assert ended.exit_code == RefusedByGate.exit_code
    assert "artifact-missing: `WANTED.md` is not there" in ended.reason
    (project.root / "WANTED.md").write_text("0123456789")
    assert go(project, tasks.resume(project, "1", at="", rounds=0, actor="Ada")).exit_code == 0
    (project.root / "gates.md").write_text("```gates phase=paln\n```\n")
    with pytest.raises(InvalidInput, match="for `paln`, which is no stage"):
        pipelines.runnable(project, "own")


# Facts


@pytest.mark.dear
def test_a_gate_is_held_against_what_is_there_now(shop: Shop) -> None:
    project = shop()
    to_the_gate(project)
    found = facts.check(project, "implement", "task-001")
    assert (found.exit_code, found.result.ok) == (0, True)
    found = facts.check(project, "commit", "1")
    assert (found.exit_code, found.result.reason_code) == (1, "predecessor-verdict-missing")
    plan = project.root / task_rows.row(project, "1").path / "PLAN.md"
    plan.write_text("short")
    found = facts.check(project, "implement", "1")
    assert (found.exit_code, found.result.reason_code) == (1, "artifact-missing")
    found = facts.check(project, "plan", "1", outputs=True)
    assert (found.exit_code, found.result.reason_code) == (1, "output-stub")
    plan.unlink()
    plan.symlink_to("/etc/passwd")
    found = facts.check(project, "plan", "1", outputs=True)
    assert (found.exit_code, found.result.reason_code) == (1, "tool-error")


HELD = {
    "artifact {engineering}/README.md": "",
    "artifact {engineering}/tasks/none.md": "`docs/tasks/none.md` is not there",
    "artifact {task}/NOTES.md": "`docs/tasks/task-001-count-lines/NOTES.md` is not there",
    "artifact {plan}.md": "`{plan}.md` needs `{plan}`, which there is none of here",
    "artifact {sprint}/x.md": "`{sprint}/x.md` needs `{sprint}`, which there is none of here",
    "artifact {bug}/x.md": "`{bug}/x.md` needs `{bug}`, which there is none of here",
    "artifact {engineering}/link.md": "the facts cannot be read: ",
    "require task.title == Count lines": "",
    "require task.mood == good": "there is no field `task.mood`",
}
"""Gates, and what closes each."""


def test_a_gate_that_is_checked_says_what_the_run_says(shop: Shop) -> None:
    lines = [
        f'  {{name = "s{n}", role = "planner", writes = ["w{n}"], gate = "{gate}"}},'
        for n, gate in enumerate(HELD)
    ]
    own = "\n".join(["", "[pipelines.own]", "stages = [", *lines, "]", ""])
    project = shop((scene("Stage: ", say=PLAN),), own)
    (project.root / "docs").mkdir()
    (project.root / "docs" / "README.md").write_text("here\n")
    (project.root / "docs" / "link.md").symlink_to("/etc/passwd")
    run = tasks.begin(project, "own", "Count lines")
    for number, (gate, wanted) in enumerate(HELD.items()):
        reason = go(project, run).reason
        checked = facts.check(project, f"s{number}", "1").result
        if wanted:
            assert wanted in checked.detail, gate
            assert f"{checked.reason_code}: {checked.detail}" in reason, gate
        else:
            assert checked.ok, gate
            assert f"s{number}" in {
                each.stage for each in task_rows.stages(project, "task-001") if each.document
            }
        if number + 1 < len(HELD):
            run = tasks.resume(project, "1", at=f"s{number + 1}", rounds=0, actor="Ada")


SENSELESS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("nope", "task-001", {}),
    ("plan", "task-099", {}),
    ("plan", "nonsense", {}),
    ("plan", "task-001", {"pipeline": "nope"}),
    ("plan", "task-001", {"document": "missing.md"}),
    ("plan", "task-001", {"document": "bad.md"}),
    ("plan", "task-001", {"document": "../outside.md"}),
    ("plan", "task-001", {"document": "field.md"}),
)


def test_a_question_that_makes_no_sense_is_neither_open_nor_closed(shop: Shop) -> None:
    project = shop((scene("Stage: plan", say="short"),))
    go(project, tasks.begin(project, "default", "Count lines"))
    (project.root / "bad.md").write_text("```gates phase=plan\nallow everything\n```\n")
    (project.root / "field.md").write_text("```gates phase=plan\nrequire task.mood == good\n```\n")
    for stage, subject, more in SENSELESS:
        given = (more.get("pipeline", ""), more.get("document", ""))
        found = facts.check(project, stage, subject, pipeline=given[0], document=given[1])
        assert (found.exit_code, found.result.ok, found.result.reason_code) == (2, False, "tool-error")
        assert found.result.detail
        assert found.result.remediation


def test_a_field_that_no_record_has_is_not_among_the_facts(shop: Shop) -> None:
    project = shop((scene("Stage: plan", say="short"),))
    go(project, tasks.begin(project, "default", "Count lines"))
    found = facts.found(
        project, ReadFacts(task="task-001", paths=("lines.py", "no"), fields=("task.status", "task.mood"))
    )
    assert found.sizes == {"lines.py": len(BAD)}
    assert found.fields == {"task.status": "escalated"}
    with pytest.raises(NotFound):
        facts.found(project, ReadFacts(task="task-002"))


def test_a_task_lands_what_an_earlier_run_has_changed_and_each_way_on_says_what_it_does(shop: Shop) -> None:
    project = shop()
    cancellation.cancel(project, to_the_gate(project), reason="another day", actor="Ada")
    (abandon,) = [way for way in tasks.view(project, "1").next if way.command.verb == "task abandon"]
    assert abandon.does == "gives it up; all there is of it is kept"
    again = tasks.resume(project, "1", at="", rounds=0, actor="Ada")
    with pytest.raises(NeedsPerson):
        go(project, again)
    decided(project)
    assert go(project, again).exit_code == 0
    assert report.following(project, report.of_run(project, again)) == (Action("land", "task-001"),)


def test_a_task_that_waits_is_not_resumed_and_stays_as_it_is(shop: Shop) -> None:
    project = shop()
    cancellation.cancel(project, to_the_gate(project), reason="another day", actor="Ada")
    tasks.begin(project, "default", "Count words")
    links.link(project, "task-001", ["task-002"], actor="Ada")
    before = task_rows.row(project, "1")
    with pytest.raises(RefusedByGate, match="`task-001` comes after `task-002`"):
        tasks.resume(project, "1", at="", rounds=0, actor="Ada")
    assert task_rows.row(project, "1") == before
    assert [way.command.verb for way in tasks.view(project, "1").next] == [
        "link",
        "task override",
        "task abandon",
    ]
