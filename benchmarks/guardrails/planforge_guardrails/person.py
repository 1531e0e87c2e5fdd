"""
A person at a terminal: gives one command after the other, as long as each ends with 0, and reads nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from planforge_guardrails.shapes import Call

OUTPUT_BYTES = 200_000
"""So much of what a command prints is kept, its end."""


class Stopped(Exception):
    """A command did not end with 0, so the person gives no further one."""


class Person:
    """Gives commands in a place, within a time, and remembers how they ended."""

    def __init__(self, environment: Mapping[str, str], deadline: float) -> None:
        self.environment = dict(environment)
        self.deadline = deadline
        """On the monotonic clock."""
        self.calls: list[Call] = []

    def give(self, argv: Sequence[str], *, cwd: Path, stdin: str = "") -> Call:
        """Give a command; raises `Stopped` if it does not end with 0."""
        call = self.attempt(argv, cwd=cwd, stdin=stdin)
        if call.code != 0:
            raise Stopped
        return call

    def attempt(self, argv: Sequence[str], *, cwd: Path, stdin: str = "") -> Call:
        """Give a command and go on whatever it says."""
        with self._given(argv, cwd, stdin):
            pass
        return self.calls[-1]

    def kill(self, argv: Sequence[str], *, cwd: Path, once: Callable[[], bool]) -> None:
        """Start a command and kill it, and nothing that it has started, once something holds."""
        with self._given(argv, cwd) as process:
            self._until(once, process)
            process.kill()

    def suspend(
        self, argv: Sequence[str], *, cwd: Path, once: Callable[[], bool], meanwhile: Callable[[], bool]
    ) -> None:
        """Start a command, have it stand still once something holds, and do something else meanwhile.

        If that does not succeed, the command may stand in the way: it goes on for a moment, and it is tried
        again.
        """
        with self._given(argv, cwd) as process:
            self._until(once, process)
            done = False
            while not done and process.poll() is None and time.monotonic() < self.deadline:
                process.send_signal(signal.SIGSTOP)
                done = meanwhile()
                process.send_signal(signal.SIGCONT)
                time.sleep(0 if done else 0.05)

    @contextlib.contextmanager
    def _given(self, argv: Sequence[str], cwd: Path, stdin: str = "") -> Iterator[subprocess.Popen[bytes]]:
        """A command that is under way; afterwards it is waited for, and remembered."""
        began = time.monotonic()
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
            given.write(stdin.encode())
            given.seek(0)
            process = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=self.environment,
                stdin=given,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            yield process
            code = self._wait(process)
            output.seek(max(0, output.seek(0, os.SEEK_END) - OUTPUT_BYTES))
            said = output.read().decode("utf-8", "replace")
        took = round(time.monotonic() - began, 2)
        self.calls.append(Call(argv=tuple(argv), code=code, seconds=took, output=said))

    def _until(self, once: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
        while not once() and process.poll() is None and time.monotonic() < self.deadline:
            time.sleep(0.02)

    def _wait(self, process: subprocess.Popen[bytes]) -> int | None:
        try:
            return process.wait(max(0.1, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None
