"""
Runs a project's own check on an exact tree and says what was seen.

The command runs in a fresh checkout that no agent has worked in. It passes only
if it ended with 0 and counted at least one test and no failure. A check that is
missing, could not start, ran out of time or ran no test cannot tell.
"""

from __future__ import annotations

import contextlib
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec

from planforge.errors import CannotPerform
from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.objects import Objects
from planforge.kernel.redaction import Redactor
from planforge.workspace import processes
from planforge.workspace.reports import Tally, read_junit, read_unittest


class Report(StrEnum):
    """How the counts are read."""

    UNITTEST = "unittest"
    JUNIT = "junit"


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that says whether a tree is good."""

    command: tuple[str, ...]
    report: Report
    junit: str = "junit.xml"
    """Where a JUnit report is left, relative to the checkout."""
    seconds: float = 600.0


class Judgement(NamedTuple):
    """An outcome and why."""

    outcome: Outcome
    reason: str


async def run(
    check: Check | None,
    checkout: Path,
    commit: str,
    tree: str,
    objects: Objects,
    redact: Redactor | None = None,
) -> Evidence:
    """Run `check` in `checkout`, which holds exactly `tree`. What it printed is kept without its secrets."""
    if check is None:
        return _cannot_tell("no check is configured", commit, tree, objects)
    if report := _report(check, checkout):
        with contextlib.suppress(OSError):
            report.unlink()  # one that came with the tree says nothing about this run
    try:
        ended = await processes.run(check.command, cwd=checkout, seconds=check.seconds)
    except CannotPerform as error:
        return _cannot_tell(error.message, commit, tree, objects, check.command)
    tally = _tally(check, checkout, ended.output)
    judgement = judge(ended.exit_code, tally, check.seconds)
    redact = redact or Redactor.of_environment()
    return Evidence(
        check="tests",
        outcome=judgement.outcome,
        reason=judgement.reason,
        command=check.command,
        exit_code=ended.exit_code,
        counts=tally.counts if tally else None,
        failing=tally.failing if tally else (),
        commit=commit,
        tree=tree,
        output=objects.put(redact.octets(ended.output)),
        seconds=round(ended.seconds, 3),
    )


def judge(exit_code: int | None, tally: Tally | None, seconds: float) -> Judgement:
    """What an exit code and a tally add up to."""
    if exit_code is None:
        return Judgement(Outcome.CANNOT_TELL, f"it did not end within {seconds:g} s")
    if exit_code < 0:
        return Judgement(Outcome.CANNOT_TELL, f"it was killed by signal {-exit_code}")
    if tally is None:
        return Judgement(Outcome.CANNOT_TELL, f"it ended with {exit_code} and left no count of tests")
    counts = tally.counts
    if counts.failed:
        return Judgement(Outcome.FAIL, f"{counts.failed} of {counts.total} tests failed")
    if counts.total - counts.skipped < 1:
        return Judgement(Outcome.CANNOT_TELL, "no test ran")
    if exit_code:
        return Judgement(Outcome.FAIL, f"it ended with {exit_code} although no test failed")
    return Judgement(Outcome.PASS, _passed(counts))


def _passed(counts: Counts) -> str:
    skipped = f", {counts.skipped} skipped" if counts.skipped else ""
    return f"{counts.passed} of {counts.total} tests passed{skipped}"


def _tally(check: Check, checkout: Path, output: bytes) -> Tally | None:
    if check.report is Report.UNITTEST:
        return read_unittest(output.decode("utf-8", "replace"))
    report = _report(check, checkout)
    return read_junit(report) if report else None


def _report(check: Check, checkout: Path) -> Path | None:
    """Where the JUnit report must be, if that is inside the checkout, whatever links are there by now."""
    if check.report is not Report.JUNIT:
        return None
    try:
        path = (checkout / check.junit).resolve()
    except (OSError, RuntimeError):  # links that go round in circles
        return None
    return path if path.is_relative_to(checkout.resolve()) else None


def _cannot_tell(
    reason: str, commit: str, tree: str, objects: Objects, command: tuple[str, ...] = ()
) -> Evidence:
    return Evidence(
        check="tests",
        outcome=Outcome.CANNOT_TELL,
        reason=reason,
        command=command,
        exit_code=None,
        counts=None,
        failing=(),
        commit=commit,
        tree=tree,
        output=objects.put(b""),
        seconds=0.0,
    )
