"""A process that appends as fast as it can until it is killed, and can be started again at once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Lock, Thread

from planforge.kernel.events import RunParked
from planforge.kernel.ledger import Ledger, Write

THREADS = 3


def append_for_ever(directory: Path, said: Connection) -> None:
    """Say the sequence number of every event, once its append has returned and not before."""
    ledger = Ledger.open(directory)
    speaking = Lock()

    def append(name: str) -> None:
        for number in range(1_000_000):
            reason = "x" * (number * 37 % 900)
            writes = [Write(name, None, [RunParked(run="run-001", reason=reason)] * (1 + number % 3))]
            if number % 5 == 0:
                writes.append(Write("shared", None, [RunParked(run="run-001", reason=name)]))
            for recorded in ledger.append_all(writes, {name: number}):
                with speaking:
                    said.send_bytes(recorded.seq.to_bytes(8, "big"))

    threads = [Thread(target=append, args=(f"writer-{number}",)) for number in range(THREADS)]
    for thread in threads:
        thread.start()


@contextmanager
def writing(directory: Path) -> Iterator[tuple[BaseProcess, Connection]]:
    """A writer and the end of the pipe at which it is heard."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "planforge.kernel.ledger.writer"])
    heard, said = context.Pipe(duplex=False)
    process = context.Process(target=append_for_ever, args=(directory, said))
    process.start()
    said.close()
    try:
        yield process, heard
    finally:
        process.kill()
        process.join()
        process.close()
        heard.close()


def acknowledged(heard: Connection) -> list[int]:
    """All that a writer said before it was killed."""
    seqs = []
    try:
        while True:
            seqs.append(int.from_bytes(heard.recv_bytes(), "big"))
    except (EOFError, OSError):  # a number that was cut short was never said
        return seqs
