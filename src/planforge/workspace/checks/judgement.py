"""
What an exit code, a report and some output add up to.

Pure. A check passes only if it ended with 0 and, where it runs tests, counted at least
one and no failure. It fails if the tree is to blame. Where something else may be to
blame (a tool that is missing, a crash of the runner, no memory, no network, a port that
is taken) it cannot tell; that is said only where it can be seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from planforge.kernel.evidence import TESTS, Counts, Evidence, Outcome, Part, combined
from planforge.kernel.wording import counted
from planforge.workspace.reports.findings import Findings
from planforge.workspace.reports.runners import pytest_lines
from planforge.workspace.reports.tally import Tally, plain

MISSING = 127
NOT_EXECUTABLE = 126
SHELL_SIGNAL = 128
FATAL = {4: "ILL", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV", 15: "TERM"}
"""Signals that end a program which did not expect them."""

TAIL_LINES = 40
"""How far from the end of the output the cause of a failure is looked for."""


class Judgement(NamedTuple):
    """An outcome and why."""

    outcome: Outcome
    reason: str


def judge(exit_code: int | None, tally: Tally | None, seconds: float) -> Judgement:
    """What an exit code and a tally add up to."""
    if (end := stopped(exit_code, seconds)) is not None:
        return end
    if tally is None:
        return _cannot_tell(f"it ended with {exit_code} and left no count of tests")
    counts = tally.counts
    if tally.doubt:
        return _cannot_tell(tally.doubt)
    if counts.failed:
        return Judgement(Outcome.FAIL, f"{counts.failed} of {counted(counts.total, 'test')} failed")
    if counts.total - counts.skipped < 1:
        return _cannot_tell("no test ran")
    if exit_code:
        return Judgement(Outcome.FAIL, f"it ended with {exit_code} although no test failed")
    return Judgement(Outcome.PASS, _passed(counts))


def judge_tests(exit_code: int | None, tally: Tally | None, seconds: float, output: str) -> Judgement:
    """The same, looking for something other than the tree that is to blame."""
    judgement = judge(exit_code, tally, seconds)
    if exit_code is None or exit_code < 0 or judgement.outcome is Outcome.PASS:
        return judgement
    if tally is not None and tally.counts.failed:
        blamed = _environment_of_all(tally) if judgement.outcome is Outcome.FAIL else ""
        return _cannot_tell(f"{judgement.reason}, all because {blamed}") if blamed else judgement
    # Where tests were counted, what the output says about the machine may be what one of them printed.
    counted = tally is not None and tally.counts.total > 0
    if exit_code and (obstacle := obstacle_in(exit_code, output, machine=not counted)):
        return _cannot_tell(obstacle)
    return judgement


def judge_command(
    exit_code: int | None, findings: Findings | None, seconds: float, output: str, *, reported: bool
) -> Judgement:
    """
    What a command that counts no tests says: a build, a linter, a type checker.

    `reported` says that it was asked to leave a report. One that fails and leaves none has not looked.
    """
    if (end := stopped(exit_code, seconds)) is not None:
        return end
    if exit_code and (obstacle := obstacle_in(exit_code, output)):
        return _cannot_tell(obstacle)
    if findings is not None and findings.doubt:
        return _cannot_tell(findings.doubt)
    total = findings.total if findings else None
    if reported and total is None:
        return _cannot_tell(f"it ended with {exit_code} and left no report")
    if exit_code and reported and not total:
        return _cannot_tell(f"it ended with {exit_code} although it found nothing")
    said = f"{total} finding{'s' if total != 1 else ''}" if total else ""
    if exit_code:
        return Judgement(Outcome.FAIL, said or f"it ended with {exit_code}")
    return Judgement(Outcome.PASS, said or "nothing found" if total == 0 else said or "it ended with 0")


def rejudged(evidence: Evidence) -> Outcome:
    """What the exit codes and counts of evidence say, whatever it says itself."""
    if evidence.parts:
        counts = [part.counts for part in evidence.parts if part.counts is not None]
        if evidence.counts != (sum(counts[1:], counts[0]) if counts else None):
            return Outcome.CANNOT_TELL
        return combined(_again(part) for part in evidence.parts)[0]
    tally = Tally(evidence.counts, evidence.failing) if evidence.counts else None
    return judge(evidence.exit_code, tally, 0.0).outcome


def _again(part: Part) -> Part:
    if part.outcome is Outcome.CANNOT_TELL:
        return part
    outcome = Outcome.FAIL if part.exit_code else Outcome.PASS
    if part.name == TESTS or part.counts is not None:
        tally = Tally(part.counts, part.failing) if part.counts else None
        outcome = judge(part.exit_code, tally, 0.0).outcome
    elif part.exit_code is None or part.exit_code < 0:
        outcome = Outcome.CANNOT_TELL
    return msgspec.structs.replace(part, outcome=outcome)


def stopped(exit_code: int | None, seconds: float) -> Judgement | None:
    """Why a command that did not end by itself cannot tell; None for one that did."""
    if exit_code is None:
        return _cannot_tell(f"it did not end within {seconds:g} s")
    if exit_code < 0:
        return _cannot_tell(f"it was killed by signal {-exit_code}")
    return None


def _cannot_tell(reason: str) -> Judgement:
    return Judgement(Outcome.CANNOT_TELL, reason)


def _passed(counts: Counts) -> str:
    skipped = f", {counts.skipped} skipped" if counts.skipped else ""
    return f"{counts.passed} of {counted(counts.total, 'test')} passed{skipped}"


# What else may be to blame

NOT_FOUND = re.compile(
    r"^(?:\S*sh(?:\[\d+\])?: )?(?:line )?(?:\d+: )?(?:(?:\S+/)?env: |exec: )?"
    r"[\u2018'`]?([\w./+@-]+)[\u2019']?: (?:command not found|not found|No such file or directory)$",
    re.MULTILINE,
)
NO_MODULE = re.compile(r"^(?:/[^:\n]*/|\S*)python[\d.]*: No module named '?([\w.]+)'?", re.MULTILINE)
NO_CARGO_COMMAND = re.compile(r"^error: no such (?:sub)?command: `([\w-]+)`", re.MULTILINE)
NO_MAKE = re.compile(r"^make(?:\[\d+\])?: (\S+): No such file or directory$", re.MULTILINE)
MADE = re.compile(
    r"^(?:g?make(?:\[\d+\])?: \*\*\*|error: Recipe) .*?(?:Error |exit code )(\d+)\b", re.MULTILINE
)
MADE_SIGNAL = re.compile(
    r"^g?make(?:\[\d+\])?: \*\*\* .*\] (Killed|Segmentation fault|Aborted|Bus error)", re.MULTILINE
)
CARGO_SIGNAL = re.compile(r"\(signal: (\d+), SIG\w+[^)]*\)$", re.MULTILINE)
INTERNAL = re.compile(r"^INTERNALERROR> ", re.MULTILINE)

ENVIRONMENT = {
    "there is no space left on the disk": re.compile(
        r"\bENOSPC\b|No space left on device|Disk quota exceeded"
    ),
    "a port is in use": re.compile(r"\bEADDRINUSE\b|[Aa]ddress already in use|port \d+ is already "),
    "there is no network": re.compile(
        r"\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b|[Tt]emporary failure in name resolution"
        r"|[Cc]ould not resolve host|Network is unreachable|Name or service not known|getaddrinfo failed"
    ),
    "it ran out of memory": re.compile(
        r"\bENOMEM\b|Cannot allocate memory|JavaScript heap out of memory|java\.lang\.OutOfMemoryError"
    ),
    "too many files are open": re.compile(r"\bEMFILE\b|Too many open files"),
}


def environment_in(text: str) -> str:
    """What the machine did not have, if the text says so."""
    return next((what for what, pattern in ENVIRONMENT.items() if pattern.search(text)), "")


def _environment_of_all(tally: Tally) -> str:
    """What the machine did not have, if that is why every single failing test failed."""
    if len(tally.causes) < tally.counts.failed:
        return ""
    blamed = [environment_in(cause) for cause in tally.causes]
    return " and ".join(dict.fromkeys(blamed)) if all(blamed) else ""


def obstacle_in(exit_code: int, output: str, *, machine: bool = True) -> str:
    """Why a command that counted no failure did not get to the tree's own faults, or nothing."""
    tail = "\n".join(plain(output).rstrip().splitlines()[-TAIL_LINES:])
    made = MADE.findall(tail)
    code = int(made[-1]) if made else exit_code
    return _missing(code, tail) or _crash(exit_code, code, tail) or (environment_in(tail) if machine else "")


def _missing(code: int, tail: str) -> str:
    for pattern in (NO_MODULE, NO_CARGO_COMMAND):
        if found := pattern.findall(tail):
            return f"`{found[-1]}` is not installed"
    if code == MISSING:
        found = NO_MAKE.findall(tail) or NOT_FOUND.findall(tail)
        return f"`{found[-1]}` was not found" if found else "a command was not found"
    return "a command could not be executed" if code == NOT_EXECUTABLE else ""


def _crash(exit_code: int, code: int, tail: str) -> str:
    if memory := ENVIRONMENT["it ran out of memory"].search(tail):
        return f"it ran out of memory ({memory[0]})"
    signals = [int(number) for number in CARGO_SIGNAL.findall(tail)]
    signals += [code - SHELL_SIGNAL] if code - SHELL_SIGNAL in FATAL else []
    if signals:
        return f"the runner was killed by signal {signals[-1]}"
    if killed := MADE_SIGNAL.findall(tail):
        return f"the runner crashed ({killed[-1]})"
    if INTERNAL.search(tail):
        return f"the runner broke (exit code {exit_code})"
    return ""


def contradiction(tally: Tally, output: str) -> str:
    """How pytest's report contradicts its last line; empty if it does not."""
    lines = pytest_lines(output)
    if len(lines) != 1:
        return ""
    (line,) = lines
    bad, errors = line["failed"], line["error"] + line["errors"]
    counts = tally.counts
    # A test that passes and then breaks when it is torn down is two in the line and one in the report, and
    # a subtest that fails is one in the line alone.
    passed = line["passed"] + line["xpassed"]
    agree = bool(counts.failed) == bool(bad + errors) and counts.failed <= bad + errors
    agree = agree and passed - errors <= counts.passed <= passed
    said = f"{line['passed']} passed and {bad + errors} failed"
    return (
        ""
        if agree
        else f"its report counts {counts.passed} passed and {counts.failed} failed, it said {said}"
    )


def names_joined(names: Sequence[str]) -> bytes:
    """Names of tests as they are kept: a line each."""
    return "\n".join(" ".join(name.split("\n")) for name in names).encode("utf-8", "replace")
