"""
Progress for a person, on standard error.

On a terminal, facts scroll by above a few live lines that show what is running
and for how long. Elsewhere, each fact is one plain line. Work that takes long
gets a line now and then, so that a quiet hour does not look like the end.
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

from planforge.app.agents.audience import Audience
from planforge.interfaces.cli.event_words import first_line, said, where
from planforge.interfaces.cli.streams import hush
from planforge.kernel import events
from planforge.kernel.events import Recorded

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.spinner import Spinner

Show = Callable[[str, str, str], None]
"""Shows one line: its mark, what it is about, what it says."""

HEARTBEAT = 45.0
"""Seconds between two plain lines about the same work, and of silence before it is shown; 0 is never."""

PROGRESS = 3.0
"""Seconds that an agent's sign of life stays on the screen at least, so that it can be read."""

QUIET = (
    events.EffectIntended,
    events.EffectCompleted,
    events.DriverStarted,
    events.DecisionUsed,
    events.PlanEnded,
    events.PlanPaused,
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
    events.ItemMoved,
)
"""Facts that progress leaves to the log."""

GOOD = {"VerifyOk", "PatchApplied", "StepCompleted"}
GOOD |= {"PlanLanded", "CheckoutUpdated", "PullRequestOpened"}
BAD = {"VerifyFailed", "AttemptRejected", "StepFailed", "EffectFailed"}
BAD |= {"LandingConflicted", "LandingBroken", "PlanHeldBack"}

SIGNALS = {"completed": "✓", "approved": "✓", "revision": "↻", "escalated": "⚠"}
"""How a stage of a pipeline ends."""

ACTIVITY = {
    "Survey": "Planforge looks for the relevant files",
    "RunAgent": "the {about} is at work",
    "Inspect": "Planforge inspects the change",
    "PassGate": "a person has to decide",
    "RunCheck": "Planforge runs the tests in a fresh checkout",
    "RunFormerTests": "Planforge runs the tests as they were before the change",
    "MakeSample": "the sample project is created",
    "OpenWorktree": "a worktree is created",
    "Rebase": "the change is rebased onto what has landed since",
    "Land": "the change lands",
    "Merge": "{about} is merged",
    "AdvanceBranch": "the branch moves",
    "TakeActions": "{about} from the answer",
    "UpdateCheckout": "the checkout is updated",
}


def _nothing() -> None:
    pass


class Screen(Audience):
    """Shows facts and signs of life to the person at the terminal, and asks questions."""

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
        """Remember a sign of life until the live lines are drawn again."""
        self._under_way.hear(key, what)

    def told(self, what: str) -> None:
        """Show a message at once."""
        self._shown("!", "", _printable(what))

    async def asked(self, question: str) -> bool:
        """Put a question to the person, one at a time."""
        async with self._asking:
            self._pause()
            try:
                return await asyncio.to_thread(click.confirm, _printable(question), default=False, err=True)
            except click.Abort:  # the person has left
                return False

    def _shown(self, mark: str, place: str, text: str) -> None:
        """Continue in silence if nobody reads the output: the work matters more than the talk."""
        if not self._gone:
            try:
                self._show(mark, place, text)
            except OSError:
                hush(sys.stderr)
                self._gone = True


@contextmanager
def shown(heartbeat: float = HEARTBEAT, progress: float = PROGRESS) -> Iterator[Screen]:
    """Show what happens for as long as the block runs."""
    live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    # Elsewhere a line is written once, so it can have the latest sign of life.
    under_way = UnderWay(heartbeat=heartbeat, progress=progress if live else 0.0)
    with _live(under_way) if live else _plain(under_way, heartbeat) as screen:
        yield screen


def plain_line(mark: str, place: str, text: str) -> str:
    """One line of progress without colours."""
    return f"{mark} {place:<9} {text}" if place else f"{mark} {text}"


@contextmanager
def _plain(under_way: UnderWay, heartbeat: float) -> Iterator[Screen]:
    over = threading.Event()

    def beat() -> None:
        while heartbeat and not over.wait(min(heartbeat, 1.0)):
            for _, line in under_way.due():
                try:
                    click.echo(f"… {line}", err=True)
                except OSError:
                    return

    def show(mark: str, place: str, text: str) -> None:
        click.echo(plain_line(mark, place, text), err=True)

    heart = threading.Thread(target=beat, daemon=True)
    heart.start()
    try:
        yield Screen(under_way, show)
    finally:
        over.set()
        heart.join()


@contextmanager
def _live(under_way: UnderWay) -> Iterator[Screen]:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    spinners: dict[str, Spinner] = {}
    colours = {"✓": "green", "✗": "red", "·": "dim", "!": "yellow", "→": "blue", "↻": "yellow", "⚠": "red"}

    def drawn() -> RenderableType:
        found = under_way.lines()
        for key, line in found:
            spinners.setdefault(key, Spinner("dots")).update(text=line)
        return Group(*(spinners[key] for key, _ in found))

    with Live(get_renderable=drawn, console=console, refresh_per_second=8, transient=True) as live:

        def show(mark: str, place: str, text: str) -> None:
            live.start()  # a question may have stopped it
            name = f" {place:<9} " if place else " "
            live.console.print(Text.assemble((mark, colours[mark]), (name, "bold"), text))

        yield Screen(under_way, show, pause=live.stop)


class UnderWay:
    """The effects that were intended and have no outcome yet."""

    def __init__(
        self, *, heartbeat: float = 0.0, progress: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._heartbeat = heartbeat
        self._progress = progress
        self._clock = clock
        self._begun: dict[str, _Begun] = {}

    def take(self, recorded: Recorded) -> None:
        """Note that an effect began or ended."""
        match recorded.event:
            case events.EffectIntended(effect=effect, about=about) if effect in ACTIVITY:
                text = f"{_place(recorded):<9} {ACTIVITY[effect].format(about=about)}"
                self._begun[recorded.key] = _Begun(text, self._clock(), talks=effect == "RunAgent")
            case events.EffectCompleted() | events.EffectFailed():
                self._begun.pop(recorded.key, None)

    def hear(self, key: str, what: str) -> None:
        """Note a sign of life; this does not change how often the lines are drawn."""
        if (found := self._begun.get(key)) is not None:
            found.heard, found.heard_at = first_line(_printable(what), 60), self._clock()

    def lines(self) -> list[tuple[str, str]]:
        """The key of each effect, and a line with its name and how long it has run."""
        now = self._clock()
        begun = list(self._begun.items())  # a copy: another thread draws while this one works
        return [(key, self._line(found, now)) for key, found in begun]

    def due(self) -> list[tuple[str, str]]:
        """The same lines, only for effects that were not shown for one heartbeat."""
        now = self._clock()
        begun = [item for item in list(self._begun.items()) if now - item[1].told_at >= self._heartbeat]
        for _, found in begun:
            found.told_at = now
        return [(key, self._line(found, now)) for key, found in begun]

    def _line(self, found: _Begun, now: float) -> str:
        if found.heard != found.shown and (not found.shown or now - found.shown_at >= self._progress):
            found.shown, found.shown_at = found.heard, now
        said = f": {found.shown}" if found.shown else ""
        quiet = now - found.heard_at
        # A long silence of an agent is worth a note; a check is always silent.
        long = self._heartbeat and quiet >= max(self._heartbeat, 1.0)
        silent = f", silent for {quiet:.0f} s" if long else ""
        return f"{found.text} ({now - found.since:.0f} s{silent if found.talks else ''}){said}"


class _Begun:
    """An effect without an outcome."""

    def __init__(self, text: str, since: float, *, talks: bool) -> None:
        self.text = text
        self.since = since
        self.talks = talks
        self.heard = ""
        self.heard_at = since
        self.shown = ""
        """The sign of life that is drawn, and since when."""
        self.shown_at = since
        self.told_at = since


def _printable(text: str) -> str:
    """Text that an agent may have written, without control characters."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())


def _is_quiet(event: events.Event) -> bool:
    if isinstance(event, events.ContextComposed):
        return not event.simplified and not any(part.left_out for part in event.parts)
    if isinstance(event, events.DecisionAsked):
        return event.kind != "gate"
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
        case events.DecisionMade(kind="approval"):
            return "✓"
        case events.PlanForged(clean=clean, warning=warning):
            return "✓" if clean and not warning else "⚠"
    return "✓" if recorded.kind in GOOD else "✗" if recorded.kind in BAD else "·"
