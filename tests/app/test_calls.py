"""One question to one agent: conversations, homes, limits, money and budgets, with the rehearsal agent."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from planforge.app.agents.audience import Audience
from planforge.app.agents.calls import Asking, remove_homes
from planforge.app.agents.sessions import stream
from planforge.app.agents.workplace import Workroom
from planforge.app.project import Project
from planforge.app.runs.leasing import Leasing
from planforge.errors import AgentFailed, AgentLimited, AgentTimedOut
from planforge.kernel import budgets
from planforge.kernel.driver import Call
from planforge.kernel.effects import Access, AgentAnswer, RunAgent, ToolUse
from planforge.kernel.events import AgentSwitched, BudgetReconciled, Event, SessionKept, SessionLost
from planforge.workspace.worktrees import Worktrees
from repositories import git, repository

PROFILE = """
[agents.profiles.{name}]
command = ["{python}", "-m", "planforge.testing.rehearsal"]
by_name = true
vendor = "{name}"
resume = "load"
usage = "turn"
version = []
handoff_tokens = {handoff}
reads = ["{place}"]
tiers = {{ balanced = "priced-1", heavy = "priced-1" }}
[agents.profiles.{name}.env]
PLANFORGE_REHEARSAL_SCRIPT = "{place}/{name}.json"
"""

Actions = list[dict[str, Any]]
USAGE = {"usage": {"input": 1000, "output": 100}}
TALK = "forge:plan-001:auditor"


class Desk:
    """A repository, agents with scripts, and somebody who asks them."""

    def __init__(
        self, place: Path, settings: str = "", *, level: str = "auto", handoff: int = 100_000
    ) -> None:
        self.place = place
        self.root = repository(place / "repository")
        self.script("one", ("", [{"say": "done"}, USAGE]))
        profiles = "".join(
            PROFILE.format(name=name, python=sys.executable, place=place, handoff=handoff)
            for name in ("one", "two")
        )
        (self.root / "planforge.toml").write_text(
            f'[sandbox]\nlevel = "{level}"\n[agents]\ndefault = "one"\n{settings}\n{profiles}'
        )
        self.base = git(self.root, "rev-parse", "HEAD")
        self.project = Project.create(self.root)
        self.process()

    def process(self, audience: Audience | None = None) -> None:
        """Whoever asks from now on is another process than before."""
        leasing = Leasing(self.project, "run-001")
        worktrees = Worktrees(self.project.git, self.project.state, "run-001")
        self.room = Workroom(self.project, worktrees)
        self.asking = Asking(self.project, "run-001", "plan-001", self.room, leasing, audience or Audience())

    def script(self, name: str, *scenes: tuple[str, Actions]) -> None:
        played = [{"when": [when] if when else [], "do": do} for when, do in scenes]
        document = {"name": name, "agent": {"load": True}, "scenes": played}
        (self.place / f"{name}.json").write_text(json.dumps(document))

    def ask(
        self,
        prompt: str = "hello",
        session: str = "",
        *,
        access: Access = Access.READ,
        key: str = "/1",
        resumed: bool = False,
        role: str = "",
    ) -> AgentAnswer:
        effect = RunAgent(
            role=role or ("developer" if access is Access.WRITE else "auditor"),
            access=access,
            worktree="phase-1-1",
            base=self.base,
            prompt=prompt,
            session=session,
        )
        call = Call(run="run-001", key=key, intended_at="2026-01-02T03:04:05+00:00", resumed=resumed)
        return asyncio.run(self.asking.answer(effect, call))

    def events(self, *kinds: type[Event], name: str = stream("run-001")) -> list[Any]:
        return [item.event for item in self.project.ledger.stream(name) if isinstance(item.event, kinds)]

    @property
    def homes(self) -> list[str]:
        top = self.project.state / "homes"
        return sorted(str(path.relative_to(top)) for path in top.glob("*/*/*") if path.is_dir())

    @property
    def worktree(self) -> Path:
        return self.room.path("phase-1-1")

    @property
    def spent(self) -> int | None:
        return budgets.account(self.project.ledger, "run:run-001").spent.tokens


def limited(seconds: int) -> dict[str, Any]:
    """What a service says, once, of a limit that ends so many seconds later."""
    message = f"429 rate limit reached, try again in {seconds} seconds"
    return {"error": {"code": -32603, "message": message, "times": 1}}


# Conversations and homes


def test_a_conversation_is_gone_on_with_by_a_later_process_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.script("one", ("first", [{"say": "blue"}, USAGE]), ("second", [{"say": "${history}"}, USAGE]))
    desk.ask("first: what colour?", TALK)
    assert desk.homes == [kept.home.removeprefix("homes/") for kept in desk.events(SessionKept)]
    desk.process()
    answer = desk.ask("second: what did you say?", TALK, key="/2")
    assert "first: what colour?\nblue" in answer.text
    first, second = desk.events(SessionKept)
    assert (first.session, first.home, first.began_at) == (second.session, second.home, second.began_at)
    assert (first.input_tokens, second.input_tokens, second.output_tokens) == (1000, 2000, 200)
    assert answer.session == first.session


PLAN_TALK = "forge:plan-001:drafter"


def test_a_reviser_goes_on_with_the_conversation_of_a_drafter_whose_model_is_set(tmp_path: Path) -> None:
    desk = Desk(tmp_path, 'models.drafter = "priced-2"')
    first = desk.ask("draft", PLAN_TALK, role="drafter")
    again = desk.ask("revise", PLAN_TALK, role="reviser", key="/2")
    assert (first.model, again.model) == ("priced-2", "priced-2")
    assert first.session == again.session != ""
    assert desk.events(SessionLost) == []


def test_a_reviser_of_another_model_begins_a_conversation_of_its_own_and_the_record_says_so(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, 'models.drafter = "priced-2"\nmodels.reviser = "priced-3"')
    first = desk.ask("draft", PLAN_TALK, role="drafter")
    again = desk.ask("revise", PLAN_TALK, role="reviser", key="/2")
    assert first.session != again.session
    (lost,) = desk.events(SessionLost)
    assert lost.reason == "`one` with `priced-3` goes on instead of `one` with `priced-2`"


def test_what_is_no_part_of_a_conversation_begins_a_new_one_and_leaves_no_home(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.script("one", ("", [{"say": "${history}."}]))
    desk.ask("first")
    assert desk.ask("second", key="/2").text == "."
    assert desk.events(SessionKept) == []
    assert desk.homes == []


def test_an_agent_is_at_home_in_a_place_of_its_own(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.script("one", ("", [{"run": ["sh", "-c", "echo $HOME; echo $HOME > home.txt"]}, {"say": "done"}]))
    desk.ask(session=TALK, access=Access.WRITE)
    assert (desk.worktree / "home.txt").read_text().strip() == str(
        desk.project.state / desk.events(SessionKept)[0].home
    )
    remove_homes(desk.project.state, "run-001")
    assert desk.homes == []


def test_a_conversation_in_which_an_attempt_failed_is_over(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.script(
        "one",
        ("first", [{"say": "blue"}]),
        ("bad", [{"error": {"code": -32603, "message": "something broke"}}]),
        ("third", [{"say": "${history}."}]),
    )
    desk.ask("first", TALK)
    with pytest.raises(AgentFailed, match="something broke"):
        desk.ask("bad", TALK, key="/2")
    (lost,) = desk.events(SessionLost)
    assert "something broke" in lost.reason
    assert desk.ask("third", TALK, key="/3").text == "."


def test_an_agent_that_does_not_know_the_conversation_begins_a_new_one_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.script("one", ("", [{"say": "${history}."}]))
    desk.ask("first", TALK)
    for file in (desk.project.state / desk.events(SessionKept)[0].home).rglob("*.jsonl"):
        file.unlink()
    assert desk.ask("second", TALK, key="/2").text == "."
    assert [type(event) for event in desk.events(SessionKept, SessionLost)] == [
        SessionKept,
        SessionLost,
        SessionKept,
    ]
    assert budgets.unreconciled(desk.project.ledger) == []


def test_a_conversation_whose_home_is_gone_is_over(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.ask("first", TALK)
    remove_homes(desk.project.state, "run-001")
    desk.ask("second", TALK, key="/2")
    assert [lost.reason for lost in desk.events(SessionLost)] == ["its home is gone"]


def test_whoever_was_interrupted_while_it_changed_files_starts_from_the_beginning(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.script("one", ("", [{"say": "${history}."}]))
    desk.ask("first", TALK, access=Access.WRITE)
    assert desk.ask("second", TALK, access=Access.WRITE, key="/2", resumed=True).text == "."
    (lost,) = desk.events(SessionLost)
    assert "interrupted" in lost.reason


def test_an_agent_that_hands_over_loses_its_conversation_on_purpose(tmp_path: Path) -> None:
    desk = Desk(tmp_path, handoff=5000)
    desk.script("one", ("first", [{"say": "blue"}]), ("", [{"context": 6000}, {"hang": True}]))
    desk.ask("first", TALK)
    effect = RunAgent(
        role="developer",
        access=Access.WRITE,
        worktree="phase-1-1",
        base=desk.base,
        prompt="x",
        session=TALK,
        turn=1,
    )
    call = Call(run="run-001", key="/2", intended_at="2026-01-02T03:04:05+00:00", resumed=False)
    assert asyncio.run(desk.asking.answer(effect, call)).stop_reason == "handed_over"
    assert [lost.reason for lost in desk.events(SessionLost)] == ["it handed over to another agent"]


# Limits


def test_a_run_that_is_parked_goes_on_in_the_same_conversation_and_the_same_worktree(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    write = {"append": {"path": "begun.txt", "text": "x"}}
    desk.script("one", ("", [write, limited(3600), {"say": "${history}."}, USAGE]))
    with pytest.raises(AgentLimited) as parked:
        desk.ask("task", access=Access.WRITE)
    assert parked.value.until > datetime.now(UTC).isoformat()
    (kept,) = desk.events(SessionKept)
    assert kept.unfinished
    desk.process()
    answer = desk.ask("task", access=Access.WRITE, resumed=True)
    assert (desk.worktree / "begun.txt").read_text() == "xx"
    assert answer.session == kept.session
    assert desk.homes == []


def test_a_limit_that_ends_soon_is_waited_for_and_is_no_attempt(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.script("one", ("", [limited(2), {"say": "done"}, USAGE]))
    assert desk.ask(access=Access.WRITE).text == "done"
    first, second = desk.events(BudgetReconciled, name=budgets.STREAM)
    assert (first.spent.attempts, second.spent.attempts) == (0, 1)
    assert second.spent.tokens == 1100


def test_by_policy_another_agent_begins_anew_where_one_is_limited(tmp_path: Path) -> None:
    settings = 'limits.policy = "switch"\nlimits.switch_to = ["two"]\n'
    desk = Desk(tmp_path, settings)
    write = {"append": {"path": "begun.txt", "text": "x"}}
    desk.script("one", ("", [write, limited(3600)]))
    desk.script("two", ("", [write, {"say": "done"}]))
    assert desk.ask(access=Access.WRITE).agent == "two"
    assert (desk.worktree / "begun.txt").read_text() == "x"
    desk.script("two", ("", [{"say": "read"}]))
    assert desk.ask(key="/2", resumed=True).agent == "two"
    switched = desk.events(AgentSwitched, name="agents")
    assert [(event.agent, event.successor, event.role) for event in switched] == [
        ("one", "two", "developer"),
        ("one", "two", "auditor"),
    ]
    assert [lost.reason for lost in desk.events(SessionLost)] == ["`two` goes on instead of `one`"]


# What is on record


def test_the_answer_says_the_tier_the_model_and_what_it_cost_by_the_table(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "prices.priced-1 = { input = 2.0, output = 10.0 }\n")
    answer = desk.ask()
    assert (answer.model, answer.tier) == ("priced-1", "heavy")
    assert (answer.money, answer.money_source) == (1000 * 2 + 100 * 10, "estimated")
    assert answer.sandbox in ("bubblewrap", "landlock", "processes")
    program = answer.program
    assert program is not None
    assert program.path == sys.executable
    assert program.hash == hashlib.sha256(Path(sys.executable).read_bytes()).hexdigest()


def test_what_the_agent_says_it_cost_wins_over_the_table(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "prices.priced-1 = { input = 2.0, output = 10.0 }\n")
    desk.script("one", ("", [{"context": {"used": 10, "size": 100, "cost": 0.25}}, {"say": "done"}, USAGE]))
    answer = desk.ask()
    assert (answer.money, answer.money_source) == (250_000, "reported")


def test_a_cost_that_nobody_knows_is_unknown(tmp_path: Path) -> None:
    answer = Desk(tmp_path).ask()
    assert (answer.money, answer.money_source) == (None, "")


def test_what_an_agent_was_denied_is_on_record(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.script("one", ("", [{"ask": {"title": "Write it", "kind": "edit"}}, {"say": "done"}]))
    assert ToolUse(kind="edit", title="Write it", status="denied") in desk.ask().tools
    assert (
        ToolUse(kind="edit", title="Write it", status="allowed")
        in desk.ask(access=Access.WRITE, key="/2").tools
    )


class Person(Audience):
    """Somebody who is there and says yes."""

    attended = True

    def __init__(self) -> None:
        self.questions: list[str] = []

    async def asked(self, question: str) -> bool:
        self.questions.append(question)
        return True


@pytest.mark.parametrize(("setting", "status", "asked"), [("ask", "allowed", 1), ("deny", "denied", 0)])
def test_a_person_is_asked_if_the_settings_say_so(
    tmp_path: Path, setting: str, status: str, asked: int
) -> None:
    desk, person = Desk(tmp_path, f'permissions = "{setting}"\n'), Person()
    desk.process(person)
    desk.script("one", ("", [{"ask": {"title": "Think aloud", "kind": "other"}}, {"say": "done"}]))
    assert [tool.status for tool in desk.ask().tools if tool.title == "Think aloud"][-1] == status
    assert len(person.questions) == asked


# Budgets


def test_what_an_agent_that_reached_out_has_used_is_settled(tmp_path: Path) -> None:
    desk = Desk(tmp_path, level="processes")
    outside = {"write": {"path": f"{tmp_path}/repository/README.md", "text": "mine"}}
    desk.script("one", ("", [outside, {"say": "done"}, USAGE]))
    with pytest.raises(AgentFailed, match="reached out of its worktree"):
        desk.ask(access=Access.WRITE)
    assert desk.spent == 1100


def test_one_that_reached_out_before_its_limit_has_failed_and_does_not_go_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path, level="processes")
    outside = {"write": {"path": f"{tmp_path}/repository/README.md", "text": "mine"}}
    desk.script("one", ("", [outside, limited(3600)]))
    with pytest.raises(AgentFailed, match="besides, it reached out of its worktree"):
        desk.ask(access=Access.WRITE)
    assert desk.events(SessionKept) == []


def test_what_a_reader_that_wrote_has_used_is_settled_and_its_conversation_is_over(tmp_path: Path) -> None:
    desk = Desk(tmp_path, level="processes")
    desk.script(
        "one", ("first", [{"say": "x"}]), ("", [{"write": {"path": "x", "text": ""}}, {"say": "done"}, USAGE])
    )
    desk.ask("first", TALK)
    before = desk.spent or 0
    with pytest.raises(AgentFailed, match="only reads"):
        desk.ask("bad", TALK, key="/2")
    assert (desk.spent or 0) - before == 1100
    assert len(desk.events(SessionLost)) == 1
    assert not (desk.worktree / "x").exists()


def test_what_an_agent_that_was_cut_short_has_used_is_the_least_that_it_costs(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "seconds = 2\n[budget]\nreserve_tokens = 7000\n")
    desk.script("one", ("", [{"say": "begun"}, {"hang": True}]))
    with pytest.raises(AgentTimedOut):
        desk.ask()
    assert desk.spent == 7000


# Signs of life


class Listening(Audience):
    """Remembers what it hears."""

    def __init__(self) -> None:
        self.signs: list[tuple[str, str]] = []

    def heard(self, key: str, what: str) -> None:
        self.signs.append((key, what))


def test_signs_of_life_are_heard_and_not_recorded(tmp_path: Path) -> None:
    desk, audience = Desk(tmp_path), Listening()
    desk.process(audience)
    desk.script("one", ("", [{"write": {"path": "new.py", "text": ""}}, {"say": "done"}]))
    desk.ask(access=Access.WRITE, key="/7")
    assert any(key == "/7" and "new.py" in what for key, what in audience.signs)
    assert all("new.py" not in str(item.event) for item in desk.project.ledger.since())


def test_of_a_home_that_a_killed_process_had_almost_removed_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "homes" / "run-001" / "phase-1").mkdir(parents=True)
    (tmp_path / "homes" / "run-002" / "phase-1").mkdir(parents=True)
    remove_homes(tmp_path, "run-001")
    assert [path.name for path in (tmp_path / "homes").iterdir()] == ["run-002"]
