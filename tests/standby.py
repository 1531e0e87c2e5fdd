"""
Python processes that stand by with much already loaded, and fork themselves for each program that is run.

To load what asks agents takes more than a second of computing, and the tests run thousands of commands. A
forked command is a process like any other: its own directory, environment, streams, signals and exit code.
What it is not is started from nothing, so the tests of starting itself (what is loaded when, what the
environment shows from outside, what Python's own variables do) start a Python of their own.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import pkgutil
import random
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, NamedTuple, NoReturn


def _possible() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):  # another system, or an old Linux
        return False
    return True


POSSIBLE = _possible()
"""Whether processes can stand by here; where not, every program is started from nothing."""


class Forked(subprocess.Popen[str]):
    """A process that was forked for us: what `subprocess.Popen` is for one that was started."""

    def __init__(
        self, args: Sequence[str], connection: socket.socket, streams: Sequence[IO[str] | None]
    ) -> None:
        # Not that of `Popen`, which starts something.
        self.args = args
        self.stdin, self.stdout, self.stderr = streams
        self.pid = int(connection.recv(64))
        self.returncode = None
        self._connection = connection
        self._asking = threading.Lock()
        self._reading: list[Reading | None] = []

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; a signal that ended it is below nothing."""
        with self._asking:
            if self.returncode is None:
                self._connection.settimeout(timeout)
                try:
                    said = self._connection.recv(64)
                except (BlockingIOError, TimeoutError):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
                assert said, "the process that stood by is gone"
                self._connection.close()
                self.returncode = int(said)
            return int(self.returncode)

    def send_signal(self, sig: int) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        """What it says until nobody holds its streams any more, once it has heard what there is to hear."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._reading:
            self._reading = [Reading(stream) if stream else None for stream in (self.stdout, self.stderr)]
        if self.stdin and not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                self.stdin.write(input or "")
        for reading in filter(None, self._reading):
            reading.join(None if deadline is None else max(0, deadline - time.monotonic()))
            if reading.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(None if deadline is None else max(0, deadline - time.monotonic()))
        out, err = (reading.text if reading else "" for reading in self._reading)
        return out, err


class Reading(threading.Thread):
    """Reads a stream to its end."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self.text = ""
        self.start()

    def run(self) -> None:
        """Read."""
        with self._stream:
            self.text = self._stream.read()


class Standby:
    """A process that stands by with these modules loaded. It is started when it is first needed."""

    def __init__(self, *modules: str) -> None:
        self._modules = modules
        self._place = ""
        self._starting = threading.Lock()

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        streams: Sequence[int],
        passed: Mapping[str, int] | None = None,
        ours: Sequence[IO[str] | None] = (None, None, None),
    ) -> Forked:
        """
        Run a module as `python -m` does, with these streams.

        What else is passed has its number, as the process knows it, in the variable it is passed as.
        """
        with self._starting:
            if not self._place:
                self._begin()
        more = passed or {}
        wanted = Wanted(module, list(arguments), str(cwd), dict(env), list(more))
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(self._place)
        with tempfile.TemporaryFile() as request:
            request.write(json.dumps(wanted).encode())
            request.flush()
            socket.send_fds(connection, [b"run"], [*streams, request.fileno(), *more.values()])
            return Forked([module, *arguments], connection, ours)

    def open(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        told: bool = False,
        heard: bool = True,
    ) -> Forked:
        """The same with pipes to tell it something and to hear what it says, or without."""
        with contextlib.ExitStack() as theirs:
            nowhere = theirs.enter_context(Path(os.devnull).open("r+b", buffering=0)).fileno()
            streams = [nowhere] * 3
            ours: list[IO[str] | None] = [None] * 3
            for at in (*([0] if told else []), *([1, 2] if heard else [])):
                mine, streams[at] = pipe(at)
                theirs.callback(os.close, streams[at])
                ours[at] = os.fdopen(mine, "w" if at == 0 else "r")
            return self.start(module, arguments, cwd=cwd, env=env, streams=streams, ours=ours)

    def _begin(self) -> None:
        self._place = f"\0planforge-standby-{os.getpid()}-{id(self)}"
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind(self._place)
        listening.listen(64)
        # It ends when the pipe is closed, which is when we have ended, however that comes about.
        process = subprocess.Popen(
            [sys.executable, __file__, str(listening.fileno()), *self._modules],
            stdin=subprocess.PIPE,
            pass_fds=[listening.fileno()],
        )
        listening.close()
        atexit.register(process.communicate)


def pipe(at: int) -> tuple[int, int]:
    """A pipe for a standard stream: our end and the other one."""
    reading, writing = os.pipe()
    return (writing, reading) if at == 0 else (reading, writing)


def modules(package: str) -> list[str]:
    """The modules right in a package."""
    return [f"{package}.{found.name}" for found in pkgutil.iter_modules(import_module(package).__path__)]


class Wanted(NamedTuple):
    """What a process was forked for."""

    module: str
    arguments: list[str]
    cwd: str
    env: dict[str, str]
    passed: list[str]


def stand_by(listening: socket.socket) -> Wanted:
    """Fork for everyone who asks, and say how each ended. Returns only in what was forked."""
    running: dict[int, tuple[int, socket.socket]] = {}
    watching = select.poll()
    watching.register(sys.stdin.fileno(), select.POLLIN)
    watching.register(listening, select.POLLIN)
    while True:
        for ready, _ in watching.poll():
            if ready == sys.stdin.fileno():
                os._exit(0)
            elif ready == listening.fileno():
                connection, _ = listening.accept()
                _, streams, _, _ = socket.recv_fds(connection, 64, 16)
                if not streams:  # whoever it was is gone
                    connection.close()
                    continue
                pid = os.fork()
                if not pid:
                    for other in (listening, connection, *(waiting for _, waiting in running.values())):
                        other.close()
                    for ends in running:
                        os.close(ends)
                    return _became(streams)
                for stream in streams:
                    os.close(stream)
                connection.send(str(pid).encode())
                ends = os.pidfd_open(pid)
                running[ends] = (pid, connection)
                watching.register(ends, select.POLLIN)
            else:
                watching.unregister(ready)
                pid, connection = running.pop(ready)
                os.close(ready)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with contextlib.suppress(OSError), connection:  # nobody may be waiting any more
                    connection.send(str(code).encode())


def _became(streams: Sequence[int]) -> Wanted:
    with os.fdopen(streams[3], "rb") as request:
        request.seek(0)
        wanted = Wanted(*json.load(request))
    for at, stream in enumerate(streams[:3]):
        os.dup2(stream, at)
        os.close(stream)
    wanted.env.update(zip(wanted.passed, map(str, streams[4:]), strict=True))
    return wanted


def become(wanted: Wanted) -> NoReturn:
    """Be the program that was wanted."""
    os.chdir(wanted.cwd)
    os.environ.clear()
    os.environ.update(wanted.env)
    time.tzset()
    random.seed()
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.argv = ["", *wanted.arguments]
    sys.path[0] = wanted.cwd
    gc.enable()
    runpy.run_module(wanted.module, run_name="__main__", alter_sys=True)
    sys.exit()


def main(listening: str, *modules: str) -> NoReturn:
    """Load, stand by, and become what is wanted."""
    gc.disable()
    for module in modules:
        import_module(module)
    gc.freeze()
    interrupted = signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # is meant for what runs, not for who stands by
    wanted = stand_by(socket.socket(fileno=int(listening)))
    signal.signal(signal.SIGINT, interrupted)
    become(wanted)


if __name__ == "__main__":
    main(*sys.argv[1:])
