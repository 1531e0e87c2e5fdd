"""
What a person sees while work goes on, on standard error.

On a terminal, finished facts scroll by above a few live lines that say what is
under way and for how long. Elsewhere, one plain line for each fact.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.words import said, where
from planforge.kernel import events
from planforge.kernel.events import Recorded

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.spinner import Spinner

Observer = Callable[[Recorded], None]

QUIET = (
    events.EffectIntended,
    events.EffectCompleted,
    events.DriverStarted,
    events.ApprovalUsed,
    events.PlanEnded,
    events.RunEnded,
)
"""Facts that progress leaves to the log."""

GOOD = {"VerifyOk", "PatchApplied", "StepCompleted", "PlanApproved", "PlanForged"}
BAD = {"VerifyFailed", "AttemptRejected", "StepFailed", "EffectFailed"}

ACTIVITY = {
    "RunAgent": "the {about} is at work",
    "RunCheck": "Planforge runs the tests in a fresh checkout",
    "MakeSample": "the sample project is made",
    "OpenWorktree": "a worktree is made",
    "Rebase": "the change is carried over to what landed meanwhile",
    "Land": "it lands",
}


@contextmanager
def shown() -> Iterator[Observer]:
    """Show what happens for as long as the block runs."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with _live() as observer:
            yield _unheard(observer)
    else:
        yield _unheard(_plain)


def _unheard(observer: Observer) -> Observer:
    """Go on in silence once nobody reads what is shown: the work matters more than the talk."""
    gone = False

    def observe(recorded: Recorded) -> None:
        nonlocal gone
        if not gone:
            try:
                observer(recorded)
            except OSError:
                gone = True

    return observe


def _is_quiet(event: events.Event) -> bool:
    return isinstance(event, QUIET) or (isinstance(event, events.PlanWritten) and event.cause == "audit")


def _plain(recorded: Recorded) -> None:
    if not _is_quiet(recorded.event):
        click.echo(f"{_mark(recorded)} {_place(recorded):<9} {said(recorded.event)}", err=True)


def _place(recorded: Recorded) -> str:
    """What an event is about; for an effect, the flow that asked for it."""
    flow = recorded.key.rpartition("/")[0].rpartition("/")[2]
    return where(recorded.event) or flow or recorded.stream


def _mark(recorded: Recorded) -> str:
    return "✓" if recorded.kind in GOOD else "✗" if recorded.kind in BAD else "·"


@contextmanager
def _live() -> Iterator[Observer]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    under_way = UnderWay()
    colours = {"✓": "green", "✗": "red", "·": "dim"}
    with Live(get_renderable=under_way.lines, console=console, refresh_per_second=8, transient=True) as live:

        def observe(recorded: Recorded) -> None:
            under_way.take(recorded)
            if not _is_quiet(recorded.event):
                mark = _mark(recorded)
                name = f" {_place(recorded):<9} "
                line = Text.assemble((mark, colours[mark]), (name, "bold"), said(recorded.event))
                live.console.print(line)

        yield observe


class UnderWay:
    """The effects that were intended and have no outcome yet."""

    def __init__(self) -> None:
        self._spinners: dict[str, tuple[str, float, Spinner]] = {}

    def take(self, recorded: Recorded) -> None:
        """Note that an effect began or ended."""
        from rich.spinner import Spinner

        match recorded.event:
            case events.EffectIntended(effect=effect, about=about) if effect in ACTIVITY:
                text = f"{_place(recorded):<9} {ACTIVITY[effect].format(about=about)}"
                self._spinners[recorded.key] = (text, time.monotonic(), Spinner("dots"))
            case events.EffectCompleted() | events.EffectFailed():
                self._spinners.pop(recorded.key, None)

    def lines(self) -> RenderableType:
        """One line for each, with a spinner and how long it has taken so far."""
        from rich.console import Group

        now = time.monotonic()
        shown = list(self._spinners.values())  # a copy: another thread draws while this one works
        for text, since, spinner in shown:
            spinner.update(text=f"{text} ({now - since:.0f} s)")
        return Group(*(spinner for _, _, spinner in shown))
