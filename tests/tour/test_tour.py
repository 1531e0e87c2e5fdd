"""A new user takes the tour in three real projects, with the rehearsal agent; pages show what they saw."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tour import javascript, mixed, page, python, touring
from tour.stories import Story

STORIES = (python.STORY, javascript.STORY, mixed.STORY)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.project)
def test_the_tour_goes_as_its_page_says(story: Story, tmp_path: Path) -> None:
    source = Path(os.environ["PLANFORGE_TOUR"]) / story.project / "source"
    tour = touring.Tour(story, source, tmp_path)
    touring.taken(tour, touring.rehearsal(tour.home))
    page.hold(story, tour.shown)
