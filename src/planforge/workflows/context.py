"""
What an agent is told, put together from parts, each within its budget.

Pure: what was gathered and the task go in, one text comes out, with a list of its parts, how large each is
and what was left out of it. An agent gets its role, what the repository says of itself, what the steps did
that its own depends on, in short what else was done, and its task. It never gets the history.

A part that is too large is cut where a paragraph or a line ends, and the text says so at that place. The
instructions of a task are never cut; what they are about may be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from planforge.documents import markdown
from planforge.documents.phases import Phase
from planforge.kernel.effects import DoneStep, Gathered, GatheredPart
from planforge.kernel.events import ContextPart
from planforge.kernel.objects import address
from planforge.kernel.tokens import CHARACTERS_PER_TOKEN, estimate
from planforge.kernel.wording import counted
from planforge.rules.verdicts import SCALES

ROLE, STANDARDS, ARCHITECTURE, LESSONS, OVERLAY = "role", "standards", "architecture", "lessons", "overlay"
CONSTRAINTS = "constraints"
CLOSURE, SUMMARIES, FILES, TASK = "closure", "summaries", "files", "task"

TITLES = {
    ROLE: "Your role",
    STANDARDS: "Standards of the project",
    CONSTRAINTS: "Constraints of the project",
    ARCHITECTURE: "Architecture of the project",
    LESSONS: "Lessons of the project",
    OVERLAY: "The project around your work",
    CLOSURE: "What your work builds on",
    SUMMARIES: "What else was done before",
    FILES: "Files that your task is about",
    TASK: "Your task",
}
"""The parts in the order in which an agent reads them."""

DROPPED = (ARCHITECTURE, SUMMARIES)
"""What a second try in short does without."""

DELTA = 3
"""How many steps `delta` tells of."""

CLAIM = 320
"""How many characters of what an agent said about its step are told to others."""

MARKER_TOKENS = 20
"""What it takes to say that something was left out."""

AGAIN = """\
This was asked before, and what came back could not be used: {problem}
You must produce a result. If you cannot do the task, say in the form asked for what stands in the way."""


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """A text that a task is about."""

    name: str
    """What it is, such as `the plan`."""
    text: str


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A task in pieces: who is asked about what, the instructions, and what they are about."""

    head: str
    asked: str
    material: tuple[Material, ...] = ()
    """What matters most first: where there is not room for all, the last ones are cut."""
    closing: str = ""
    verdict: str = ""
    """How the answer is read, if it is a review: a kind of `rules.verdicts`."""
    lasting: int = 1
    """How many pieces of its material an agent gets that goes on with the task of another."""


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A text within its budget, and what it took to get there."""

    text: str
    left_out: str = ""
    """What was left out, in words; empty if nothing was."""


class Composed(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is told."""

    text: str
    parts: tuple[ContextPart, ...]

    @property
    def tokens(self) -> int:
        """How many there are, by our guess."""
        return estimate(len(self.text))


def compose(
    prompt: Prompt, gathered: Gathered, closure: Collection[str] = (), *, problem: str = ""
) -> Composed:
    """The whole prompt. With a `problem`, the short one for a second try after it."""
    found = [*gathered.parts, *_of_steps(gathered, closure)]
    found = [_dropped(part) if problem and part.name in DROPPED else part for part in found]
    if scale := SCALES.get(prompt.verdict):
        prompt = msgspec.structs.replace(prompt, closing=f"{prompt.closing}\n{scale}")
    found.append(_task(prompt, gathered.budgets.get(TASK), problem))
    order = list(TITLES)
    found.sort(key=lambda part: order.index(part.name))
    shown = [prompt.head, *(_section(part) for part in found if part.text)]
    missing = [f"{part.name} ({part.left_out})" for part in found if part.left_out and not part.text]
    if missing:
        shown.append(f"Left out altogether: {', '.join(missing)}.")
    parts = tuple(
        ContextPart(
            name=part.name,
            tokens=estimate(len(_section(part))) if part.text else 0,
            left_out=part.left_out,
            sources=part.sources if part.text else (),
        )
        for part in found
    )
    return Composed(text="\n\n".join(shown) + "\n", parts=parts)


def _section(part: GatheredPart) -> str:
    return f"## {TITLES[part.name]}\n\n{part.text}"


def _dropped(part: GatheredPart) -> GatheredPart:
    return GatheredPart(
        name=part.name, text="", left_out=f"about {estimate(len(part.text))} tokens, to be short"
    )


# Cutting


def cut(text: str, tokens: int) -> Cut:
    """As much of the beginning of a text as fits, up to the end of a paragraph or at least of a line."""
    text = text.strip("\n")
    whole = estimate(len(text))
    if whole <= tokens:
        return Cut(text=text)
    room = (tokens - MARKER_TOKENS) * CHARACTERS_PER_TOKEN
    kept = _beginning(text, room) if room > 0 else ""
    left = text[len(kept) :].strip("\n")
    lines = left.count("\n") + 1
    left_out = f"{counted(lines, 'line')}, about {estimate(len(left))} tokens"
    if not kept:
        return Cut(text="", left_out=left_out)
    if fence := markdown.open_fence(kept):
        kept = f"{kept}\n{fence}"
    return Cut(text=f"{kept}\n[left out here: {left_out}]", left_out=left_out)


def _beginning(text: str, room: int) -> str:
    """The longest beginning that fits and ends well."""
    head = text[:room]
    paragraph, line = head.rfind("\n\n"), head.rfind("\n")
    if paragraph >= room // 2:
        return head[:paragraph]
    if line > 0:
        return head[:line]
    return (
        head[: head.rfind(" ")] if " " in head else head
    )  # one line that is longer than all there is room for


# What steps did


def closure_of(phases: Sequence[Phase], step: str) -> tuple[str, ...]:
    """All that a step depends on, directly or not, in the order of the plan."""
    needs = {phase.id: phase.depends_on for phase in phases}
    found: set[str] = set()
    left = list(needs.get(step, ()))
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += needs.get(name, ())
    return tuple(phase.id for phase in phases if phase.id in found)


def _of_steps(gathered: Gathered, closure: Collection[str]) -> list[GatheredPart]:
    needed = [step for step in gathered.steps if step.step in closure]
    others = [step for step in gathered.steps if step.step not in closure]
    wanted, older = _chosen(others, gathered.summaries)
    parts = [_told(CLOSURE, needed, gathered.budgets, ()), _told(SUMMARIES, wanted, gathered.budgets, older)]
    return [part for part in parts if part.text or part.left_out]


def _chosen(steps: list[DoneStep], which: str) -> tuple[list[DoneStep], list[str]]:
    """Those of the other steps that are told of, and the names of those that are not."""
    if which == "none":
        return [], []
    if which == "all":
        return steps, []
    return steps[-DELTA:], [step.step for step in steps[:-DELTA]]


def _told(
    name: str, steps: Sequence[DoneStep], budgets: Mapping[str, int], older: Iterable[str]
) -> GatheredPart:
    """The newest steps that there is room for, in order, and the names of the others."""
    room = budgets.get(name, 0) - (MARKER_TOKENS if steps else 0)
    kept: list[str] = []
    left_out = list(older)
    for step in reversed(steps):
        text = told(step)
        room -= estimate(len(text) + 1)
        if room < 0:
            left_out += [each.step for each in steps[: len(steps) - len(kept)]]
            break
        kept.insert(0, text)
    words = _names(left_out)
    if kept and words:
        kept.insert(0, f"[left out here: {words}]")
    return GatheredPart(name=name, text="\n".join(kept), left_out=words)


def _names(steps: Sequence[str]) -> str:
    if len(steps) <= DELTA:
        return ", ".join(steps)
    return f"{counted(len(steps), 'step')} from {steps[0]} to {steps[-1]}"


def told(step: DoneStep) -> str:
    """One step in short: what it changed, what its agent said, what we measured."""
    # A title that only repeats the files' names tells nothing, and costs as much as they do.
    own = not any(path in step.title for path in step.files)
    lines = [f"- {step.step}" + (f": {step.title}" if own and step.title else "")]
    if step.files:
        lines.append(f"  changed {paths(step.files)}")
    if step.claim:
        lines.append(f"  its agent says: {_first(step.claim)}")
    if step.evidence:
        lines.append(f"  we measured: {step.evidence}")
    return "\n".join(lines)


def _first(claim: str) -> str:
    words = " ".join(claim.split())
    return words if len(words) <= CLAIM else words[: words[:CLAIM].rfind(" ")] + " …"


def paths(files: Iterable[str]) -> str:
    """Paths in few words: each directory once, with what is in it."""
    directories: dict[str, list[str]] = {}
    for path in files:
        directory, _, name = path.rpartition("/")
        directories.setdefault(directory, []).append(name)
    return "; ".join(
        f"in {directory}: {', '.join(names)}" if directory else ", ".join(names)
        for directory, names in directories.items()
    )


# The task


def _marked(item: Material, text: str) -> str:
    """A text between marks that nobody who wrote it could know: they depend on it."""
    mark = address(item.text.encode("utf-8", "replace"))[:8]
    return f"----- {item.name} ({mark}) -----\n{text}\n----- end of {item.name} ({mark}) -----"


def _task(prompt: Prompt, tokens: int | None, problem: str) -> GatheredPart:
    again = AGAIN.format(problem=cut(problem, 200).text) if problem else ""
    room = None if tokens is None else tokens - estimate(sum(map(len, (prompt.asked, prompt.closing, again))))
    shown: list[str] = [prompt.asked]
    left_out: list[str] = []
    for item in prompt.material:
        if not item.text.strip():
            continue
        found = Cut(text=item.text.strip("\n")) if room is None else cut(item.text, max(room, 0))
        if found.left_out:
            left_out.append(f"of {item.name}: {found.left_out}")
        text = found.text or f"[left out here: {found.left_out}]"
        shown.append(_marked(item, text))
        if room is not None:
            room -= estimate(len(text))
    shown += [each for each in (prompt.closing, again) if each]
    return GatheredPart(name=TASK, text="\n\n".join(shown), left_out="; ".join(left_out))
