"""
Eight processes that append, lease and land at once, and what must hold of what they leave behind.

The full form runs for 20 s: `PLANFORGE_CROWD_SECONDS=20 pytest tests/kernel/test_crowd.py -s`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import pytest

from kernel.crowd import BRANCH, COVERS, FILES
from kernel.ledger_contract import tables
from planforge.kernel import events
from planforge.kernel.events import Recorded
from planforge.kernel.ledger import Ledger
from repositories import commit, empty_repository, git

pytestmark = pytest.mark.dear

MEMBERS = 8
SECONDS = float(os.environ.get("PLANFORGE_CROWD_SECONDS", "4"))


class Span(NamedTuple):
    """From when to when a lease was live, and for which files."""

    holder: str
    files: frozenset[str]
    start: str
    end: str


class Crowd(NamedTuple):
    """What a crowd has left."""

    place: Path
    notes: list[dict[str, Any]]
    counts: Counter[str]

    @property
    def landings(self) -> list[dict[str, Any]]:
        return [note for note in self.notes if "commit" in note]


@contextmanager
def member(number: int, place: Path) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "kernel.crowd", str(number), str(place), str(SECONDS)]
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path}
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        watchdog = Timer(SECONDS * 3 + 60, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    place = empty_repository(tmp_path_factory.mktemp("crowd"))
    commit(place, dict.fromkeys(sorted(FILES), "0"), "first")
    git(place, "update-ref", BRANCH, "HEAD")
    Ledger.create(place / ".planforge").close()
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        members = [stack.enter_context(member(number, place)) for number in range(MEMBERS)]
        for process in members:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in members:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in members:
            said, _ = process.communicate()
            assert process.returncode == 0
            counts.update(json.loads(said))
    texts = [(place / f"notes-{number}").read_text() for number in range(MEMBERS)]
    found = Crowd(place, [json.loads(line) for text in texts for line in text.splitlines()], counts)
    sys.stderr.write(f"\n{MEMBERS} processes, {SECONDS:g} s: {json.dumps(counts)}\n")
    return found


@pytest.fixture
def ledger(crowd: Crowd) -> Iterator[Ledger]:
    opened = Ledger.open(crowd.place / ".planforge")
    yield opened
    opened.close()


def test_the_crowd_did_everything_that_is_checked_here(crowd: Crowd) -> None:
    names = (
        "turns",
        "leases",
        "landings",
        "refused",
        "stale fences refused",
        "unleased paths refused",
        "waits",
    )
    assert {name for name in names if not crowd.counts[name]} == set()
    assert [note["wrong"] for note in crowd.notes if "wrong" in note] == []


def test_no_acknowledged_event_is_lost(crowd: Crowd, ledger: Ledger) -> None:
    recorded = {item.seq: item for item in ledger.since()}
    acknowledged = [(note["seq"], note["hash"]) for note in crowd.notes if "seq" in note]
    assert len(acknowledged) > MEMBERS
    assert [(seq, recorded[seq].hash) for seq, _ in acknowledged] == acknowledged
    fences = [note["fence"] for note in crowd.notes if "fence" in note and "commit" not in note]
    granted = {
        item.version for item in ledger.stream("leases") if item.kind in ("LeaseGranted", "LeasePassed")
    }
    assert set(fences) == granted
    assert len(fences) == len(granted)


def test_the_chain_verifies_and_the_tables_are_what_follows_from_the_events(ledger: Ledger) -> None:
    assert list(ledger.faults()) == []
    before = tables(ledger)
    ledger.rebuild()
    assert tables(ledger) == before


def spans(history: Iterator[Recorded]) -> dict[int, Span]:
    """Every lease there was, by its fence; fails if at any moment two live ones have a file in common."""
    live: dict[int, Span] = {}
    every: dict[int, Span] = {}

    def begin(fence: int, span: Span) -> None:
        clash = [other for other in live.values() if other.files & span.files]
        assert clash == [], f"{span} while {clash}"
        assert fence > max(every, default=0)
        live[fence] = every[fence] = span

    def end(fence: int, at: str) -> Span:
        every[fence] = live[fence]._replace(end=min(at, live[fence].end))
        return live.pop(fence)

    for recorded in history:
        match recorded.event:
            case events.LeaseGranted(holder=holder, paths=paths, fence=fence, until=until):
                files = frozenset[str]().union(*(COVERS[path] for path in paths))
                begin(fence, Span(holder, files, recorded.at, until))
            case events.LeaseRenewed(fence=fence, until=until):
                live[fence] = every[fence] = live[fence]._replace(end=until)
            case events.LeaseReleased(fence=fence):
                end(fence, recorded.at)
            case events.LeaseExpired(fence=fence, until=until):
                assert live[fence].end == until <= recorded.at, "it was taken for over before it was"
                end(fence, recorded.at)
            case events.LeasePassed(fence=fence, successor=successor, new_fence=new_fence, until=until):
                old = end(fence, recorded.at)
                begin(new_fence, Span(successor, old.files, recorded.at, until))
    return every


def test_no_two_live_leases_ever_had_a_file_in_common(ledger: Ledger) -> None:
    assert len(spans(ledger.stream("leases"))) > MEMBERS


def test_every_landed_commit_was_under_a_live_fence_that_covers_its_files(
    crowd: Crowd, ledger: Ledger
) -> None:
    known = spans(ledger.stream("leases"))
    for note in crowd.landings:
        span = known[note["fence"]]
        assert span.start <= note["at"] <= span.end, f"{note} under {span}"
        changed = git(crowd.place, "diff-tree", "-r", "--no-commit-id", "--name-only", note["commit"])
        assert changed.split() == note["files"]
        assert set(note["files"]) <= span.files
        told = git(crowd.place, "log", "-1", "--format=%s", note["commit"])
        assert told == f"fence {note['fence']} of {span.holder}"


def test_everything_that_landed_is_on_the_branch_and_no_count_is_lost(crowd: Crowd) -> None:
    on_branch = git(crowd.place, "rev-list", "--first-parent", BRANCH).split()[:-1]
    assert sorted(on_branch) == sorted(note["commit"] for note in crowd.landings)
    expected = Counter(file for note in crowd.landings for file in note["files"])
    found = {file: int(git(crowd.place, "show", f"{BRANCH}:{file}")) for file in FILES}
    assert found == {file: expected[file] for file in FILES}
