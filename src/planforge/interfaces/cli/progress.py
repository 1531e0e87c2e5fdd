"""
What a person sees while work goes on, on standard error.

On a terminal, finished facts scroll by above a few live lines that say what is
under way and for how long. Elsewhere, one plain line for each fact, and now and
then one for what is still under way, so that a quiet hour is not taken for the end.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.printing import hush
from planforge.interfaces.cli.words import said, where
from planforge.kernel import events
from planforge.kernel.events import Recorded

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.spinner import Spinner

Observer = Callable[[Recorded], None]

HEARTBEAT = 30.0
"""Seconds between two plain lines about the same thing."""

QUIET = (
    events.EffectIntended,
    events.EffectCompleted,
    events.DriverStarted,
    events.ApprovalUsed,
    events.PlanEnded,
    events.RunEnded,
    events.LeaseGranted,
    events.LeaseRenewed,
    events.LeaseReleased,
    events.BudgetSet,
    events.BudgetReserved,
    events.BudgetSpent,
    events.BudgetReconciled,
)
"""Facts that progress leaves to the log."""

GOOD = {"VerifyOk", "PatchApplied", "StepCompleted", "PlanApproved", "PlanForged"}
GOOD |= {"PlanLanded", "CheckoutUpdated"}
BAD = {"VerifyFailed", "AttemptRejected", "StepFailed", "EffectFailed"}
BAD |= {"LandingConflicted", "LandingBroken", "PlanHeldBack"}

ACTIVITY = {
    "RunAgent": "the {about} is at work",
    "Inspect": "Planforge looks at the change",
    "PassGate": "a person has to look at it",
    "RunCheck": "Planforge runs the tests in a fresh checkout",
    "MakeSample": "the sample project is made",
    "OpenWorktree": "a worktree is made",
    "Rebase": "the change is carried over to what landed meanwhile",
    "Land": "it lands",
    "Merge": "{about} is merged",
    "AdvanceBranch": "the branch moves",
    "UpdateCheckout": "the checkout is brought forward",
}


@contextmanager
def shown(heartbeat: float = HEARTBEAT) -> Iterator[Observer]:
    """Show what happens for as long as the block runs."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with _live() as observer:
            yield _unheard(observer)
    else:
        with _plain(heartbeat) as observer:
            yield _unheard(observer)


def _unheard(observer: Observer) -> Observer:
    """Go on in silence once nobody reads what is shown: the work matters more than the talk."""
    gone = False

    def observe(recorded: Recorded) -> None:
        nonlocal gone
        if not gone:
            try:
                observer(recorded)
            except OSError:
                hush(sys.stderr)
                gone = True

    return observe


@contextmanager
def _plain(heartbeat: float) -> Iterator[Observer]:
    under_way = UnderWay()
    over = threading.Event()

    def beat() -> None:
        while not over.wait(heartbeat):
            for _, line in under_way.lines():
                try:
                    click.echo(f"… {line}", err=True)
                except OSError:
                    return

    def observe(recorded: Recorded) -> None:
        under_way.take(recorded)
        if not _is_quiet(recorded.event):
            click.echo(f"{_mark(recorded)} {_place(recorded):<9} {said(recorded.event)}", err=True)

    heart = threading.Thread(target=beat, daemon=True)
    heart.start()
    try:
        yield observe
    finally:
        over.set()
        heart.join()


@contextmanager
def _live() -> Iterator[Observer]:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    under_way = UnderWay()
    spinners: dict[str, Spinner] = {}
    colours = {"✓": "green", "✗": "red", "·": "dim"}

    def drawn() -> RenderableType:
        found = under_way.lines()
        for key, line in found:
            spinners.setdefault(key, Spinner("dots")).update(text=line)
        return Group(*(spinners[key] for key, _ in found))

    with Live(get_renderable=drawn, console=console, refresh_per_second=8, transient=True) as live:

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
        self._since: dict[str, tuple[str, float]] = {}

    def take(self, recorded: Recorded) -> None:
        """Note that an effect began or ended."""
        match recorded.event:
            case events.EffectIntended(effect=effect, about=about) if effect in ACTIVITY:
                text = f"{_place(recorded):<9} {ACTIVITY[effect].format(about=about)}"
                self._since[recorded.key] = (text, time.monotonic())
            case events.EffectCompleted() | events.EffectFailed():
                self._since.pop(recorded.key, None)

    def lines(self) -> list[tuple[str, str]]:
        """The key of each, and a line that says what it is and how long it has taken so far."""
        now = time.monotonic()
        begun = list(self._since.items())  # a copy: another thread draws while this one works
        return [(key, f"{text} ({now - since:.0f} s)") for key, (text, since) in begun]


def _is_quiet(event: events.Event) -> bool:
    return isinstance(event, QUIET) or (isinstance(event, events.PlanWritten) and event.cause == "audit")


def _place(recorded: Recorded) -> str:
    """What an event is about; for an effect, the flow that asked for it."""
    flow = recorded.key.rpartition("/")[0].rpartition("/")[2]
    return where(recorded.event) or flow or recorded.stream


def _mark(recorded: Recorded) -> str:
    return "✓" if recorded.kind in GOOD else "✗" if recorded.kind in BAD else "·"
