"""Agents at their limit: waited for, left for another one, or the run is parked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planforge.app.agents.audience import Audience
from planforge.app.agents.limits import MARGIN, STREAM, Limits
from planforge.app.project import Project
from planforge.errors import AgentLimited
from planforge.interfaces.cli.typed import text
from planforge.kernel.events import AgentSwitched, LimitReached
from repositories import repository

ONE = '[agents.profiles.one]\ncommand = ["one"]\nvendor = "a"\n'
TWO = '[agents.profiles.two]\ncommand = ["two"]\nvendor = "b"\n'
THREE = '[agents.profiles.three]\ncommand = ["three"]\nvendor = "c"\n'


class Listening(Audience):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.signs: list[str] = []

    def heard(self, key: str, what: str) -> None:
        self.signs.append(f"{key} {what}")

    def told(self, what: str) -> None:
        self.lines.append(what)


def project(place: Path, settings: str) -> Project:
    root = repository(place / "repository")
    (root / "planforge.toml").write_text(f"[agents]\ndefault = 'one'\n{settings}{ONE}{TWO}{THREE}")
    return Project.create(root)


def limits(place: Project, audience: Audience | None = None, run: str = "run-001") -> Limits:
    return Limits(place, run, place.settings.agents, audience or Audience())


def met(found: Limits, until: str = "", agent: str = "one") -> str:
    error = AgentLimited("agent `one` has reached its limit: 429", until=until)
    return asyncio.run(found.met(error, agent, "developer", "/7"))


def later(**span: float) -> str:
    return (datetime.now(UTC) + timedelta(**span)).isoformat()


def recorded(place: Project, kind: type) -> list[object]:
    return [item.event for item in place.ledger.stream(STREAM) if isinstance(item.event, kind)]


def test_a_run_is_parked_until_the_time_that_the_agent_says(tmp_path: Path) -> None:
    place, until = project(tmp_path, ""), later(hours=2)
    with pytest.raises(AgentLimited) as parked:
        met(limits(place), until)
    assert datetime.fromisoformat(parked.value.until) == datetime.fromisoformat(until)
    assert until[:16].replace("T", " ") + " UTC" in parked.value.message
    assert (
        text(parked.value.hint)
        == "then run `planforge resume run-001`; at once: `planforge resume run-001 --now`"
    )
    (reached,) = recorded(place, LimitReached)
    assert isinstance(reached, LimitReached)
    assert (reached.agent, reached.said) == ("one", True)


@pytest.mark.parametrize("until", ["", "soon", "2020-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00"])
def test_an_agent_that_says_no_time_that_can_be_is_tried_again_after_a_while(
    tmp_path: Path, until: str
) -> None:
    place = project(tmp_path, "limits.retry_minutes = 45\n")
    with pytest.raises(AgentLimited) as parked:
        met(limits(place), until)
    left = datetime.fromisoformat(parked.value.until) - datetime.now(UTC)
    assert timedelta(minutes=44) < left <= timedelta(minutes=45)
    (reached,) = recorded(place, LimitReached)
    assert isinstance(reached, LimitReached)
    assert not reached.said


def test_a_limit_that_ends_soon_is_waited_for_with_a_countdown(tmp_path: Path) -> None:
    place, audience = project(tmp_path, ""), Listening()
    began = datetime.now(UTC)
    assert met(limits(place, audience), later(seconds=1.2)) == "one"
    waited = (datetime.now(UTC) - began).total_seconds()
    assert 1.2 <= waited < 1.2 + MARGIN + 3
    assert audience.signs[0] == "/7 waits 0:02 for the limit of one to end"
    assert audience.lines[0].startswith("`one` has reached its limit; waiting until ")


def test_waiting_can_be_called_off(tmp_path: Path) -> None:
    place = project(tmp_path, "")

    async def story() -> None:
        waiting = asyncio.create_task(
            limits(place).met(AgentLimited("m", until=later(minutes=5)), "one", "developer", "/7")
        )
        await asyncio.sleep(0.1)
        waiting.cancel()
        await waiting

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(story())


def test_with_no_minutes_to_wait_even_a_short_limit_parks(tmp_path: Path) -> None:
    with pytest.raises(AgentLimited):
        met(limits(project(tmp_path, "limits.wait_minutes = 0\n")), later(seconds=30))


def test_by_policy_another_agent_goes_on_and_later_calls_go_straight_to_it(
    tmp_path: Path, programs: Callable[..., None]
) -> None:
    programs("one", "two", "three")
    place = project(tmp_path, 'limits.policy = "switch"\nlimits.switch_to = ["three", "two"]\n')
    assert limits(place).instead_of("one", "auditor") == "one"
    assert met(limits(place), later(hours=1)) == "three"
    switched = recorded(place, AgentSwitched)
    assert isinstance(switched[0], AgentSwitched)
    assert (switched[0].agent, switched[0].successor, switched[0].role) == ("one", "three", "developer")
    assert limits(place, run="run-002").instead_of("one", "auditor") == "three"
    assert len(recorded(place, AgentSwitched)) == 2


def test_one_that_is_limited_itself_or_not_installed_is_not_switched_to(
    tmp_path: Path, programs: Callable[..., None]
) -> None:
    programs("one", "two")
    place = project(tmp_path, 'limits.policy = "switch"\nlimits.switch_to = ["three", "one", "two"]\n')
    assert met(limits(place), later(hours=1)) == "two"
    audience = Listening()
    with pytest.raises(AgentLimited):
        met(limits(place, audience), later(hours=1), agent="two")
    assert "there is no other agent to switch to" in audience.lines[0]


@pytest.mark.parametrize(("blind", "successor"), [("two", "three"), ("one", "two")])
def test_one_without_tools_is_not_switched_to_where_the_first_one_has_them(
    tmp_path: Path, programs: Callable[..., None], blind: str, successor: str
) -> None:
    programs("one", "two", "three")
    place = project(tmp_path, 'limits.policy = "switch"\nlimits.switch_to = ["two", "three"]\n')
    settings = place.root / "planforge.toml"
    settings.write_text(settings.read_text() + f"[agents.profiles.{blind}.read]\ntools = false\n")
    assert met(limits(Project(place.root)), later(hours=1)) == successor


def test_without_names_any_agent_of_another_vendor_will_do(
    tmp_path: Path, programs: Callable[..., None]
) -> None:
    programs("one", "three")
    place = project(tmp_path, 'limits.policy = "switch"\n')
    assert met(limits(place), later(hours=1)) == "three"


def test_where_parking_is_the_policy_a_limited_agent_is_asked_all_the_same(tmp_path: Path) -> None:
    place = project(tmp_path, "")
    with pytest.raises(AgentLimited):
        met(limits(place), later(hours=1))
    assert limits(place).until("one")
    assert limits(place).instead_of("one", "auditor") == "one"


def test_a_limit_that_is_over_is_forgotten(tmp_path: Path) -> None:
    place = project(tmp_path, "")
    met(limits(place), later(seconds=0.2))
    assert limits(place).until("one") == ""
