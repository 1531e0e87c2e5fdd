"""
The state of a project on one screen of 24 lines: what runs, what waits, the plans, the cost.

Plain text without colours. A section that does not fit ends with a line that counts the rest and names the
command that shows it. Nothing here loads click, which takes longer to load than the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planforge.actions import Action
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.layout import cut, table, terminal, visible, width
from planforge.interfaces.cli.streams import as_document
from planforge.interfaces.cli.typed import line
from planforge.kernel.wording import CANCELLED, MILLION, counted, money

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from planforge.actions import Hint
    from planforge.app.items.plans import StepRow
    from planforge.app.overview import Cost, Overview, PlanStatus, Running
    from planforge.app.runs import RunRow

MOST = {"running": 5, "waits": 6, "plans": 7, "tasks": 4, "runs": 3, "next": 3}
"""The most lines of a section."""
LEAST = {"runs": 0, "tasks": 1, "plans": 2, "next": 1, "running": 1, "waits": 3}
"""The fewest lines of a section on a small screen; the first in this table shrinks first."""


def status(*, as_json: bool = False) -> Iterator[str]:
    """The state of the project, as `planforge status` prints it."""
    from planforge.app.overview import overview

    found = overview(here())
    yield as_document(found) if as_json else page(found)


def page(found: Overview, size: tuple[int, int] | None = None, typed: Callable[[Hint], str] = line) -> str:
    """
    The whole screen for a terminal of this size; 0 columns is any width.

    `typed` says how a person types an action.
    """
    columns, lines = size or terminal()
    room = lines - 1  # the prompt comes below
    head = f"{visible(found.root)}  ({counted(found.events, 'event')})"
    shown = _fitting(found, typed, columns, room - 1)
    used = 1 + sum(map(len, shown))
    airy = used + len(shown) <= room
    _add_steps(shown, found, room - used - (len(shown) if airy else 0))
    text = ("\n\n" if airy else "\n").join("\n".join(section) for section in ([head], *shown))
    if columns:
        text = "\n".join(cut(line, columns) for line in text.split("\n"))
    return text


def _fitting(found: Overview, typed: Callable[[Hint], str], columns: int, room: int) -> list[list[str]]:
    """The sections, shortened until all of them fit or none can shrink any more."""
    most = dict(MOST)
    while True:
        sections = [section for section in _sections(found, typed, columns, most) if section]
        name = next((each for each in LEAST if most[each] > LEAST[each]), "")
        if not name or sum(map(len, sections)) <= room:
            return sections
        most[name] -= 1


def _sections(
    found: Overview, typed: Callable[[Hint], str], columns: int, most: dict[str, int]
) -> list[list[str]]:
    everything = Action("status", json=True)
    following = [f"  {typed(hint)}" for hint in found.next]
    return [
        _section("Running", _running(found), most["running"], everything),
        _section("Waits for you", _waits(found, typed, columns), most["waits"], everything),
        _section("Plans", _plans(found), most["plans"], Action("plan list")),
        _section("Tasks", _tasks(found), most["tasks"], Action("task list")),
        _runs(found, most["runs"]),
        [f"Cost  {cost(found.cost)}"] if found.runs else [],
        _section("Next", following, most["next"], everything),
    ]


# Sections


def _section(title: str, rows: list[str], most: int, rest: Action, count: int = 0) -> list[str]:
    """At most `most` rows, and a line that counts the rest; `count` is the total if `rows` are only some."""
    left = max(len(rows), count) - most
    more = [f"  and {left} more: {line(rest)}"] if left > 0 else []
    return [title, *rows[:most], *more] if rows else []


def _running(found: Overview) -> list[str]:
    rows = [
        (run.run, f"{run.flow} {run.subject}", age(found.now, run.since), _doing(run), cost(run.cost))
        for run in found.running
    ]
    return _lines(rows)


def _lines(rows: Sequence[tuple[str, ...]], indent: str = "  ") -> list[str]:
    return table(rows, indent, 0).splitlines()


def _doing(run: Running) -> str:
    return " ".join(filter(None, (", ".join(run.steps), f"({', '.join(run.roles)})" if run.roles else "")))


def _waits(found: Overview, typed: Callable[[Hint], str], columns: int) -> list[str]:
    """The oldest first, each with its command on the right; commands are never cut."""
    rows = [
        (age(found.now, each.since), each.name, visible(each.about), typed(each.command))
        for each in found.waiting
    ]
    if columns and rows:
        others = sum(max(width(row[at]) for row in rows) for at in (0, 1, 3))
        left = max(columns - others - 8, 8)
        rows = [(old, name, cut(about, left), command) for old, name, about, command in rows]
    return _lines(rows)


def _plans(found: Overview) -> list[str]:
    """Open plans first, then the newest of the others."""
    over = ("CLOSED", "CANCELLED")
    ordered = [item for item in found.plans if item.plan.status not in over]
    ordered += [item for item in reversed(found.plans) if item.plan.status in over]
    badges = any(item.badge for item in ordered)
    return _lines([_plan(item, badges=badges) for item in ordered])


def _plan(item: PlanStatus, *, badges: bool) -> tuple[str, ...]:
    plan = item.plan
    badge = (item.badge,) if badges else ()
    title = cut(visible(plan.title), 32)
    done = sum(step.status in ("done", "skipped") for step in item.steps)
    steps = f"{done}/{len(item.steps)}" if item.steps else ""
    return (plan.plan, plan.status, *badge, title, steps, cost(item.cost) if item.cost.tokens else "")


def _add_steps(sections: list[list[str]], found: Overview, room: int) -> None:
    """Put the steps of plans below them, as long as there is room for all the steps of one."""
    place = next((section for section in sections if section[0] == "Plans"), None)
    if place is None:
        return
    for item in found.plans:
        at = next((number for number, line in enumerate(place) if line.startswith(f"  {item.plan.plan} ")), 0)
        lines = _lines([_step(step) for step in item.steps], "    ")
        if not at or not lines or item.plan.status in ("CLOSED", "CANCELLED"):
            continue
        if item.plan.branch:
            lines.append(f"    {item.plan.branch} at {item.plan.landed[:12]}")
        if len(lines) > room:
            continue
        place[at + 1 : at + 1] = lines
        room -= len(lines)


def _step(step: StepRow) -> tuple[str, ...]:
    attempts = counted(step.attempts, "attempt")
    score = ""
    if step.kind == "implement":
        score = f"score {'unknown' if step.score is None else step.score}"
    return (step.step, step.status, attempts, score, visible(step.title))


def _tasks(found: Overview) -> list[str]:
    rows = [(task.task, task.status, task.pipeline, task.stage, visible(task.title)) for task in found.tasks]
    return _lines(rows)


def _runs(found: Overview, most: int) -> list[str]:
    """The newest ended runs; the others are in the sections above."""
    rows = [_run(run) for run in found.runs if not run.unfinished]
    shown = _lines(rows)[-most:] if most else []
    return _section("Runs", shown, most, Action("log"), max(found.ended, len(rows)))


def _run(run: RunRow) -> tuple[str, ...]:
    status, reason = run.status, run.reason
    if reason.startswith(CANCELLED):
        status, _, reason = reason.partition(" ")
    return (run.run, run.flow, run.subject, status, visible(reason))


# Words


def cost(found: Cost) -> str:
    """A cost in a few words; unknown amounts are called unknown."""
    if found.tokens is None and found.money is None:
        return "cost unknown" if found.unknown else "nothing yet"
    tokens = "tokens unknown" if found.tokens is None else f"{_many(found.tokens)} tokens"
    spent = "money unknown" if found.money is None else money(found.money)
    guessed = f", {found.unknown} guessed" if found.unknown else ""
    return f"{tokens}, {spent}{guessed}"


def _many(number: int) -> str:
    if number < 10_000:
        return str(number)
    return f"{number / 1000:.0f}k" if number < MILLION else f"{number / MILLION:.1f}M"


def age(now: str, since: str) -> str:
    """How long ago something was, in one unit."""
    from datetime import datetime

    seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(int(seconds), 0)} s"
