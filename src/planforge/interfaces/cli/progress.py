"""
What a person sees while work goes on, on standard error.

On a terminal, finished facts scroll by above a few live lines that say what is
under way and for how long. Elsewhere, one plain line for each fact, and now and
then one for what is still under way, so that a quiet hour is not taken for the end.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from planforge.app.audience import Audience
from planforge.interfaces.cli.printing import hush
from planforge.interfaces.cli.words import first_line, said, where
from planforge.kernel import events
from planforge.kernel.events import Recorded

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.spinner import Spinner

Show = Callable[[str, str, str], None]
"""Shows one line: its mark, what it is about, what it says."""

HEARTBEAT = 30.0
"""Seconds between two plain lines about the same thing."""

QUIET = (
    events.EffectIntended,
    events.EffectCompleted,
    events.DriverStarted,
    events.ApprovalUsed,
    events.QuestionAsked,
    events.PlanEnded,
    events.RunEnded,
    events.LeaseGranted,
    events.LeaseRenewed,
    events.LeaseReleased,
    events.BudgetSet,
    events.BudgetReserved,
    events.BudgetSpent,
    events.BudgetReconciled,
    events.SessionKept,
    events.SessionLost,
    events.TaskMoved,
)
"""Facts that progress leaves to the log."""

GOOD = {"VerifyOk", "PatchApplied", "StepCompleted", "PlanApproved", "PlanForged"}
GOOD |= {"PlanLanded", "CheckoutUpdated"}
BAD = {"VerifyFailed", "AttemptRejected", "StepFailed", "EffectFailed"}
BAD |= {"LandingConflicted", "LandingBroken", "PlanHeldBack"}

SIGNALS = {"completed": "✓", "approved": "✓", "revision": "↻", "escalated": "⚠"}
"""How a stage of a pipeline ends."""

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
    "TakeActions": "{about} that the answer asks for",
    "UpdateCheckout": "the checkout is brought forward",
}


def _nothing() -> None:
    pass


class Screen(Audience):
    """Whoever sits before it sees what is recorded and hears what is not, and can be asked."""

    def __init__(self, under_way: UnderWay, show: Show, *, pause: Callable[[], None] = _nothing) -> None:
        self._under_way = under_way
        self._show = show
        self._pause = pause
        self._asking = asyncio.Lock()
        self._gone = False
        self.attended = sys.stdin.isatty() and sys.stderr.isatty()

    def __call__(self, recorded: Recorded) -> None:
        """Show a fact, unless it is left to the log."""
        self._under_way.take(recorded)
        if not _is_quiet(recorded.event):
            self._shown(_mark(recorded), _place(recorded), said(recorded.event))

    def heard(self, key: str, what: str) -> None:
        """Remember it for the next time that it is drawn what is under way."""
        self._under_way.hear(key, what)

    def told(self, what: str) -> None:
        """Show it at once."""
        self._shown("!", "", _printable(what))

    async def asked(self, question: str) -> bool:
        """Put a question to the person, one at a time."""
        async with self._asking:
            self._pause()
            try:
                return await asyncio.to_thread(click.confirm, _printable(question), default=False, err=True)
            except click.Abort:  # they have gone
                return False

    def _shown(self, mark: str, place: str, text: str) -> None:
        """Go on in silence once nobody reads what is shown: the work matters more than the talk."""
        if not self._gone:
            try:
                self._show(mark, place, text)
            except OSError:
                hush(sys.stderr)
                self._gone = True


@contextmanager
def shown(heartbeat: float = HEARTBEAT) -> Iterator[Screen]:
    """Show what happens for as long as the block runs."""
    live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    with _live() if live else _plain(heartbeat) as screen:
        yield screen


@contextmanager
def _plain(heartbeat: float) -> Iterator[Screen]:
    under_way = UnderWay()
    over = threading.Event()

    def beat() -> None:
        while not over.wait(heartbeat):
            for _, line in under_way.lines():
                try:
                    click.echo(f"… {line}", err=True)
                except OSError:
                    return

    def show(mark: str, place: str, text: str) -> None:
        click.echo(f"{mark} {place:<9} {text}" if place else f"{mark} {text}", err=True)

    heart = threading.Thread(target=beat, daemon=True)
    heart.start()
    try:
        yield Screen(under_way, show)
    finally:
        over.set()
        heart.join()


@contextmanager
def _live() -> Iterator[Screen]:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    under_way = UnderWay()
    spinners: dict[str, Spinner] = {}
    colours = {"✓": "green", "✗": "red", "·": "dim", "!": "yellow", "→": "blue", "↻": "yellow", "⚠": "red"}

    def drawn() -> RenderableType:
        found = under_way.lines()
        for key, line in found:
            spinners.setdefault(key, Spinner("dots")).update(text=line)
        return Group(*(spinners[key] for key, _ in found))

    with Live(get_renderable=drawn, console=console, refresh_per_second=8, transient=True) as live:

        def show(mark: str, place: str, text: str) -> None:
            live.start()  # it may have made room for a question
            name = f" {place:<9} " if place else " "
            live.console.print(Text.assemble((mark, colours[mark]), (name, "bold"), text))

        yield Screen(under_way, show, pause=live.stop)


class UnderWay:
    """The effects that were intended and have no outcome yet."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[str, float]] = {}
        self._heard: dict[str, str] = {}
        """The last sign of life of each; how often it is drawn does not depend on how often there is one."""

    def take(self, recorded: Recorded) -> None:
        """Note that an effect began or ended."""
        match recorded.event:
            case events.EffectIntended(effect=effect, about=about) if effect in ACTIVITY:
                text = f"{_place(recorded):<9} {ACTIVITY[effect].format(about=about)}"
                self._since[recorded.key] = (text, time.monotonic())
            case events.EffectCompleted() | events.EffectFailed():
                self._since.pop(recorded.key, None)
                self._heard.pop(recorded.key, None)

    def hear(self, key: str, what: str) -> None:
        """Note a sign of life."""
        self._heard[key] = first_line(_printable(what), 60)

    def lines(self) -> list[tuple[str, str]]:
        """The key of each, and a line that says what it is and how long it has taken so far."""
        now = time.monotonic()
        begun = list(self._since.items())  # a copy: another thread draws while this one works
        heard = {key: f": {what}" for key, what in list(self._heard.items()) if what}
        return [(key, f"{text} ({now - since:.0f} s){heard.get(key, '')}") for key, (text, since) in begun]


def _printable(text: str) -> str:
    """What an agent may have had a hand in, without anything that moves a cursor."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())


def _is_quiet(event: events.Event) -> bool:
    if isinstance(event, events.ContextComposed):
        return not event.simplified and not any(part.left_out for part in event.parts)
    return isinstance(event, QUIET) or (isinstance(event, events.PlanWritten) and event.cause == "audit")


def _place(recorded: Recorded) -> str:
    """What an event is about; for an effect, the flow that asked for it."""
    flow = recorded.key.rpartition("/")[0].rpartition("/")[2]
    return where(recorded.event) or flow or recorded.stream


def _mark(recorded: Recorded) -> str:
    match recorded.event:
        case events.StageStarted():
            return "→"
        case events.StageEnded(outcome=outcome):
            return SIGNALS[outcome]
        case events.TaskEnded(succeeded=succeeded):
            return "✓" if succeeded else "✗"
    return "✓" if recorded.kind in GOOD else "✗" if recorded.kind in BAD else "·"
