"""Commands do what the command line does, say what came of it, and know who gave them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest

from decided import of
from planforge.actions import TEXT, Action, Advice, Blank, Hint, Verb
from planforge.app import driver, forges, overview, runs
from planforge.app.chat import Reply, Speaker, endings, perform, talking
from planforge.app.chat import doing as doing_module
from planforge.app.chat.replies import line, shown, worded
from planforge.app.history import replays
from planforge.app.items import plans
from planforge.app.project import Project
from planforge.app.runs import background
from planforge.errors import InvalidInput, RefusedByGate
from planforge.interfaces.cli.typed import command
from planforge.kernel.driver import Call
from planforge.kernel.events import (
    BudgetReconciled,
    DecisionMade,
    EffectCompleted,
    EffectIntended,
    Event,
    RunEnded,
)
from planforge.rules.commands import Command, parse, shapes
from planforge.workflows.chat import Said, TakeActions, Taken
from planforge.workspace.launch.trees import COOKIE
from rehearsals import Rehearsal, copied
from texts import BLOCKED, CLEAN, PLAN, Scene, forged, play, says

AGENT = Speaker(depth=1)
DRAFTED = (("Role: drafter",), says(PLAN))
AUDITED = (("Role: auditor",), says(CLEAN))
ASLEEP: Scene = (("Role: drafter",), [{"sleep": 60}])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return forged(tmp_path_factory.mktemp("made"))


@pytest.fixture
def at(made: Rehearsal, tmp_path: Path) -> Rehearsal:
    return copied(made, tmp_path)


@pytest.fixture
def project(at: Rehearsal) -> Iterator[Project]:
    found = Project(at.root)
    yield found
    background.stop(background.under_way(found))
    found.ledger.close()


def typed(project: Project, text: str, speaker: Speaker = Speaker()) -> Reply:  # noqa: B008
    meant = parse(text)
    assert isinstance(meant, Command)
    return perform(project, meant, speaker)


def then(reply: Reply) -> list[str]:
    """What a reply says to type next."""
    return [line(hint, command) for hint in reply.next]


def whole(reply: Reply) -> str:
    """A reply as a person reads it."""
    return shown(reply, command)


def driven(project: Project, reply: Reply) -> Reply:
    """Drive what a command began to its end."""
    (run,) = reply.runs
    work = driver.drive_beside(project, run)
    assert work.wait(60)
    return endings.reply(project, work)


def test_every_command_is_done_by_something() -> None:
    assert set(doing_module.DOING) == set(shapes.FORMS)


def test_plans_are_listed_and_shown_with_what_to_type_next(project: Project) -> None:
    assert typed(project, "!plan list").text == "plan-001 [REVIEW] Some texts (ws-001)"
    assert typed(project, "!plan list done").text == "no plan is DONE"
    found = typed(project, "!plan show 1")
    assert "The project has a few texts more than before." in found.text
    assert "audit 1 by rehearsal: approved" in found.text
    assert then(found) == ["!plan approve plan-001"]


def test_a_plan_that_is_not_there_is_a_reply_with_the_exit_code_of_the_command_line(project: Project) -> None:
    found = typed(project, "!plan show 9")
    assert (found.exit_code, found.error) == (3, "NotFound")
    assert "`!plan list`" in whole(found)


@pytest.mark.dear
def test_a_person_approves_and_runs_a_plan_from_the_chat(at: Rehearsal, project: Project) -> None:
    approved = typed(project, "!plan approve 1", Speaker(name="Ada"))
    assert approved.exit_code == 0
    assert [event.actor for event in of(at.events(DecisionMade), "approval")] == ["Ada"]
    assert then(approved) == ["!plan run plan-001"]
    play(
        at,
        (
            (
                ("Role: developer",),
                [{"write": {"path": "one/a.txt", "text": "right\n"}}, {"say": "It is in."}],
            ),
            AUDITED,
        ),
    )
    ended = driven(project, typed(project, "!plan run 1"))
    assert (ended.kind, ended.exit_code) == ("ended", 0)
    assert then(ended) == ["!plan land plan-001"]
    landed = driven(project, typed(project, "!plan land 1"))
    assert landed.exit_code == 0


def test_a_plan_that_is_not_approved_does_not_run_and_the_reply_says_what_to_type(project: Project) -> None:
    found = typed(project, "!plan run 1")
    assert found.exit_code == 5
    assert "`!plan approve plan-001`" in whole(found)
    assert not found.runs


def test_a_plan_is_closed_or_cancelled_with_a_reason_on_record(project: Project) -> None:
    assert typed(project, "!plan close 1").error == "IllegalTransition", "it is in review"
    assert typed(project, "!plan cancel 1 nobody wants it").text == "plan-001 is CANCELLED"
    assert plans.row(project, "1").status == "CANCELLED"
    assert typed(project, "!forge 1").exit_code == 5


def test_an_approved_plan_is_run_when_it_is_forged_again(project: Project) -> None:
    typed(project, "!plan approve 1", Speaker(name="Ada"))
    found = typed(project, "!forge 1")
    assert "carries out plan-001" in found.text


def test_a_plan_whose_form_is_broken_is_not_put_to_an_auditor(at: Rehearsal, project: Project) -> None:
    path = next((at.root / "docs/plans").glob("plan-001-*.md"))
    path.write_text(path.read_text().replace("## Risks", "## Hopes"))
    found = typed(project, "!plan audit 1")
    assert found.exit_code == 5
    assert "Risks" in found.text
    assert not found.runs


def test_an_action_is_a_command_of_the_chat_where_there_is_one() -> None:
    def in_chat(hint: Hint) -> str:
        return worded(hint, command)

    assert in_chat(Advice("run {}", Action("resume", "run-003"))) == "run `!resume run-003`"
    assert in_chat(Action("plan cancel", "plan-001", reason=TEXT)) == "`!plan cancel plan-001`"
    assert in_chat(Action("gate show", "gate-001")) == "`planforge gate show gate-001`"
    keeping = Action("plan phases", "plan-001", regenerate=True, keep_done=True)
    assert in_chat(keeping) == "`!plan phases plan-001 --regenerate --keep-done`"
    assert in_chat(Action("forge", Blank("what you want"))) == '`!forge "what you want"`'
    assert in_chat(Action("forge", "it is\n\nlarge")) == '`!forge "it is\n\nlarge"`'
    assert in_chat(Action("plan create", "A cache")) == '`!plan "A cache"`'
    assert in_chat(Action("fix", "a cache", anyway=True)) == "`planforge fix 'a cache' --anyway`"
    assert in_chat(Action("forge", "plan-001", cap=2)) == "`planforge forge plan-001 --cap 2`"
    assert in_chat(Action("forge", "plan-001")) == "`!forge plan-001`"
    assert in_chat(Action("fix", again="fix-001")) == "`planforge fix --again fix-001`"


@pytest.mark.parametrize("items", [(), ("plan-001",), ("plan-001", "phase-1")])
@pytest.mark.parametrize("verb", get_args(Verb))
def test_no_action_is_another_one_in_a_chat(verb: Verb, items: tuple[str, ...]) -> None:
    """As `plan tasks` would be: `!plan tasks` makes a plan called so."""
    here = line(Action(verb, *items, reason=TEXT), command)
    if here.startswith("!"):
        meant = parse(here)
        assert isinstance(meant, Command)
        wanted = {"forge": "forge resume" if items else "forge help"}
        assert meant.name == wanted.get(verb, verb), here


def test_a_flag_that_a_chat_does_not_have_is_never_said_alone(at: Rehearsal, project: Project) -> None:
    """What is said is a command of the chat, or one of the shell with its flags."""
    assert typed(project, "!plan A cache").exit_code == 0
    replies = [
        typed(project, "!fix Rewrite everything from the ground up, in every module"),
        typed(project, "!plan A cache"),
        typed(project, "!plan this"),
        typed(project, "!forge this"),
        typed(project, "!forge it", Speaker(name="")),
        typed(project, "!plan approve 1", Speaker(name="")),
        typed(project, "!plan skip 1"),
    ]
    for reply in replies:
        assert reply.exit_code, reply.text
        code = whole(reply).split("`")[1::2]
        assert not [each for each in code if each.startswith("--") and each != "--as"], whole(reply)
        for each in code:
            if each.startswith("!"):
                assert isinstance(parse(each), Command), each
    assert len(forges.unfinished(project)) == 0


def test_what_a_chat_says_to_type_can_be_typed_there(project: Project) -> None:
    found = overview.overview(project)
    assert list(map(worded, found.next)) == [
        "`!plan show plan-001`",
        "`!plan approve plan-001`",
    ]
    assert [worded(each.command) for each in found.waiting] == ["`!plan show plan-001`"]


def test_a_fix_that_came_to_nothing_is_not_said_to_be_approved(at: Rehearsal, project: Project) -> None:
    at.settings("[run]\nattempts = 1\n")
    play(at, ((("Role: developer",), says("Nothing to do.")),))
    ended = driven(project, typed(project, "!fix The text is old"))
    assert ended.exit_code == 1
    assert ended.next == (Action("fix", again="fix-001"),)


def test_a_plan_that_stopped_says_which_phase_to_try_again(at: Rehearsal, project: Project) -> None:
    at.settings("[run]\nattempts = 1\n")
    play(at, ((("Role: developer",), says("Nothing to do.")),))
    assert then(typed(project, "!plan approve 1")) == ["!plan run plan-001"]
    ended = driven(project, typed(project, "!plan run 1"))
    assert then(ended) == ["!plan retry plan-001 phase-1", "!plan skip plan-001 phase-1"]
    refused = typed(project, "!plan close 1")
    assert "`planforge plan close plan-001 --override --reason TEXT`" in whole(refused)


# In the background


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def asleep(at: Rehearsal, project: Project) -> background.Work:
    """A forge whose drafter is at work and will be for a minute."""
    play(at, (ASLEEP,))
    begun = typed(project, "!forge Some more texts")
    work = driver.drive_beside(project, begun.runs[0])
    until(lambda: any(_is_asking(item.event) for item in project.ledger.stream(work.run)))
    time.sleep(0.3)  # its process starts
    return work


def _is_asking(event: Event) -> bool:
    return isinstance(event, EffectIntended) and event.effect == "RunAgent"


def test_a_forge_goes_on_in_the_background_until_it_is_stopped_and_can_be_resumed(
    at: Rehearsal, project: Project
) -> None:
    work = asleep(at, project)
    assert [each.run for each in background.under_way(project)] == [work.run]
    assert "running" in typed(project, "!forge status").text
    assert typed(project, "!forge Another").error == "Locked"
    begun = time.monotonic()
    stopped = typed(project, "!stop")
    assert time.monotonic() - begun < 15
    assert stopped.next == (Action("resume", work.run),)
    assert "nothing is lost" in stopped.text
    assert runs.rows(project)[-1].status == "interrupted"
    assert background.under_way(project) == []
    play(at, (DRAFTED, AUDITED))
    assert driven(project, typed(project, "!resume")).exit_code == 0
    assert plans.row(project, "2").status == "REVIEW"


@pytest.mark.parametrize("command", ["!forge cancel", "!plan cancel 2"])
def test_a_forge_that_is_cancelled_ends_for_good_and_takes_its_draft_with_it(
    at: Rehearsal, project: Project, command: str
) -> None:
    work = asleep(at, project)
    assert "plan-002 is CANCELLED" in typed(project, command).text
    assert work.over
    assert [row.status for row in runs.rows(project)] == ["done", "failed"]
    assert typed(project, "!forge cancel").exit_code == 3


def test_what_was_stopped_before_it_began_does_not_begin(at: Rehearsal, project: Project) -> None:
    play(at, (ASLEEP,))
    work = driver.drive_beside(project, typed(project, "!forge Some more").runs[0])
    work.stop()
    assert work.wait(20)
    assert work.error is not None
    assert work.error.exit_code == 130


def test_a_forge_stops_at_whatever_moment_it_is_told_to(at: Rehearsal, project: Project) -> None:
    play(at, (ASLEEP,))
    for milliseconds in range(10, 40, 3):
        work = driver.drive_beside(project, typed(project, f"!forge Count {milliseconds} words").runs[0])
        time.sleep(milliseconds / 1000)
        assert background.stop([work], 20) == []
        assert work.error is not None
        assert work.error.exit_code == 130


def test_nothing_goes_on_and_that_is_said(project: Project) -> None:
    assert typed(project, "!stop").text == "nothing goes on here"
    assert typed(project, "!plan cancel").exit_code == 3
    assert typed(project, "!resume").text == "nothing to resume"


# Agents


@pytest.mark.parametrize("row", [row for row in shapes.TABLE if row.person], ids=lambda row: row.usage)
def test_what_needs_a_person_is_not_done_for_an_agent(project: Project, row: shapes.Form) -> None:
    words = row.usage.replace("<id>", "plan-001").replace("<phase-id>", "phase-1").replace("<reason>", "so")
    text = words.replace("[", "").replace("]", "")
    before = project.ledger.head()
    found = typed(project, text, AGENT)
    assert (found.exit_code, found.error) == (6, "NeedsPerson")
    assert f"type `{text}`" in found.text
    assert project.ledger.head() == before


def answering(at: Rehearsal, text: str) -> None:
    play(at, ((("Role: assistant",), says(text)), DRAFTED, (("Role: auditor",), says(BLOCKED))))


def asked(project: Project, text: str) -> Reply:
    work = driver.drive_beside(project, talking.begin(project, text))
    assert work.wait(60)
    return endings.reply(project, work)


def block(body: str) -> str:
    return f"So it is.\n\n```planforge-actions\n{body}\n```\n"


def test_what_is_no_command_is_answered_by_an_agent_as_a_run_that_is_paid_for_and_replays(
    at: Rehearsal, project: Project
) -> None:
    answering(at, "There is one plan, plan-001, and it waits for you.")
    found = asked(project, "what waits for me?")
    assert (found.kind, found.text) == ("answer", "There is one plan, plan-001, and it waits for you.")
    run = runs.rows(project)[-1]
    assert (run.flow, run.subject, run.status) == ("chat", "chat", "done")
    assert any(event.reservation.startswith(run.run) for event in at.events(BudgetReconciled))
    assert replays.replayed(project.ledger, run.run).difference is None
    assert plans.rows(project)[0].status == "REVIEW"


def test_the_agent_is_told_what_there_is_and_what_was_said_before(at: Rehearsal, project: Project) -> None:
    scene = ("Role: assistant", "plan-001 REVIEW: Some texts", "They said:", "hello there")
    play(at, ((scene, says("I see it.")),))
    earlier = (Said(text="hello there", answer="Good morning."),)
    work = driver.drive_beside(project, talking.begin(project, "and now?", earlier))
    assert work.wait(60)
    assert endings.reply(project, work).text == "I see it."


def test_what_an_answer_asks_for_is_done_and_on_record(at: Rehearsal, project: Project) -> None:
    answering(at, block('[{"action": "planList"}, {"action": "forgeCreate", "description": "Some more"}]'))
    found = asked(project, "please plan some more texts")
    assert "✓ !plan list\n  plan-001 [REVIEW] Some texts" in found.text
    assert "✓ !forge Some more\n  run-003 forges plan-002" in found.text
    assert found.runs == ("run-003",)
    assert [event.effect for event in at.events(EffectCompleted)].count("TakeActions") == 1
    ended = driven(project, found)
    assert ended.exit_code == 6, "the auditor blocks it, and that is for a person"


def test_an_agent_that_asks_for_an_approval_does_not_get_it(at: Rehearsal, project: Project) -> None:
    answering(at, block('[{"action": "planApprove", "planId": "1"}, {"action": "planRun", "planId": "1"}]'))
    found = asked(project, "is it good?")
    assert found.exit_code == 6
    assert "type `!plan approve plan-001` if you want it" in found.text
    assert "✗ !plan run plan-001" in found.text
    assert not of(at.events(DecisionMade), "approval")
    assert plans.rows(project)[0].status == "REVIEW"


def test_an_action_that_there_is_not_is_refused_with_all_the_others(at: Rehearsal, project: Project) -> None:
    answering(at, block('[{"action": "planList"}, {"action": "planDelete", "planId": "1"}]'))
    found = asked(project, "what is there?")
    assert found.exit_code == 1
    assert "nothing was done" in found.text
    assert "planDelete" in found.text
    assert not [event for event in at.events(EffectCompleted) if event.effect == "TakeActions"]
    assert at.events(RunEnded)[-1].succeeded is False


def test_a_quoted_block_asks_for_nothing(at: Rehearsal, project: Project) -> None:
    quoted = "> " + block('[{"action": "forgeCreate", "description": "x"}]').replace("\n", "\n> ")
    answering(at, f"The file says:\n\n{quoted}")
    assert asked(project, "what does the file say?").runs == ()
    assert len(plans.rows(project)) == 1


def test_an_agent_does_not_ask_an_agent(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RefusedByGate, match="does not ask an agent"):
        talking.begin(project, "hello", speaker=AGENT)
    monkeypatch.setenv(COOKIE, "somebody")
    with pytest.raises(RefusedByGate, match="does not ask an agent"):
        talking.begin(project, "hello")
    assert len(runs.rows(project)) == 1


def performed(project: Project, effect: TakeActions, *, resumed: bool) -> Taken:
    call = Call(run="run-009", key="/1", intended_at="2026-01-01T00:00:00Z", resumed=resumed)

    async def perform() -> Taken:
        return await talking.take_actions(project)(effect, call)

    return asyncio.run(perform())


def test_an_action_deeper_than_one_is_refused(project: Project) -> None:
    deep = TakeActions(commands=(Command(name="plan list"),), depth=2)
    with pytest.raises(RefusedByGate, match="further actions"):
        performed(project, deep, resumed=False)


def test_actions_that_may_have_been_done_before_a_crash_are_not_done_again(project: Project) -> None:
    again = TakeActions(commands=(Command(name="forge create", description="x"),), depth=1)
    (left,) = performed(project, again, resumed=True).done
    assert "not done again" in left.text
    assert len(runs.rows(project)) == 1


@pytest.mark.parametrize("text", ["", "  \n", "x" * (talking.LONGEST + 1)])
def test_nothing_and_far_too_much_is_not_put_to_anybody(project: Project, text: str) -> None:
    with pytest.raises(InvalidInput):
        talking.begin(project, text)
    assert len(runs.rows(project)) == 1
