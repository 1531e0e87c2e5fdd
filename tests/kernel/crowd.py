"""
One of many processes that append, lease and land at once: `python -m kernel.crowd NUMBER DIRECTORY SECONDS`.

Each landing adds one to the counters in some files. The counters are read under the
lease, and what is landed is what was read plus one, whatever the branch holds by then:
two who hold one file at once, or one who lands after its lease is over, lose a count.
What was acknowledged, and what was landed, is written to a file of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from planforge.errors import LeaseHeld, StaleFence, Unleased, WouldDeadlock
from planforge.kernel import leases
from planforge.kernel.events import RunParked
from planforge.kernel.leases.rules import Lease
from planforge.kernel.ledger import Ledger
from repositories import ENVIRONMENT, git

BRANCH = "refs/heads/shared"
DIRECTORIES = tuple(f"p{number}" for number in range(8))
FILES = {f"{directory}/{name}.txt" for directory in DIRECTORIES for name in "abc"}

COVERS: dict[str, set[str]] = {
    **{file: {file} for file in FILES},
    **{directory: {file for file in FILES if file[:2] == directory} for directory in DIRECTORIES},
    **{f"{directory}/*.txt": {file for file in FILES if file[:2] == directory} for directory in DIRECTORIES},
    "*/a.txt": {file for file in FILES if file[3] == "a"},
    "**/b.txt": {file for file in FILES if file[3] == "b"},
    "p[01]/c.txt": {"p0/c.txt", "p1/c.txt"},
}
"""Everything that is leased, and the files it stands for."""

TTL = timedelta(seconds=3)
BRIEF = timedelta(milliseconds=30)
GRACE = timedelta(seconds=60)
PATIENCE = timedelta(milliseconds=200)


class Work:
    """A lease, and the counters as they were when it was got."""

    def __init__(self, lease: Lease, counters: dict[str, int]) -> None:
        self.lease, self.counters = lease, counters


class Member:
    """One process of the crowd."""

    def __init__(self, number: int, place: Path) -> None:
        self.name = f"p{number}"
        self.stream = f"run-{number:03}"
        self.repository = place
        self.random = Random(number)
        self.ledger = Ledger.open(place / ".planforge")
        self.notes = (place / f"notes-{number}").open("a")
        self.counts: Counter[str] = Counter()
        self.late: list[Work] = []
        self.version = 0

    def note(self, **fields: object) -> None:
        self.notes.write(json.dumps(fields) + "\n")
        self.notes.flush()

    def append(self, reason: str) -> None:
        event = RunParked(run=self.stream, reason=reason)
        for recorded in self.ledger.append(self.stream, [event] * 2, expected=self.version):
            self.version = recorded.version
            self.note(seq=recorded.seq, hash=recorded.hash)

    def act(self) -> None:
        """One turn: say something, get a lease, and mostly land something."""
        self.append("working")
        if self.late and self.random.random() < 0.5:
            self.land(self.late.pop(0))
        among = COVERS if self.random.random() < 0.25 else FILES
        paths = self.random.sample(sorted(among), self.random.randint(1, 3))
        chance = self.random.random()
        try:
            if chance < 0.15:
                self.come_late(paths)
            elif chance < 0.25:
                self.hang(paths)
            elif chance < 0.35:
                self.hand_over(paths)
            else:
                self.work(paths)
        except LeaseHeld:
            self.counts["refused"] += 1
        except WouldDeadlock:
            self.counts["deadlocks avoided"] += 1

    def get(self, holder: str, paths: list[str], ttl: timedelta = TTL) -> Work:
        if self.random.random() < 0.4:
            self.counts["waits"] += 1
            lease = leases.wait(self.ledger, holder, paths, ttl=ttl, patience=PATIENCE)
        else:
            lease = leases.claim(self.ledger, holder, paths, ttl=ttl)
        self.counts["leases"] += 1
        self.note(fence=lease.fence)
        covered = sorted(set().union(*(COVERS[path] for path in lease.paths)))
        files = self.random.sample(covered, min(2, len(covered)))
        return Work(lease, {file: int(git(self.repository, "show", f"{BRANCH}:{file}")) for file in files})

    def work(self, paths: list[str]) -> None:
        """What everybody should do."""
        work = self.get(self.name, paths)
        holder, fence = work.lease.holder, work.lease.fence
        with suppress(StaleFence):
            if self.random.random() < 0.3:
                leases.renew(self.ledger, holder, fence, TTL * 2)
            self.refused_beyond(work)
            self.land(work)
            leases.release(self.ledger, holder, fence)
            self.must_be_stale(work)

    def come_late(self, paths: list[str]) -> None:
        """A holder that is stopped until its lease may well be over, and then lands as if nothing were."""
        self.late.append(self.get(f"{self.name}/late-{self.version}", paths, BRIEF))

    def hang(self, paths: list[str]) -> None:
        """A holder whose lease a person takes away."""
        work = self.get(f"{self.name}/hung-{self.version}", paths)
        with suppress(StaleFence):
            leases.renew(self.ledger, work.lease.holder, work.lease.fence, GRACE)
            leases.force(self.ledger, work.lease.fence, self.name, "it hangs")
            self.late.append(work)

    def hand_over(self, paths: list[str]) -> None:
        """A holder that passes its lease on; the old fence is good for nothing."""
        work = self.get(self.name, paths)
        with suppress(StaleFence):
            successor = f"{self.name}/next-{self.version}"
            passed = leases.transfer(self.ledger, work.lease.fence, successor, TTL)
            self.note(fence=passed.fence)
            self.must_be_stale(work)
            self.land(Work(passed, work.counters))
            leases.release(self.ledger, successor, passed.fence)

    def must_be_stale(self, work: Work) -> None:
        try:
            leases.admit(self.ledger, work.lease.fence, work.lease.holder, work.counters, GRACE)
        except StaleFence:
            self.counts["stale fences refused"] += 1
        else:
            self.note(wrong=f"fence {work.lease.fence} is over and was let through")

    def refused_beyond(self, work: Work) -> None:
        """A change of one file more than is leased does not land."""
        beyond = sorted(FILES.difference(*(COVERS[path] for path in work.lease.paths)))[:1]
        if not beyond:
            return
        try:
            leases.admit(self.ledger, work.lease.fence, work.lease.holder, [*work.counters, *beyond], GRACE)
        except Unleased:
            self.counts["unleased paths refused"] += 1
        else:
            self.note(wrong=f"fence {work.lease.fence} does not cover {beyond[0]} and was let through")

    def land(self, work: Work) -> None:
        holder, fence = work.lease.holder, work.lease.fence
        try:
            leases.admit(self.ledger, fence, holder, work.counters, GRACE)
        except StaleFence:
            self.counts["stale fences refused"] += 1
            return
        while not (commit := self.move(work)):
            self.counts["branch had moved"] += 1
        self.counts["landings"] += 1
        landed_at = datetime.now(UTC).isoformat(timespec="microseconds")
        self.note(commit=commit, fence=fence, files=sorted(work.counters), at=landed_at)
        self.append(f"landed {commit}")

    def move(self, work: Work) -> str:
        """One try to land by compare-and-swap: the commit, or nothing if somebody else was quicker."""
        index = {"GIT_INDEX_FILE": str(self.repository / f".git/index-{self.name}")}
        tip = git(self.repository, "rev-parse", BRANCH)
        lines = [f"100644 {self.blob(count + 1)}\t{file}" for file, count in work.counters.items()]
        self.git("read-tree", tip, extra=index)
        self.git("update-index", "--index-info", extra=index, stdin="\n".join(lines) + "\n")
        tree = self.git("write-tree", extra=index)
        message = f"fence {work.lease.fence} of {work.lease.holder}"
        commit = git(self.repository, "commit-tree", tree, "-p", tip, "-m", message)
        moved = self.run("update-ref", BRANCH, commit, tip)
        return commit if moved.returncode == 0 else ""

    def blob(self, count: int) -> str:
        return git(self.repository, "hash-object", "-w", "--stdin", stdin=str(count).encode())

    def git(self, *arguments: str, **options: Any) -> str:
        process = self.run(*arguments, **options)
        assert process.returncode == 0, process.stderr
        return process.stdout.strip()

    def run(
        self, *arguments: str, extra: dict[str, str] | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        environment = ENVIRONMENT | (extra or {})
        return subprocess.run(
            ["git", *arguments],
            cwd=self.repository,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )


def main(number: str, directory: str, seconds: str) -> None:
    member = Member(int(number), Path(directory))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        member.act()
        member.counts["turns"] += 1
    for work in member.late:
        member.land(work)
    member.ledger.close()
    sys.stdout.write(json.dumps(member.counts) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
