"""The files that a plan is written from: chosen before it is written, and not gone beyond."""

from __future__ import annotations

from typing import Any

import pytest

from driven import Driven, driven
from planforge.kernel.effects import AskHuman, ReadFiles, RunAgent, Survey
from planforge.kernel.events import ContextComposed, FilesChosen, PlanForged
from planforge.workflows.asking import TEXT_ONLY
from planforge.workflows.forge import ForgeRequest, forge
from worlds import BLOCKING, CLEAN, PLAN, World, versions

OFFERED = ("gateway/limit.py", "gateway/other.py", "docs/guide.md")


def world(**says: Any) -> World:
    made = World(**({"drafter": ["gateway/limit.py", PLAN], "auditor": [CLEAN]} | says))
    made.tools, made.files = False, OFFERED
    return made


def forged(made: World, research: str = "auto", cap: int = 3) -> Driven[PlanForged]:
    request = ForgeRequest(
        plan="plan-007",
        title="Rate limits",
        request="Limit callers",
        project="gateway",
        today="2026-01-02",
        base="base",
        cap=cap,
        research=research,
    )
    return driven(forge(request), made)


def turns(flow: Driven[PlanForged]) -> list[str]:
    """Who was asked, for a plan or for its files."""
    return [
        effect.role + (" researches" if "Turn: research" in effect.prompt else "")
        for effect in flow.effects
        if isinstance(effect, RunAgent)
    ]


def read(flow: Driven[PlanForged]) -> list[tuple[str, ...]]:
    return [effect.paths for effect in flow.effects if isinstance(effect, ReadFiles)]


def test_an_agent_with_tools_is_asked_for_the_plan_at_once() -> None:
    made = world(drafter=[PLAN])
    made.tools = True
    flow = forged(made)
    assert turns(flow) == ["drafter", "auditor"]
    assert not any(isinstance(effect, Survey | ReadFiles) for effect in flow.effects)
    assert not any(TEXT_ONLY in prompt for _, prompt in made.prompts)


def test_an_agent_without_tools_chooses_files_is_shown_them_and_writes_the_plan() -> None:
    made = world(drafter=["- `gateway/limit.py`\n- `docs/guide.md`", PLAN])
    flow = forged(made)
    assert flow.result.clean
    assert turns(flow) == ["drafter researches", "drafter", "auditor"]
    assert read(flow)[0] == ("gateway/limit.py", "docs/guide.md")
    research, artifact, audit = (prompt for _, prompt in made.prompts)
    assert "- `gateway/other.py`" in research
    assert "text of" not in research
    assert "text of gateway/limit.py\ntext of docs/guide.md" in artifact
    assert all(TEXT_ONLY in prompt for prompt in (research, artifact, audit))
    (chosen,) = [note for note in flow.notes if isinstance(note, FilesChosen)]
    assert (chosen.offered, chosen.chosen) == (OFFERED, ("gateway/limit.py", "docs/guide.md"))
    told = [note for note in flow.notes if isinstance(note, ContextComposed)]
    assert [part.sources[0].path for part in told[1].parts if part.name == "files"] == ["gateway/limit.py"]


def test_an_auditor_without_tools_is_shown_what_the_plan_is_about_and_chooses_nothing() -> None:
    made = world()
    flow = forged(made)
    surveyed = [effect.text for effect in flow.effects if isinstance(effect, Survey)]
    assert "## Changes" in surveyed[-1]
    assert read(flow)[-1] == OFFERED
    assert "text of docs/guide.md" in made.prompts[-1][1]


@pytest.mark.parametrize(
    ("research", "tools", "expected"),
    [
        ("never", False, ["drafter", "auditor"]),
        ("always", True, ["drafter researches", "drafter", "auditor"]),
    ],
)
def test_the_setting_decides_whether_files_are_chosen(
    research: str, tools: bool, expected: list[str]
) -> None:
    made = world(drafter=[PLAN] if research == "never" else ["gateway/limit.py", PLAN])
    made.tools = tools
    flow = forged(made, research)
    assert turns(flow) == expected
    assert "text of gateway/limit.py" in made.prompts[-2][1]
    assert (TEXT_ONLY in made.prompts[-2][1]) is not tools


@pytest.mark.parametrize("said", ["src/secret.py", "I need gateway/limit.py", "../../etc/passwd", ""])
def test_a_choice_beyond_the_list_is_asked_for_once_more(said: str) -> None:
    made = world(drafter=[said, "gateway/limit.py", PLAN])
    flow = forged(made)
    assert turns(flow) == ["drafter researches", "drafter researches", "drafter", "auditor"]
    assert "You must produce a result" in made.prompts[1][1]
    assert flow.result.clean


def test_a_choice_beyond_the_list_twice_is_a_persons_to_decide_about() -> None:
    made = world(drafter=["src/secret.py", "src/secret.py", PLAN])
    flow = forged(made)
    (asked,) = [effect for effect in flow.effects if isinstance(effect, AskHuman)]
    assert "`src/secret.py` is not among the files that it may choose from" in asked.question
    assert read(flow) == []


def test_nothing_may_be_chosen_where_nothing_matters_and_without_any_file_nobody_is_asked() -> None:
    plan = PLAN.replace("gateway/limit.py", "gateway/new.py")
    assert turns(forged(world(drafter=["NONE", plan]))) == ["drafter researches", "drafter", "auditor"]
    made = world(drafter=[PLAN])
    made.files = ()
    assert turns(forged(made)) == ["drafter", "auditor"]


def test_a_plan_that_changes_a_file_which_was_not_read_goes_back_once_with_that_file() -> None:
    made = world(drafter=["docs/guide.md", PLAN, PLAN])
    flow = forged(made)
    assert turns(flow) == ["drafter researches", "drafter", "drafter", "auditor"]
    assert read(flow)[2] == ("docs/guide.md", "gateway/limit.py")
    assert flow.result.clean


def test_who_has_tools_may_have_read_more_than_it_was_shown() -> None:
    made = world(drafter=["docs/guide.md", PLAN])
    made.tools = True
    assert turns(forged(made, "always")) == ["drafter researches", "drafter", "auditor"]


def test_a_plan_that_goes_on_changing_files_which_were_not_read_is_none() -> None:
    beyond = PLAN.replace("## Risks", "- `gateway/other.py` — too.\n\n## Risks")
    made = world(drafter=["docs/guide.md", PLAN, beyond])
    flow = forged(made)
    (asked,) = [effect for effect in flow.effects if isinstance(effect, AskHuman)]
    assert "its plan changes `gateway/other.py`, which it has not read" in asked.question


def test_a_reviser_chooses_too_and_keeps_what_the_drafter_was_shown() -> None:
    made = world(auditor=[BLOCKING, CLEAN], reviser=["docs/guide.md", versions(PLAN)[1]])
    flow = forged(made)
    assert turns(flow) == [
        *("drafter researches", "drafter", "auditor"),
        *("reviser researches", "reviser", "auditor"),
    ]
    chosen = [note for note in flow.notes if isinstance(note, FilesChosen)]
    assert [(note.role, note.chosen) for note in chosen] == [
        ("drafter", ("gateway/limit.py",)),
        ("reviser", ("docs/guide.md",)),
    ]
    assert ("gateway/limit.py", "docs/guide.md") in read(flow)
