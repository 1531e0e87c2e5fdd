"""
The matrix: every case, its two agents and each orchestrator, some of them at once, each in a process of its
own.

What is done is written down line by line, so that a run that was stopped goes on where it was. However it
ends, nothing that it started is left.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

import msgspec

from planforge.errors import InvalidInput
from planforge_guardrails import adapters, leftovers
from planforge_guardrails.shapes import Case, Seen, Twin, Workflow
from planforge_guardrails.worker import failed

CASE_SECONDS = 120.0
"""How long one run of one twin may take."""
BARE_SECONDS = 8.0
"""How long a script without any limit of its own is waited for."""
SPARE_SECONDS = 60.0
"""How much longer the process may take that makes the place and looks at it afterwards."""
PAUSE = 0.05
BEGINNING = b'{"case":'
"""How every line begins that is written down."""


Key = tuple[str, Workflow, Twin, str]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One twin of one case in one workflow with one orchestrator."""

    case: str
    workflow: Workflow
    twin: Twin
    orchestrator: str
    seconds: float = CASE_SECONDS
    settings: str = ""
    """Settings beside those of the case, to see what a gate is worth."""

    @property
    def key(self) -> Key:
        """What tells it from all others."""
        return self.case, self.workflow, self.twin, self.orchestrator


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is."""

    done: int
    total: int
    seen: Seen
    resumed: bool = False


Tell = Callable[[Progress], None]


def jobs_for(
    cases: Iterable[Case],
    orchestrators: Sequence[str],
    *,
    seconds: float = CASE_SECONDS,
    settings: str = "",
) -> tuple[Job, ...]:
    """Everything that is to be run: the orchestrators of a case one after the other.

    One that goes one way whatever the workflow has each case once.
    """
    one_way = {name for name in orchestrators if adapters.named(name).one_way}
    begun: set[tuple[str, str]] = set()
    jobs = []
    for case, name in product(cases, orchestrators):
        if name in one_way and (case.name, name) in begun:
            continue
        begun.add((case.name, name))
        for twin in Twin:
            limit = min(seconds, BARE_SECONDS) if name == adapters.BASELINE else seconds
            jobs.append(
                Job(
                    case=case.name,
                    workflow=case.workflow,
                    twin=twin,
                    orchestrator=name,
                    seconds=limit,
                    settings=settings,
                )
            )
    return tuple(jobs)


def run(jobs: tuple[Job, ...], *, at_once: int, tell: Tell, done: Path | None = None) -> list[Seen]:
    """Run them all; what `done` holds is not run again."""
    found = {_key(seen): seen for seen in (read_done(done) if done else ())}
    wanted = {job.key for job in jobs}
    seen = [each for key, each in found.items() if key in wanted]
    for number, each in enumerate(seen, 1):
        tell(Progress(done=number, total=len(jobs), seen=each, resumed=True))
    open_ = [job for job in jobs if job.key not in found]
    for each in _run(open_, at_once):
        seen.append(each)
        if done is not None:
            note_done(done, each)
        tell(Progress(done=len(seen), total=len(jobs), seen=each))
    return seen


def read_done(path: Path) -> Iterator[Seen]:
    """What an earlier run wrote down; a last line that was cut off is left out."""
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                yield msgspec.json.decode(line, type=Seen)
        except msgspec.MsgspecError as error:
            if number == len(lines) and line.startswith(BEGINNING):
                return
            raise InvalidInput(
                f"line {number} of `{path}` is not of this benchmark: {error}", hint="give another file"
            ) from error


def note_done(path: Path, seen: Seen) -> None:
    """Write one down, in the place of whatever was cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.read_bytes() if path.exists() else b""
    with path.open("ab") as file:
        file.truncate(written.rfind(b"\n") + 1)
        file.write(msgspec.json.encode(seen) + b"\n")


def _key(seen: Seen) -> Key:
    return seen.case, seen.workflow, seen.twin, seen.orchestrator


def _run(jobs: list[Job], at_once: int) -> Iterator[Seen]:
    waiting = list(reversed(jobs))
    under_way: list[_Worker] = []
    try:
        while waiting or under_way:
            while waiting and len(under_way) < at_once:
                under_way.append(_Worker(waiting.pop()))
            for worker in list(under_way):
                if worker.has_ended():
                    under_way.remove(worker)
                    yield worker.seen()
            time.sleep(PAUSE)
    finally:
        for worker in under_way:
            worker.end()


class _Worker:
    """A process that runs one job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.deadline = time.monotonic() + job.seconds + SPARE_SECONDS
        words = [*job.key, str(job.seconds), job.settings]
        self.output = tempfile.TemporaryFile()  # noqa: SIM115  (closed when it was read)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "planforge_guardrails.worker", *words],
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def has_ended(self) -> bool:
        """Whether there is something to see, be it that its time is up."""
        return self.process.poll() is not None or time.monotonic() > self.deadline

    def seen(self) -> Seen:
        """What it saw."""
        if self.process.poll() is None:
            self.end()
            return failed(*self.job.key, "its time was up")
        with self.output:
            self.output.seek(0)
            said = self.output.read()
        try:
            return msgspec.json.decode(said, type=Seen)
        except msgspec.MsgspecError:
            why = said.decode("utf-8", "replace").strip() or f"it ended with {self.process.returncode}"
            return failed(*self.job.key, why)

    def end(self) -> None:
        """Ask it to clear up after itself, and do it if it does not."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            leftovers.end_tree(self.process.pid)
            self.process.wait()
