"""The pages that show the tour: what each says, and whether it is what was just seen."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path

from tour.stories import Story
from tour.touring import Shown

DOCS = Path(__file__).parents[2] / "docs"
WRITE = "PLANFORGE_TOUR_WRITE"

HEAD = """\
# A tour in {kind}

Every screen on this page was recorded by a test (`make tour`), which fails if it sees anything else;
`make tour-page` writes it again. The project is {project} {version}:
{about}.
The [rehearsal agent](rehearsal-agent.md) plays the agents, so no account is needed;
`make test-agents` takes the same tour with the real claude and codex and a scripted model. Everything else is
real: git, tests, sandbox, ledger.

So that the page is the same each time, every hash is `0f1e2d3c4b5a`, times and scores are fixed, lines of
parallel phases are sorted, long lines and long screens are cut with `…`.

{others}
"""

PAGES = {"inflection": "tour.md", "json-stable-stringify": "tour-javascript.md", "node-gyp": "tour-mixed.md"}
VERSIONS = {"inflection": "0.5.1", "json-stable-stringify": "1.0.1", "node-gyp": "9.4.1"}
NAMES = {"inflection": "Python", "json-stable-stringify": "JavaScript", "node-gyp": "two languages"}


def told(story: Story, shown: Sequence[Shown]) -> str:
    """The whole page."""
    links = [f"[in {NAMES[name]}]({page})" for name, page in PAGES.items() if name != story.project]
    others = f"The same tour: {', '.join(links)}."
    head = HEAD.format(
        kind=NAMES[story.project],
        project=story.project,
        version=VERSIONS[story.project],
        about=story.about,
        others=others,
    )
    return head + "".join(_stop(each) for each in shown)


def _stop(shown: Shown) -> str:
    return f"\n{shown.words}\n\n````{shown.language}\n{shown.screen}````\n"


def hold(story: Story, shown: Sequence[Shown]) -> None:
    """Write the page, if that was asked for; otherwise it must say what was seen."""
    path = DOCS / PAGES[story.project]
    page = told(story, shown)
    if os.environ.get(WRITE):
        path.write_text(page)
        return
    there = path.read_text() if path.exists() else ""
    lines = difflib.unified_diff(
        there.splitlines(), page.splitlines(), f"docs/{path.name}", "what was seen", lineterm=""
    )
    difference = "\n".join(lines)
    assert not difference, f"the page is not what was seen; `make tour-page` writes it anew\n{difference}"
