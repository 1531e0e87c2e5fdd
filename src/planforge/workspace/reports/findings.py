"""How much linters, type checkers and compilers found: SARIF, eslint's JSON, and their closing lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import msgspec

from planforge.rules import sarif
from planforge.workspace.reports.tally import content_of, decoded, plain


class Findings(NamedTuple):
    """How many findings, and how many warnings of a compiler; `None` is unknown."""

    total: int | None = None
    warnings: int | None = None
    doubt: str = ""
    """Why the count cannot be believed; empty if it can."""


def read_sarif(path: Path) -> Findings | None:
    """Read a SARIF file. What is suppressed, absent against the baseline or passed is no finding."""
    content = content_of(path)
    try:
        runs = sarif.read(content or b"").runs
    except sarif.InvalidSarif:
        return None
    if doubt := next(filter(None, (run.fault for run in runs)), ""):
        return Findings(doubt=doubt)
    return Findings(sum(result.is_open for run in runs for result in run.results or ()))


class _EslintFile(msgspec.Struct):
    errors: int = msgspec.field(name="errorCount")
    warnings: int = msgspec.field(name="warningCount")


def read_eslint(path: Path) -> Findings | None:
    """Read what eslint writes with `--format json`."""
    files = decoded(content_of(path), list[_EslintFile])
    return None if files is None else Findings(sum(file.errors + file.warnings for file in files))


CLOSING = (
    re.compile(r"^Found (\d{1,9}) errors? in (?:\d+ files?|the same file)\b", re.MULTILINE),  # mypy, tsc
    re.compile(r"^Found (\d{1,9}) errors?(?:\.| \([^)]*\)\.)$", re.MULTILINE),  # ruff, biome
    re.compile(r"^✖ (\d{1,9}) problems? \(", re.MULTILINE),  # eslint
    re.compile(r"^(\d{1,9}) errors?, \d+ warnings?, \d+ informations?", re.MULTILINE),  # pyright
    re.compile(r"^\d+ files? inspected, (\d{1,9}|no) offenses? detected", re.MULTILINE),  # rubocop
    re.compile(r"^(\d{1,9}) issues?[.:]$", re.MULTILINE),  # golangci-lint
    re.compile(r"^Found (\d{1,9}) diagnostics?$", re.MULTILINE),  # ty
)
CLEAN = re.compile(
    r"^(?:All checks passed!|Success: no issues found in .*|Your code has been rated at 10\.00/10.*)$",
    re.MULTILINE,
)
PLACED = re.compile(
    r"^(?!warning: |\[)[^\s:(][^\s:]*(?::\d+){1,2}: ?\S|^\S[^\n]*\(\d+,\d+\): error TS\d+: ", re.MULTILINE
)
"""A line that names a file and a place in it, as flake8, `go vet`, `tsc` and many others print."""

GENERATED = re.compile(
    r"^warning: .+ generated (\d{1,9}) warnings?\b(?: \((\d{1,9}) duplicates?\))?", re.MULTILINE
)  # cargo, rustc
COMPILER = re.compile(r"^[^\s:][^\n:]*:\d+(?::\d+)?: warning: ", re.MULTILINE)  # gcc, clang, javac
FINISHED = re.compile(r"^ +Finished ", re.MULTILINE)
TALK = re.compile(r"^(?:>.*|make(?:\[\d+\])?: .*|\$ .*|\s*)$", re.MULTILINE)


def read_findings(output: str, exit_code: int) -> Findings:
    """What the closing lines of linters add up to; where there are none, the lines that name a place."""
    text = plain(output)
    numbers = [number for pattern in CLOSING for number in pattern.findall(text)]
    warned = read_warnings(text)
    if numbers:
        return Findings(sum(0 if number == "no" else int(number) for number in numbers), warned)
    if warned is not None and not CLEAN.search(text):
        return Findings(warned, warned)
    if places := len(PLACED.findall(text)):
        return Findings(places, warned)
    silent = not TALK.sub("", text).strip()
    return Findings(0 if exit_code == 0 and (silent or CLEAN.search(text)) else None, warned)


def read_warnings(output: str) -> int | None:
    """How often a compiler warned, if it is one that says."""
    text = plain(output)
    counts = [int(number) - int(again or 0) for number, again in GENERATED.findall(text)]
    lines = len(COMPILER.findall(text))
    if counts or lines:
        return sum(counts) + lines
    return 0 if FINISHED.search(text) else None
