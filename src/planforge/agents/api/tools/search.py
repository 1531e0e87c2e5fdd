"""
Directories listed and files searched, as a program of its own.

A regular expression can take for ever and cannot be interrupted from within, so `toolset` starts this as it
starts commands: `python -m planforge.agents.api.tools.search list|search ROOT JSON`, with a time limit.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from planforge.agents.api.tools import Refused
from planforge.agents.api.tools.paths import GIT, inside, regular

LIST_LIMIT = 1000
FOUND_LIMIT = 200
LINE_LIMIT = 300
"""How many entries, how many lines, and how much of a line one answer has."""

FILE_LIMIT = 5 * 1024 * 1024
"""Larger files are not searched."""


def listed(root: Path, path: str, pattern: str, depth: int) -> str:
    """What lies beneath a directory, directories with a slash."""
    top = inside(root, path)
    if not top.is_dir():
        raise Refused(f"`{path}` is not a directory")
    found: list[str] = []
    for entry in _beneath(top, depth):
        name = os.path.relpath(entry.path, top)
        if not _matches(name, pattern):
            continue
        if len(found) == LIST_LIMIT:
            return "\n".join([*found, f"(more than {LIST_LIMIT}; name a directory, a pattern or a depth)"])
        found.append(f"{name}/" if entry.is_dir(follow_symlinks=False) else name)
    return "\n".join(found) or "(nothing)"


def searched(root: Path, pattern: str, path: str, files: str, regex: bool) -> str:
    """The lines that hold `pattern`, as `path:line:text`."""
    matches = _matcher(pattern, regex)
    start = inside(root, path)
    base = Path(os.path.realpath(root))
    found: list[str] = []
    for file in _files(start, files):
        shown = os.path.relpath(file, base)
        for number, line in enumerate(_lines(file, shown), start=1):
            if not matches(line):
                continue
            if len(found) == FOUND_LIMIT:
                return "\n".join([*found, f"(more than {FOUND_LIMIT} lines; search for something rarer)"])
            found.append(f"{shown}:{number}:{line.strip()[:LINE_LIMIT]}")
    return "\n".join(found) or "(nothing found)"


def _matcher(pattern: str, regex: bool) -> Callable[[str], object]:
    if not pattern:
        raise Refused("there is nothing to search for")
    if not regex:
        return lambda line: pattern in line
    try:
        return re.compile(pattern).search
    except re.error as error:
        raise Refused(f"not a regular expression: {error}") from error


def _files(start: Path, pattern: str) -> Iterator[Path]:
    if start.is_file():
        yield start
        return
    for entry in _beneath(start, depth=100):
        if entry.is_file(follow_symlinks=False) and _matches(os.path.relpath(entry.path, start), pattern):
            yield Path(entry.path)


def _beneath(directory: Path, depth: int) -> Iterator[os.DirEntry[str]]:
    """Everything beneath a directory, in order, not through links and nothing of git."""
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name == GIT:
            continue
        yield entry
        if depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _beneath(Path(entry.path), depth - 1)


def _matches(name: str, pattern: str) -> bool:
    return not pattern or fnmatch(name, pattern) or fnmatch(Path(name).name, pattern)


def _lines(file: Path, shown: str) -> list[str]:
    try:
        with os.fdopen(regular(file, shown), "rb") as stream:
            data = stream.read(FILE_LIMIT + 1)
    except (OSError, Refused):
        return []
    if len(data) > FILE_LIMIT or b"\0" in data[:8192]:
        return []
    return data.decode(errors="replace").splitlines()


def main(what: str, root: str, arguments: str) -> int:
    """Answer on standard output; a refusal goes to standard error with exit code 1."""
    said = json.loads(arguments)
    try:
        answer = listed(Path(root), **said) if what == "list" else searched(Path(root), **said)
    except Refused as refusal:
        os.write(2, str(refusal).encode(errors="replace"))
        return 1
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    sys.stdout.write(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
