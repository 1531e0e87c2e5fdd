"""
What a change looks like to the person who has to decide about it.

The diff is git's own, taken in a way that no setting or attribute in the repository can
thin out: an agent that marks its files as binary, or has them converted, hides nothing.
Each line of a file has a mark before it there, so none of them passes for a line of git's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from planforge.workspace.git import Git

PLAIN = (
    *("-r", "-p", "--text", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"),
    *("--unified=5", "--inter-hunk-context=0", "--src-prefix=a/", "--dst-prefix=b/", "--no-relative"),
    *("--ignore-submodules=none", "--submodule=short"),
)
HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
HEADER = "diff --git "


class DiffLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a file, as it was, as it is, or both."""

    old: int | None
    new: int | None
    text: str


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What a change does to one file."""

    path: str
    change: str
    """added, deleted or changed"""
    added: int
    removed: int
    notes: tuple[str, ...] = ()
    """What there is to say that is no line: another mode, a binary file."""
    hunks: tuple[tuple[DiffLine, ...], ...] = ()


def made(git: Git, base: str, commit: str) -> bytes:
    """The diff between two commits, whole. What is no text is named and not shown."""
    output = git.run("diff-tree", *PLAIN, base, commit).stdout
    sections = re.split(rb"^(?=diff --git )", output, flags=re.MULTILINE)
    return b"".join(_without_binary(section) for section in sections)


def _without_binary(section: bytes) -> bytes:
    if b"\0" not in section:
        return section
    return section.partition(b"\n@@ ")[0] + b"\nBinary file, which is not shown\n"


def read(diff: bytes) -> tuple[FileDiff, ...]:
    """The diff, file by file and line by line."""
    lines = diff.decode("utf-8", "backslashreplace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    starts = [at for at, line in enumerate(lines) if line.startswith(HEADER)]
    return tuple(_file(lines[start:end]) for start, end in pairwise([*starts, len(lines)]))


def _file(lines: list[str]) -> FileDiff:
    first = next((at for at, line in enumerate(lines) if HUNK.match(line)), len(lines))
    header = lines[1:first]
    added = any(line.startswith("new file mode") for line in header)
    deleted = any(line.startswith("deleted file mode") for line in header)
    hunks = tuple(_hunks(lines, first))
    every = [line for hunk in hunks for line in hunk]
    said = (
        "old mode",
        "new mode",
        "new file mode 120000",
        "new file mode 160000",
        "Binary file",
        "new file mode 100755",
    )
    return FileDiff(
        path=_path(lines[0].removeprefix(HEADER)),
        change="added" if added else "deleted" if deleted else "changed",
        added=sum(line.old is None for line in every),
        removed=sum(line.new is None for line in every),
        notes=tuple(_note(line) for line in header if line.startswith(said)),
        hunks=hunks,
    )


def _note(line: str) -> str:
    return {"new file mode 120000": "a symbolic link", "new file mode 160000": "a submodule"}.get(line, line)


def _path(names: str) -> str:
    """The one path that is named twice: `a/x b/x`, or quoted."""
    quoted = names.startswith('"')
    length = (len(names) - (9 if quoted else 5)) // 2
    return names[3 : 3 + length] if quoted else names[2 : 2 + length]


def _hunks(lines: list[str], first: int) -> Iterator[tuple[DiffLine, ...]]:
    # Not by the counts that a hunk starts with: where a secret of several lines was taken out, they are off.
    starts = [at for at in range(first, len(lines)) if HUNK.match(lines[at])]
    for start, end in pairwise([*starts, len(lines)]):
        hunk = HUNK.match(lines[start])
        assert hunk is not None
        yield tuple(_numbered(lines[start + 1 : end], int(hunk[1]), int(hunk[2])))


def _numbered(lines: list[str], old: int, new: int) -> Iterator[DiffLine]:
    for line in lines:
        mark, text = line[:1], line[1:]
        if mark == "\\":
            continue
        yield DiffLine(old=None if mark == "+" else old, new=None if mark == "-" else new, text=text)
        old += mark != "+"
        new += mark != "-"
