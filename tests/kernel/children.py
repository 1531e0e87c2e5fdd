"""
Programs that tests run as processes of their own: `python children.py <program> <directory> ...`.

They say what they did, line by line, and wait on their standard input where a test
must decide what comes next.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

from planforge.errors import Conflict, LedgerUnwritable
from planforge.kernel.driver import Call, Driver
from planforge.kernel.effects import Effect, Together
from planforge.kernel.events import RunParked
from planforge.kernel.ledger import Ledger
from planforge.kernel.locks import held
from planforge.kernel.objects import Objects


def say(words: object) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def wait() -> None:
    sys.stdin.readline()


def write_for_ever(directory: str) -> NoReturn:
    """Append until killed; a sequence number is said only when its event was acknowledged."""
    ledger = Ledger.create(Path(directory))
    version = ledger.version("run-001")
    while True:
        reasons = [RunParked(run="run-001", reason="x" * (version % 700)) for _ in range(1 + version % 3)]
        for recorded in ledger.append("run-001", reasons, expected=version):
            version = recorded.version
            say(recorded.seq)


def create(directory: str) -> None:
    """Create a ledger at the same time as others do, and append to it."""
    say("ready")
    wait()
    ledger = Ledger.create(Path(directory))
    while True:
        with suppress(Conflict):
            event = RunParked(run="run-001", reason="")
            return say(ledger.append("all", [event], expected=ledger.version("all"))[0].version)


def compete(directory: str, name: str, wins: str) -> None:
    """Win a number of versions of one stream against another process."""
    ledger = Ledger.create(Path(directory))
    say("ready")
    wait()
    won = 0
    while won < int(wins):
        try:
            ledger.append("race", [RunParked(run=name, reason="")], expected=ledger.version("race"))
        except Conflict:
            continue
        won += 1
    say("done")


def keep_busy(directory: str) -> None:
    """Be in the middle of writing to a ledger until killed."""
    with closing(sqlite3.connect(Path(directory) / "ledger.db", isolation_level=None)) as client:
        client.execute("BEGIN IMMEDIATE")
        say("busy")
        wait()


def fill(directory: str, limit: str) -> None:
    """Append until the disk is full, look at what is there, make room, go on."""
    ledger = Ledger.create(Path(directory))
    ballast = Path(directory) / "ballast"
    ballast.write_bytes(b"-" * 300_000)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), unlimited[1]))
    acknowledged = 0
    try:
        while True:
            event = RunParked(run="run-001", reason="x" * 5000)
            acknowledged = ledger.append("run-001", [event], expected=acknowledged)[-1].version
    except LedgerUnwritable as error:
        say(f"unwritable: {error.message}")
    try:
        ledger.objects.put(b"-" * 2_000_000)
    except LedgerUnwritable as error:
        say(f"unwritable: {error.message}")
    say(f"acknowledged {acknowledged}, found {len(list(ledger.since()))}, head {ledger.head()}")
    say(f"faults {list(ledger.faults())}")
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    ballast.unlink()
    ledger.append("run-001", [RunParked(run="run-001", reason="room")], expected=acknowledged)
    say(f"then {ledger.head() - acknowledged}, faults {list(ledger.faults())}")


class Perform(Effect[str], frozen=True, kw_only=True):
    """Write a line to a file."""

    name: str


async def six() -> list[str]:
    """Six effects, two of them at once."""
    first = [await Perform(name="one"), await Perform(name="two")]
    both = await Together({"left": _perform("three"), "right": _perform("four")})
    return [*first, *both.values(), await Perform(name="five"), await Perform(name="six")]


async def _perform(name: str) -> str:
    return await Perform(name=name)


def drive_six(directory: str, stop_at: str) -> None:
    """Drive `six`. At `stop_at`, such as `before two`, say so and wait to be killed."""

    async def perform(effect: Perform, call: Call) -> str:
        stop(f"before {effect.name}")
        with (Path(directory) / "lines").open("a") as lines:
            lines.write(f"{effect.name}{' again' if call.resumed else ''}\n")
        stop(f"after {effect.name}")
        return effect.name.upper()

    def stop(point: str) -> None:
        if point == stop_at:
            say(point)
            wait()

    performers: dict[Any, Any] = {Perform: perform}
    driver = Driver(Ledger.create(Path(directory)), "run-001", performers)
    say(" ".join(asyncio.run(driver.drive(six()))))


def hold(path: str) -> None:
    """Hold a lock until killed."""
    with held(Path(path), "the test"):
        say("held")
        wait()


def put_for_ever(directory: str) -> NoReturn:
    """Put objects until killed; an address is said only when its object was acknowledged."""
    objects = Objects(Path(directory))
    for number in count():
        say(objects.put(f"{number} {os.getpid()}".encode() * 20_000))
    raise AssertionError("there is always another number")


PROGRAMS: dict[str, Callable[..., None]] = {
    program.__name__: program
    for program in (write_for_ever, create, compete, keep_busy, fill, drive_six, hold, put_for_ever)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
