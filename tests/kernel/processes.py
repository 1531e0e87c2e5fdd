"""Starts programs, those of `children.py` above all, and sees to it that none outlives its test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Timer
from typing import IO

PATIENCE = 60
"""Seconds until a child that hangs is killed, so that the test fails instead of hanging too."""


class Child:
    """A running program and the two ends of the conversation with it."""

    def __init__(self, process: subprocess.Popen[str], stdin: IO[str], stdout: IO[str]) -> None:
        self._process, self._stdin, self._stdout = process, stdin, stdout

    @property
    def pid(self) -> int:
        return self._process.pid

    def hear(self) -> str:
        """The next line it says."""
        return self._stdout.readline().rstrip("\n")

    def tell(self, words: str = "go") -> None:
        """Let it go on."""
        self._stdin.write(f"{words}\n")
        self._stdin.flush()

    def kill(self) -> list[str]:
        """`kill -9`; what it had said that nobody heard yet. A line cut short was never said."""
        self._process.kill()
        rest = self._stdout.read()
        self._process.wait()
        return rest.split("\n")[:-1]

    def end(self) -> list[str]:
        """Wait for a good end; what it said until then."""
        rest = self._stdout.read()
        assert self._process.wait() == 0, f"the child ended with {self._process.returncode}"
        return rest.splitlines()


def child(program: str, *arguments: object, wrapper: Sequence[str] = ()) -> AbstractContextManager[Child]:
    """Run a program of `children.py`."""
    return started(Path(__file__).with_name("children.py"), program, *arguments, wrapper=wrapper)


@contextmanager
def started(
    script: Path,
    program: str,
    *arguments: object,
    wrapper: Sequence[str] = (),
    env: dict[str, str] | None = None,
) -> Iterator[Child]:
    """Run a program of a file as a process, which does not outlive the test."""
    argv = [*wrapper, sys.executable, str(script), program, *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, env=env) as process:
        watchdog = Timer(PATIENCE, process.kill)
        watchdog.start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Child(process, process.stdin, process.stdout)
        finally:
            watchdog.cancel()
            process.kill()
