"""
`planforge chat`: the command language at a prompt, or line by line from a pipe.

A line that begins with `!` is a command. Any other line goes to an agent, and the chat waits for the answer.
Forges and runs continue in the background. Replies go to standard output, one JSON object a line with
`--json`; progress goes to standard error. On a terminal Ctrl-C stops the running work, and a second Ctrl-C
leaves; Ctrl-D leaves. From a pipe, the chat waits for all work when the input ends.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from planforge.errors import Interrupted, InvalidInput, PlanforgeError
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.layout import visible
from planforge.interfaces.cli.options import actor_option
from planforge.interfaces.cli.output import JsonCommand, wants_json
from planforge.interfaces.cli.progress import HEARTBEAT, Screen, UnderWay, plain_line
from planforge.interfaces.cli.streams import encoded, hush, is_text
from planforge.interfaces.cli.typed import command

if TYPE_CHECKING:
    from planforge.actions import Hint
    from planforge.app.chat import Reply, Speaker
    from planforge.app.project import Project
    from planforge.app.runs.background import Work
    from planforge.kernel.events import Recorded
    from planforge.workflows.chat import Said

PROMPT = "> "
GLANCE = 0.2
"""Seconds between two looks for a signal to stop."""


@click.command(cls=JsonCommand)
@actor_option("Who decides")
def chat(actor: str | None) -> int:
    """Type commands with `!`, or talk to an agent about the project

    `!help` lists the commands. Forges and runs continue in the background; `!stop` interrupts them, and
    nothing is lost. An agent's answer may ask for a few actions. Decisions that need a person, such as an
    approval, stay with you. Ctrl-C stops the running work, a second Ctrl-C leaves; Ctrl-D leaves.

    From a pipe, each line is read as if it were typed. The exit code is the highest of all replies.

    \b
    Examples:
      planforge chat
      echo '!plan list' | planforge chat
      printf '!forge Add a cache\\n' | planforge chat --json
    """
    from planforge.app.chat import Speaker
    from planforge.app.decisions import deciders

    project = here()
    depth = 1 if deciders.is_agent(project) else 0
    return _Chat(project, Speaker(name=actor, depth=depth), as_json=wants_json()).held()


class _Chat:
    """One person, or one pipe, from the first line to the last."""

    def __init__(self, project: Project, speaker: Speaker, *, as_json: bool) -> None:
        self._project = project
        self._speaker = speaker
        self._as_json = as_json
        self._attended = sys.stdin.isatty() and sys.stdout.isatty()
        self._prompting = False
        self._waiting = False
        """Whether a signal may interrupt now: nothing is half done."""
        self._signalled = False
        self._printing = threading.RLock()
        self._said: list[Said] = []
        self._code = 0
        self._under_way = UnderWay()
        self._screen = Screen(self._under_way, self._show)
        self._screen.attended = False  # the person is typing something else

    def held(self) -> int:
        """Read line after line; for a pipe, returns the highest exit code of all replies."""
        before = {each: signal.signal(each, self._signal) for each in (signal.SIGINT, signal.SIGTERM)}
        over = threading.Event()
        heart = threading.Thread(target=self._beat, args=(over,), daemon=True)
        self._project.ledger.listeners.append(self._happened)
        try:
            heart.start()
            if self._attended:
                import readline  # noqa: F401  (`input` then has line editing and a history)

                self._talk(f"{self._project.root}: `!help` lists commands, Ctrl-D leaves")
            left = self._lines()
            return left or (0 if self._attended else self._code)
        finally:
            over.set()
            self._project.ledger.listeners.remove(self._happened)
            for each, handler in before.items():
                signal.signal(each, handler)

    # Signals

    def _signal(self, *_: object) -> None:
        self._signalled = True
        if self._waiting:
            self._waiting = False
            raise KeyboardInterrupt

    @contextmanager
    def _breakable(self) -> Iterator[None]:
        """Wait for something, or until a signal arrives."""
        self._waiting = True
        try:
            if self._signalled:
                raise KeyboardInterrupt
            yield
        finally:
            self._waiting = self._signalled = False

    # Lines

    def _lines(self) -> int:
        warned = False
        while True:
            try:
                line = self._read()
                if line is None:
                    self._leave()
                    return 0
                warned = False
                self._take(line)
            except KeyboardInterrupt:
                if warned:
                    self._stop_all()
                    return Interrupted.exit_code
                warned = True
                if not self._stop_all():
                    self._talk("nothing is running; Ctrl-C again leaves")

    def _read(self) -> str | None:
        if not self._attended:
            with self._breakable():
                line = sys.stdin.readline()
            return line if line else None
        self._prompting = True
        try:
            with self._breakable():
                return input(PROMPT)
        except EOFError:
            click.echo(err=True)
            return None
        finally:
            self._prompting = False

    def _take(self, line: str) -> None:
        from planforge.app import chat
        from planforge.rules.commands import Misused, NoCommand, parse

        if not is_text(line):
            self._answer(chat.refused(InvalidInput("the line is not UTF-8", "type it in UTF-8")))
            return
        found = parse(line.rstrip("\r\n"))
        match found:
            case Misused():
                self._answer(chat.misused(found))
            case NoCommand(unknown=word) if word:
                self._answer(chat.unknown(word))
            case NoCommand(text=text):
                if text.strip():
                    self._ask(text)
            case _:
                self._answer(chat.perform(self._project, found, self._speaker))

    def _ask(self, text: str) -> None:
        """Send a line to an agent, and wait for the answer."""
        from planforge.app import cancellation, chat, driver
        from planforge.app.chat import endings, talking
        from planforge.app.runs import background
        from planforge.workflows.chat import Said

        try:
            run = talking.begin(self._project, text, tuple(self._said), self._speaker)
            work = driver.drive_beside(self._project, run, audience=self._screen)
            try:
                with self._breakable():
                    while not work.wait(GLANCE):
                        pass
            except KeyboardInterrupt:
                background.stop([work])
                if work.ended is None:
                    cancellation.cancel(
                        self._project, run, reason="nobody waited for the answer", actor="the person"
                    )
                raise
        except PlanforgeError as error:
            self._answer(chat.refused(error))
            return
        reply = endings.reply(self._project, work)
        self._said.append(Said(text=text, answer=reply.text))
        self._answer(reply)

    def _answer(self, reply: Reply) -> None:
        """
        Show a reply, and continue its work in the background.

        The work starts before the reply is shown, so that a reader of the reply can already stop it; its own
        messages come after the reply.
        """
        from planforge.app import chat, driver

        with self._printing:
            refused = []
            for run in reply.runs:
                try:
                    driver.drive_beside(self._project, run, self._over, self._screen)
                except PlanforgeError as error:
                    refused.append(chat.refused(error))
            for each in (reply, *refused):
                self._shown(each)

    def _over(self, work: Work) -> None:
        from planforge.app.chat import endings

        if work.stopped and work.ended is None:
            return  # the stop was announced already
        self._answer(endings.reply(self._project, work))

    # Leaving

    def _stop_all(self) -> bool:
        """Stop the running work; True if there was any."""
        from planforge.app.chat import perform
        from planforge.app.runs import background
        from planforge.rules.commands import Command

        if not background.under_way(self._project):
            return False
        self._shown(perform(self._project, Command(name="stop"), self._speaker))
        return True

    def _leave(self) -> None:
        """From a pipe, wait for all work; if a person leaves, stop it."""
        from planforge.app.runs import background

        while not self._attended and (works := background.under_way(self._project)):
            with self._breakable():
                while not all(work.wait(GLANCE) for work in works):
                    pass
        self._stop_all()

    # Showing

    def _shown(self, reply: Reply) -> None:
        self._code = max(self._code, reply.exit_code)
        if self._as_json:
            self._print(encoded(reply, _typed).decode())
        else:
            self._print("\n".join(map(visible, self._text(reply).split("\n"))))

    def _text(self, reply: Reply) -> str:
        from planforge.app.chat.replies import shown
        from planforge.app.overview import Overview
        from planforge.interfaces.cli.status_page import page

        if isinstance(reply.data, Overview):
            return page(reply.data, typed=_typed)  # it has its own next commands
        return shown(reply, command)

    def _talk(self, text: str) -> None:
        self._print(visible(text), err=True)

    def _print(self, text: str, *, err: bool = False) -> None:
        """Print a text from any thread, above the line that is being typed."""
        with self._printing:
            try:
                if self._prompting:
                    import readline

                    click.echo("\r\x1b[K", nl=False)
                    click.echo(text, err=err)
                    click.echo(f"{PROMPT}{readline.get_line_buffer()}", nl=False)
                    sys.stdout.flush()
                else:
                    click.echo(text, err=err)
            except OSError:  # nobody reads it any more; the work continues
                hush(sys.stderr if err else sys.stdout)

    def _show(self, mark: str, place: str, text: str) -> None:
        self._talk(plain_line(mark, place, text))

    def _happened(self, recorded: Recorded) -> None:
        """Show the events of runs; the reply of a command shows the rest."""
        if threading.current_thread() is not threading.main_thread():
            self._screen(recorded)

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(HEARTBEAT):
            for _, line in self._under_way.lines():
                self._talk(f"… {line}")


def _typed(hint: Hint) -> str:
    """A hint as a command of this prompt, or of the shell if the prompt has none for it."""
    from planforge.app.chat.replies import line

    return line(hint, command)
