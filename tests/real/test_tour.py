"""The tour with real programs in the place of the rehearsal agent: what the person sees is the same."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planforge.agents.known import KNOWN
from planforge.agents.profiles import fill
from planforge.testing.model_server import ModelServer
from real.conftest import PROGRAM, Programs
from tour import javascript, mixed, page, python, stories, touring
from tour.stories import Story
from tour.touring import Player

AGENTS = {"claude-cli": "claude", "codex-cli": "codex"}
ROLES = ("drafter", "auditor", "reviser", "developer")
STORIES = (python.STORY, javascript.STORY, mixed.STORY)
TOURS = [(agent, story) for agent in AGENTS for story in STORIES]


def pointed(agent: str, url: str, path: str) -> Player:
    """A real program whose settings lead it to the scripted server, as a person would write them."""
    way = KNOWN[agent].endpoint
    lines = [f"[agents.profiles.{agent}.env]"]
    lines += [f"{name} = {json.dumps(fill(text, {'endpoint': url}))}" for name, text in way.env.items()]
    lines += ["", f"[agents.profiles.{agent}.files]"]
    lines += [
        f"{json.dumps(name)} = {json.dumps(fill(text, {'endpoint': url}))}"
        for name, text in way.files.items()
    ]
    lines += ["", "[agents.models]", *(f'{role} = "scripted-1"' for role in ROLES), "", ""]
    return Player(default=agent, settings="\n".join(lines), path=path)


@pytest.mark.parametrize(("agent", "story"), TOURS, ids=lambda value: getattr(value, "project", value))
@pytest.mark.check("takes the tour like the rehearsal agent")
def test_the_tour_goes_as_its_page_says(
    agent: str,
    story: Story,
    programs: Programs,
    server: Callable[[Any], ModelServer],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    assert programs[AGENTS[agent]].exists()
    record_property(PROGRAM, agent)
    source = Path(os.environ["PLANFORGE_TOUR"]) / story.project / "source"
    tour = touring.Tour(story, source, tmp_path)
    model = server(stories.script(story))
    touring.taken(tour, pointed(agent, model.url, programs.path))
    page.hold(story, tour.shown)
    # The page calls every agent by one name; who was at work stands in the ledger.
    assert set(tour.at_work()) == {agent}
    assert model.requests
