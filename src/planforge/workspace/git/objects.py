"""What git says of its objects, asked of many at once: contents, sizes, differences, filters."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from planforge.workspace.git import Git

GITLINK, LINK, TREE, NOTHING = "160000", "120000", "040000", "000000"
"""The modes of a submodule, of a link, of a directory, and of what is not there."""

NAME = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
"""The full name of an object."""

PLAIN = ("--no-renames", "--no-ext-diff", "--no-textconv")


class Side(NamedTuple):
    """What one of two commits has at a path."""

    mode: str
    blob: str

    @property
    def is_file(self) -> bool:
        """Whether it is a file or a link, which have a content."""
        return self.mode not in (NOTHING, GITLINK)


class Difference(NamedTuple):
    """A path that differs between two commits."""

    path: bytes
    old: Side
    new: Side


class Entry(NamedTuple):
    """One line of a commit's listing."""

    mode: str
    blob: str
    """The name of the object."""
    size: int
    """More than any limit if it was not asked for, or there is none, as for a submodule."""
    path: bytes

    @property
    def link(self) -> bool:
        """Whether its content is the path of something else."""
        return self.mode == LINK


def text(path: bytes) -> str:
    """A path of git's as text; what is not UTF-8 is escaped."""
    return path.decode("utf-8", "backslashreplace")


def shown(path: bytes | str) -> str:
    """A path in a sentence: on one line, whatever it is made of."""
    characters = text(os.fsencode(path))
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in characters
    )


def listed(paths: Iterable[bytes], most: int) -> str:
    """The first few of many paths, in words."""
    names = [f"`{shown(path)}`" for path in paths]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def entries(git: Git, revision: str, *options: str) -> Iterator[Entry]:
    """Everything that a commit holds; `-l` has sizes told, `-t` directories."""
    output = git.run("ls-tree", "-r", "-z", "--full-tree", *options, revision).stdout
    for record in output.split(b"\0")[:-1]:
        about, _, path = record.partition(b"\t")
        mode, _, name, *size = about.decode().split()
        yield Entry(mode, name, int(size[0]) if size and size[0] != "-" else 1 << 62, path)


def differences(git: Git, old: str, new: str) -> list[Difference]:
    """Every path that differs between two commits, in git's order."""
    output = git.run("diff-tree", "-r", "-z", "--raw", "--no-abbrev", *PLAIN, old, new).stdout
    parts = output.split(b"\0")
    found = []
    for about, path in zip(parts[::2], parts[1::2], strict=False):
        modes = about.decode().removeprefix(":").split()
        found.append(Difference(path, Side(modes[0], modes[2]), Side(modes[1], modes[3])))
    return found


def contents(git: Git, names: Iterable[str]) -> dict[str, tuple[bytes, bytes]]:
    """The kind and the content of each object that is there."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    output = git.run("cat-file", "--batch", stdin=lines(wanted)).stdout
    found, at = {}, 0
    for name in wanted:
        end = output.index(b"\n", at)
        about = output[at:end].split()
        at = end + 1
        if len(about) == 3:
            found[name] = (about[1], output[at : at + int(about[2])])
            at += int(about[2]) + 1
    return found


def commits(git: Git, names: Iterable[str], extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Those of the names that are of a commit, or a tag of one, which is there; and that commit."""
    wanted = [name for name in dict.fromkeys(names) if NAME.fullmatch(name)]
    if not wanted:
        return {}
    asked = lines(f"{name}^{{commit}}" for name in wanted)
    check = ("cat-file", "--batch-check=%(objectname) %(objecttype)")
    answers = git.run(*check, stdin=asked, extra=extra).stdout.decode().splitlines()
    found = (answer.partition(" ") for answer in answers)
    return {name: commit for name, (commit, _, kind) in zip(wanted, found, strict=True) if kind == "commit"}


def complete(git: Git, commits: Iterable[str], known: Iterable[str]) -> bool:
    """Whether everything that `commits` need beyond `known` is in the repository."""
    words = ("rev-list", "--objects", "--quiet", "--stdin")
    return git.run(*words, stdin=beyond(commits, known), accept=(0, 1, 128)).returncode == 0


def sizes(git: Git, names: Iterable[str]) -> dict[str, int]:
    """How many bytes each object has that is there."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    output = git.run("cat-file", "--batch-check=%(objectsize)", stdin=lines(wanted)).stdout
    found = zip(wanted, output.splitlines(), strict=True)
    return {name: int(size) for name, size in found if size.isdigit()}


@contextmanager
def scratch_index(source: Path | None = None) -> Iterator[Path]:
    """An index for a few commands: a copy of another one, if that is there, or none yet."""
    with tempfile.TemporaryDirectory(prefix="planforge-index-") as directory:
        index = Path(directory) / "index"
        if source is not None:
            with suppress(FileNotFoundError):
                # With its time: a file that was changed since then, within the same tick of the clock and to
                # the same size, is known by that alone.
                shutil.copy2(source, index)
        yield index


def filters(
    git: Git, commit: str, paths: Collection[bytes], work_tree: Path | None = None
) -> dict[bytes, bytes]:
    """For each path the filter that the attributes in `commit` name, if they say anything about one."""
    with scratch_index() as index:
        git.run("read-tree", commit, index=index)
        query = ("check-attr", "--cached", "--stdin", "-z", "filter")
        asked = b"".join(path + b"\0" for path in paths)
        fields = git.run(*query, work_tree=work_tree, index=index, stdin=asked).stdout.split(b"\0")
    found = zip(fields[::3], fields[2::3], strict=False)
    return {path: name for path, name in found if name not in (b"unspecified", b"unset")}


def beyond(commits: Iterable[str], known: Iterable[str]) -> bytes:
    """What `commits` reach and `known` do not, as commands of git read it."""
    return lines((*commits, *(f"^{commit}" for commit in known)))


def lines(words: Iterable[str]) -> bytes:
    """Words as commands of git read them: one on each line."""
    return "".join(f"{word}\n" for word in words).encode()
