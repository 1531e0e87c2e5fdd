"""
Which lessons an agent is told: those of the commit that the work starts from, as far as they matter to it.

They are the project's words, as its standards are: they stand between marks with the hash of the file, which
is on record. Nothing is cut; what there is no room for is named. Whoever plans and whoever audits is asked
for the decision about lessons as well, even where none applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planforge.agents import standards
from planforge.documents import lessons as lesson_file
from planforge.kernel.effects import GatherContext, GatheredPart
from planforge.kernel.events import ContextSource, ItemOpened
from planforge.kernel.paths import exact
from planforge.kernel.tokens import estimate
from planforge.kernel.wording import counted
from planforge.rules import lessons
from planforge.workflows import prompts
from planforge.workflows.context import LESSONS, MARKER_TOKENS
from planforge.workspace.git.listing import Listing

if TYPE_CHECKING:
    from planforge.app.project import Project

LARGEST = 256 * 1024
"""A larger file is not read."""


def part(project: Project, listing: Listing, effect: GatherContext) -> GatheredPart | None:
    """The lessons that matter to the work, if the project keeps any, and what to do about them."""
    path, room = exact(project.settings.lessons.file), project.settings.context.lessons
    entry = listing.entries.get(path)
    if entry is None or entry.link:
        return None
    content = listing.read([path], LARGEST).get(path)
    if content is None:
        return GatheredPart(name=LESSONS, text="", left_out=f"{path} has more than {LARGEST} bytes")
    file = standards.Standard.of(path, content)
    work = lessons.Work(text=_wanted(project, effect.plan), files=effect.files)
    wanted = lessons.relevant(lesson_file.parse(file.text), work)
    text, missing = _between(file, wanted, prompts.heed(effect.role), room)
    if not text and not missing:
        return None
    source = ContextSource(path=path, hash=file.hash)
    return GatheredPart(name=LESSONS, text=text, left_out=missing, sources=(source,))


def _between(
    file: standards.Standard, wanted: Sequence[lessons.Lesson], heed: str, tokens: int
) -> tuple[str, str]:
    """The lessons between the marks of their file, as far as there is room, and what was left out."""
    room = tokens - estimate(len(prompts.LESSONS) + len(file.marked("")) + len(heed) + 8)
    told = lessons.told(wanted, room)
    if told.left_out:
        told = lessons.told(wanted, room - MARKER_TOKENS)
    number = len(told.left_out)
    count = counted(number, "lesson")
    missing = f"{count}: {', '.join(told.left_out[:5])}{' and others' * (number > 5)}" if number else ""
    if told.lines:
        lines = [*told.lines, *([f"[left out here: {count}]"] if number else [])]
        return "\n\n".join([prompts.LESSONS, file.marked("\n".join(lines)), heed]), missing
    # Where no lesson applies, the decision about a new one is asked for still.
    decides = heed != prompts.HEEDED and estimate(len(heed)) <= tokens
    return heed if decides else "", missing


def _wanted(project: Project, name: str) -> str:
    """What somebody wants, in their own words: of a plan or of a task."""
    for item in project.ledger.stream(name):
        match item.event:
            case ItemOpened(title=title, request=request):
                return f"{title}\n{request}"
    return ""
