"""Questions to people: they wait in the ledger, are answered once and by a person, and the run is told."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import msgspec
import pytest

from planforge.actions import Action
from planforge.app import runs
from planforge.app.compose import Worker
from planforge.app.decisions import questions
from planforge.app.decisions.deciders import Current
from planforge.app.overview import overview
from planforge.app.project import Project
from planforge.app.runs.leasing import Leasing
from planforge.errors import InvalidInput, NeedsPerson, NotFound, RefusedByGate, StaleView
from planforge.interfaces.cli.typed import line, text
from planforge.kernel.driver import Call, Driver
from planforge.kernel.effects import AskHuman, Flow, Reply
from planforge.kernel.events import (
    Choice,
    DecisionAsked,
    DecisionMade,
    Event,
    ItemOpened,
    PatchProposed,
    Payload,
    RunEnded,
    RunParked,
    RunStarted,
)
from planforge.kernel.work import decisions
from planforge.workspace.launch.trees import COOKIE
from repositories import EMAIL, NAME, repository

PLAN, RUN = "plan-001", "run-001"
CHOICES = (
    Choice(name="resume", cost="up to 20 more rounds", consequence="it goes on at round 4"),
    Choice(name="override", consequence="it is taken as it is"),
    Choice(name="terminate", cost="what was done since round 1"),
)
QUESTION = AskHuman(question="the loop goes round in circles; what now?", choices=CHOICES, content="c0ffee")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = repository(tmp_path_factory.mktemp("questions") / "project", {"app.py": "print(1)\n"})
    project = Project.create(place)
    created = ItemOpened(item=PLAN, title="T", request="R", path="docs/plans/plan-001-t.md")
    project.ledger.append(PLAN, [created], expected=0)
    for run, subject in ((RUN, PLAN), ("run-002", "")):
        started = RunStarted(run=run, flow="forge", flow_version=1, subject=subject, request=Payload())
        project.ledger.append(run, [started], expected=0)
    project.ledger.close()
    return place


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Project:
    shutil.copytree(made, tmp_path / "project")
    return Project(tmp_path / "project")


def call(key: str = "/3", *, run: str = RUN, resumed: bool = False) -> Call:
    return Call(run=run, key=key, intended_at="2026-01-01T00:00:00Z", resumed=resumed)


def reply(project: Project, effect: AskHuman = QUESTION, which: Call | None = None) -> Reply:
    return questions.reply(project, effect, which or call(), PLAN)


def asked(project: Project, effect: AskHuman = QUESTION, which: Call | None = None) -> str:
    """Have the run ask, and wait; the name of the question."""
    with pytest.raises(NeedsPerson) as waiting:
        reply(project, effect, which)
    return waiting.value.message.split("`")[1]


def park(project: Project, run: str = RUN) -> None:
    project.ledger.append(run, [RunParked(run=run, reason="a question")], expected=None)


def end(project: Project, run: str = RUN) -> None:
    ended = RunEnded(run=run, succeeded=False, reason="cancelled by Ada: no", exit_code=1)
    project.ledger.append(run, [ended], expected=None)


def answered(project: Project, run: str = RUN) -> list[str]:
    """What people answered that the run has not taken up yet."""
    return [found.label for found in decisions.made_for(project.ledger, run, since="")]


def record(project: Project, event: Event) -> None:
    project.ledger.append(PLAN, [event], expected=None)


# Asking


def test_a_question_is_left_in_the_ledger_with_all_that_a_person_needs(project: Project) -> None:
    with pytest.raises(NeedsPerson, match="`question-001` waits for an answer: the loop") as waiting:
        reply(project)
    assert "planforge question show question-001" in text(waiting.value.hint)
    assert "planforge resume run-001" in text(waiting.value.hint)
    (found,) = questions.waiting(project).questions
    assert (found.name, found.run, found.subject, found.status) == ("question-001", RUN, PLAN, "waiting")
    assert (found.text, found.content) == (QUESTION.question, "c0ffee")
    assert [(option.name, option.cost, option.consequence) for option in found.options] == [
        ("resume", "up to 20 more rounds", "it goes on at round 4"),
        ("override", "", "it is taken as it is"),
        ("terminate", "what was done since round 1", ""),
    ]
    assert len(found.hash) == 64
    assert found.asked_at


def test_asking_again_changes_nothing(project: Project) -> None:
    asked(project)
    events = project.ledger.head()
    assert asked(project, QUESTION, call(resumed=True)) == "question-001"
    assert project.ledger.head() == events


def test_two_questions_of_one_run_are_two_and_the_oldest_comes_first(project: Project) -> None:
    other = AskHuman(question="and this?", options=("yes", "no"))
    assert asked(project) == "question-001"
    assert asked(project, other, call("/4/a/0")) == "question-002"
    assert asked(project, other, call(run="run-002")) == "question-003"
    names = [row.name for row in questions.waiting(project).questions]
    assert names == ["question-001", "question-002", "question-003"]
    assert len({row.hash for row in questions.waiting(project).questions}) == 3


def test_the_same_effect_asked_in_other_words_takes_the_place_of_what_was_asked(project: Project) -> None:
    """As after a secret became known that the words have in them: what is asked is what is stored."""
    asked(project)
    stale = questions.show(project, "1").hash
    assert asked(project, AskHuman(question="something else?", options=("yes", "no"))) == "question-002"
    assert [row.status for row in questions.every(project).questions] == ["superseded", "waiting"]
    with pytest.raises(StaleView, match="another has taken its place") as refusal:
        questions.answer(project, "1", "resume", actor="Ada")
    assert text(refusal.value.hint) == "see `planforge question show question-002`"
    with pytest.raises(StaleView, match="you looked at"):
        questions.answer(project, "2", "yes", actor="Ada", seen=stale)
    assert not answered(project)


def test_a_question_without_costs_has_its_options_all_the_same(project: Project) -> None:
    asked(project, AskHuman(question="Shall we?", options=("yes", "no")))
    (found,) = questions.waiting(project).questions
    assert [option.name for option in found.options] == ["yes", "no"]


def test_secrets_are_kept_out_of_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "a-canary-in-a-coal-mine-7")
    asked(project, AskHuman(question="is a-canary-in-a-coal-mine-7 right?", options=("yes", "no")))
    questions.answer(project, "1", "no", actor="Ada", reason="a-canary-in-a-coal-mine-7 is a secret")
    project.ledger.close()
    kept = [path.read_bytes() for path in project.state.rglob("*") if path.is_file()]
    assert not any(b"a-canary-in-a-coal-mine-7" in content for content in kept)


# Answering


@pytest.mark.parametrize("option", ["override", " Override ", "2"])
def test_the_run_gets_the_answer_and_gets_it_again_after_a_crash(project: Project, option: str) -> None:
    asked(project)
    answered = questions.answer(project, "1", option, actor="Ada", reason=" it is good enough ")
    assert line(answered.next) == "planforge resume run-001"
    assert (answered.question.status, answered.question.actor) == ("answered", "Ada")
    expected = Reply(answer="override", actor="Ada", reason="it is good enough")
    assert reply(project, QUESTION, call(resumed=True)) == expected
    assert reply(project, QUESTION, call(resumed=True)) == expected


@pytest.mark.parametrize("option", ["resum", "", "0", "4", "-1", "resume override", "²"])
def test_what_is_no_option_is_refused_and_the_options_are_named(project: Project, option: str) -> None:
    asked(project)
    with pytest.raises(InvalidInput) as refusal:
        questions.answer(project, "1", option, actor="Ada")
    assert text(refusal.value.hint) == "choose one of `resume`, `override`, `terminate`"
    assert questions.waiting(project).questions


@pytest.mark.parametrize("option", ["override", "terminate"])
@pytest.mark.parametrize("actor", ["Ada", "Bob"])
def test_a_question_is_answered_once(project: Project, actor: str, option: str) -> None:
    asked(project)
    questions.answer(project, "1", "override", actor="Ada")
    events = project.ledger.head()
    with pytest.raises(StaleView, match="Ada answered `override` on 2") as refusal:
        questions.answer(project, "1", option, actor=actor)
    current = refusal.value.current
    assert isinstance(current, Current)
    assert (current.actor, current.answer, current.status) == ("Ada", "override", "answered")
    assert project.ledger.head() == events


def test_an_answer_after_the_run_has_ended_is_too_late(project: Project) -> None:
    asked(project)
    end(project)
    with pytest.raises(StaleView, match="its run has ended"):
        questions.answer(project, "1", "resume", actor="Ada")
    assert questions.waiting(project).questions == ()


def test_an_answer_that_no_run_took_up_is_closed_with_its_run(project: Project) -> None:
    asked(project)
    questions.answer(project, "1", "resume", actor="Ada")
    end(project)
    assert not answered(project)
    assert [row.status for row in questions.every(project).questions] == ["closed"]


def test_an_answer_from_a_view_of_something_else_is_refused(project: Project) -> None:
    asked(project)
    now = questions.show(project, "1").hash
    for seen in ("0" * 64, "0" * 12, "c0ffeec0ffee"):
        with pytest.raises(StaleView, match=f"is `{now[:12]}` now"):
            questions.answer(project, "1", "resume", actor="Ada", seen=seen)
    for seen in ("", now[:11], "xyz", now + "0g"):
        with pytest.raises(InvalidInput, match="is no hash"):
            questions.answer(project, "1", "resume", actor="Ada", seen=seen)
    assert questions.waiting(project).questions
    questions.answer(project, "1", "resume", actor="Ada", seen=now[:12].upper())


@pytest.mark.parametrize("actor", ["grok-7", "Grok 7 <grok@example.org>", "claude", "Rehearsal"])
def test_no_agent_answers_by_whatever_name(project: Project, actor: str) -> None:
    proposed = PatchProposed(
        plan=PLAN, step="phase-1", attempt=1, commit="c", tree="t", files=(), claim="", agent="grok-7"
    )
    record(project, proposed)
    asked(project)
    with pytest.raises(RefusedByGate, match="is the name of an agent"):
        questions.answer(project, "1", "resume", actor=actor)
    assert questions.waiting(project).questions


def test_an_answer_to_other_words_or_to_another_run_is_none(project: Project) -> None:
    """As an event that somebody writes into the stream by hand."""
    asked(project)
    (found,) = decisions.waiting(project.ledger, "question")
    yes = decisions.made(found, "override", "Mallory")
    others = {"hash": "0" * 64, "name": "run-002/3", "number": 2, "content": "", "kind": "gate"}
    for name, value in others.items():
        record(project, msgspec.structs.replace(yes, **{name: value}))
    assert [row.status for row in questions.every(project).questions] == ["waiting"]
    asked(project, QUESTION, call(resumed=True))


def test_a_question_or_an_answer_that_is_written_once_more_says_nothing_more(project: Project) -> None:
    asked(project)
    questions.answer(project, "1", "override", actor="Ada")
    before = questions.every(project)
    copies = [
        item.event
        for item in list(project.ledger.stream(PLAN))
        if isinstance(item.event, DecisionAsked | DecisionMade)
    ]
    assert len(copies) == 2
    for event in copies:
        record(project, event)
    assert questions.every(project) == before


# Going on


def test_where_going_on_is_an_answer_who_goes_on_has_given_it(project: Project) -> None:
    effect = AskHuman(question="ask again?", options=("give up", "ask again"), resumed="ask again")
    asked(project, effect)
    person = f"{NAME} <{EMAIL}>"
    given = reply(project, effect, call(resumed=True))
    assert (given.answer, given.actor) == ("ask again", person)
    (found,) = questions.every(project).questions
    assert (found.status, found.answer, found.actor) == ("answered", "ask again", person)
    with pytest.raises(StaleView):
        questions.answer(project, "1", "give up", actor="Ada")


def test_who_answers_before_anybody_goes_on_is_heard(project: Project) -> None:
    effect = AskHuman(question="ask again?", options=("give up", "ask again"), resumed="ask again")
    asked(project, effect)
    questions.answer(project, "1", "give up", actor="Ada")
    assert reply(project, effect, call(resumed=True)).answer == "give up"


def test_an_agent_that_takes_a_run_up_has_answered_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    effect = AskHuman(question="ask again?", options=("give up", "ask again"), resumed="ask again")
    asked(project, effect)
    monkeypatch.setenv(COOKIE, "abc")
    with pytest.raises(NeedsPerson, match="question-001"):
        reply(project, effect, call(resumed=True))
    assert questions.waiting(project).questions


def test_a_run_that_was_parked_before_there_were_questions_goes_on_as_it_would_have(project: Project) -> None:
    effect = AskHuman(question="ask again?", options=("give up", "ask again"), resumed="ask again")
    assert reply(project, effect, call(resumed=True)).answer == "ask again"


def test_resume_without_a_name_takes_a_run_that_was_answered(project: Project) -> None:
    asked(project)
    park(project)
    assert RUN not in runs.to_resume(project, None)
    questions.answer(project, "1", "resume", actor="Ada")
    assert RUN in runs.to_resume(project, None)


async def flow() -> str:
    """Two questions, one after the other."""
    first = await QUESTION
    second = await AskHuman(question="sure?", options=("yes", "no"))
    return f"{first.answer} {second.answer}"


def drive(project: Project) -> str:
    worker = Worker(project, RUN, PLAN, Leasing(project, RUN))
    driver = Driver(project.ledger, RUN, {AskHuman: worker.ask_human})  # type: ignore[dict-item]

    async def driven(asking: Flow[str]) -> str:
        return await driver.drive(asking)

    try:
        return asyncio.run(driven(flow()))
    except NeedsPerson as error:
        driver.record(RunParked(run=RUN, reason=error.message))
        raise


def test_a_flow_is_driven_from_answer_to_answer_by_processes_that_know_nothing_of_each_other(
    project: Project,
) -> None:
    for number, option in (("1", "override"), ("2", "yes")):
        with pytest.raises(NeedsPerson, match=f"question-00{number}"):
            drive(project)
        assert RUN not in runs.to_resume(project, None)
        project.ledger.close()
        project = Project(project.root)
        questions.answer(project, number, option, actor="Ada")
        assert RUN in runs.to_resume(project, None)
    assert drive(project) == "override yes"
    assert [row.status for row in questions.every(project).questions] == ["taken", "taken"]
    assert drive(project) == "override yes"
    with pytest.raises(StaleView, match="Ada answered `yes`"):
        questions.answer(project, "2", "no", actor="Ada")


# Looking


def test_the_overview_has_what_waits_and_what_to_type(project: Project) -> None:
    asked(project)
    asked(project, AskHuman(question="and this?", options=("yes", "no")), call("/4"))
    park(project)
    found = overview(project)
    assert [row.name for row in found.questions] == ["question-001", "question-002"]
    assert found.next[:2] == tuple(Action("question show", row.name) for row in found.questions)


@pytest.mark.parametrize("name", ["question-001", "question-1", "1", "001", " 1 "])
def test_a_question_is_found_by_its_name_and_by_its_number(project: Project, name: str) -> None:
    asked(project)
    assert questions.show(project, name).name == "question-001"


@pytest.mark.parametrize("name", ["2", "question-", "", "-1", "1; drop", "9" * 20, "plan-001", "gate-001"])
def test_what_is_no_question_is_not_found(project: Project, name: str) -> None:
    asked(project)
    with pytest.raises(NotFound, match="there is no question"):
        questions.answer(project, name, "resume", actor="Ada")


def test_the_table_is_folded_anew_to_the_same_rows(project: Project) -> None:
    asked(project)
    questions.answer(project, "1", "resume", actor="Ada", reason="why not")
    asked(project, AskHuman(question="and this?", options=("yes", "no")), call("/4"))
    asked(project, AskHuman(question="or this?", options=("yes", "no")), call("/4"))
    asked(project, AskHuman(question="and that?", options=("yes", "no")), call(run="run-002"))
    end(project, "run-002")
    before = questions.every(project)
    project.ledger.rebuild()
    assert questions.every(project) == before
    statuses = [row.status for row in before.questions]
    assert statuses == ["answered", "superseded", "waiting", "closed"]
