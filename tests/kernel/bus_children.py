"""Subscribers and writers that the tests of the bus run as processes of their own."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from planforge.kernel.bus import subscribe
from planforge.kernel.events import RunEnded, RunParked
from planforge.kernel.ledger import Ledger, Write

if TYPE_CHECKING:
    from kernel.processes import Child


def say(words: object) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def ask(directory: str, name: str, questions: str) -> None:
    """Append a number of questions, one by one, to a stream of its own."""
    ledger = Ledger.open(Path(directory))
    for number in range(int(questions)):
        ledger.append(name, [RunParked(run=name, reason=f"{name} {number}")], expected=None)
    say("asked")


def answer(directory: str) -> None:
    """Answer every question with its sequence number, until killed."""
    ledger = Ledger.open(Path(directory))
    with subscribe(ledger, kinds=["RunParked"], name="answerer") as questions:
        for question in questions:
            reply = RunEnded(run=question.stream, succeeded=True, reason=str(question.seq), exit_code=0)
            questions.answer(question, [Write("answers", None, [reply])])
            say(question.seq)


def hear(directory: str, after: str) -> None:
    """Say the number of every event and when it was heard of, until killed."""
    with subscribe(Ledger.open(Path(directory)), after=int(after)) as events:
        events.next(0)  # from here on writers call
        say("ready")
        for recorded in events:
            say(f"{recorded.seq} {time.monotonic()}")


@contextmanager
def runtime_directory() -> Iterator[Path]:
    """A directory for sockets, with a short path, since a socket cannot have a long one."""
    place, before = Path(tempfile.mkdtemp(prefix="pf")), os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(place)
    try:
        yield place
    finally:
        os.environ.pop("XDG_RUNTIME_DIR")
        os.environ.update({} if before is None else {"XDG_RUNTIME_DIR": before})
        shutil.rmtree(place)


PROGRAMS: dict[str, Callable[..., None]] = {program.__name__: program for program in (ask, answer, hear)}


def running(program: str, *arguments: object) -> AbstractContextManager[Child]:
    """One of these programs as a process, which does not outlive the test."""
    from kernel.processes import started

    return started(Path(__file__), program, *arguments)


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
