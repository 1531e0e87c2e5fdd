"""What changed between two commits, and a change carried over to another one, without any work tree."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from planforge.kernel.effects import Patch
from planforge.workspace.git import Git

PLAIN = ("--no-renames", "--no-ext-diff", "--no-textconv")


def changes(git: Git, old: str, new: str) -> tuple[tuple[str, ...], int]:
    """The paths that differ between two commits, and how many lines were added or removed."""
    output = git.run("diff-tree", "-r", "-z", "--numstat", *PLAIN, old, new).stdout
    files, lines = [], 0
    for record in output.split(b"\0"):
        if record:
            path, count = counted(record)
            files.append(path)
            lines += count
    return tuple(sorted(files)), lines


def counted(record: bytes) -> tuple[str, int]:
    """One record of `--numstat`: the path, and how many lines were added or removed."""
    added, removed, path = record.split(b"\t", 2)
    count = sum(int(number) for number in (added, removed) if number != b"-")
    return path.decode("utf-8", "backslashreplace"), count


def hashes(git: Git, old: str, new: str) -> tuple[tuple[str, str], ...]:
    """The paths that differ between two commits, each with the hash of its new content, if it has any."""
    found = []
    for meta, path in _raw(git, old, new):
        hash_ = meta.split()[3].decode()
        found.append((path.decode("utf-8", "backslashreplace"), hash_.strip("0") and hash_))
    return tuple(sorted(found))


def patch(git: Git, commit: str, tree: str, parent: str, conflicts: tuple[str, ...] = ()) -> Patch:
    """What `commit` changes against `parent`."""
    files, lines = changes(git, parent, commit)
    return Patch(
        commit=commit, tree=tree, parent=parent, files=files, changed_lines=lines, conflicts=conflicts
    )


def restored(git: Git, commit: str, parent: str, files: Collection[str], at: str) -> str:
    """A commit that holds what `commit` does, with these files as in `parent`; no ref leads to it."""
    entries = []
    for meta, path in _raw(git, commit, parent):
        if path.decode("utf-8", "backslashreplace") in files:
            _, mode, _, blob, _ = meta.split()
            entries.append(b"%s %s\t%s\0" % (mode, blob, path))  # mode 0 takes a file out
    with tempfile.TemporaryDirectory(prefix="planforge-index-") as directory:
        index = Path(directory) / "index"
        git.run("read-tree", commit, index=index)
        git.run("update-index", "-z", "--index-info", index=index, stdin=b"".join(entries))
        tree = git.line("write-tree", index=index)
    return git.commit_tree(tree, [commit], "the same with the tests of before\n", at)


def _raw(git: Git, old: str, new: str) -> Iterator[tuple[bytes, bytes]]:
    """The paths that differ between two commits, each with its modes and hashes on both sides."""
    output = git.run("diff-tree", "-r", "-z", "--raw", "--no-abbrev", *PLAIN, old, new).stdout
    parts = output.split(b"\0")
    return zip(parts[::2], parts[1::2], strict=False)


def rebase(git: Git, commit: str, onto: str, keep: Callable[[str, str], Patch]) -> Patch:
    """Make the change of `commit` on top of `onto`; `keep` commits the tree it gives, with the message."""
    process = git.run(
        "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", onto, commit, accept=(0, 1)
    )
    tree, *conflicts = (
        part.decode("utf-8", "backslashreplace") for part in process.stdout.split(b"\0") if part
    )
    if process.returncode:
        parent = git.commit_of(f"{commit}^")
        return patch(git, commit, git.tree_of(commit), parent, tuple(conflicts))
    _, _, message = git.run("cat-file", "commit", commit).stdout.partition(b"\n\n")
    return keep(tree, message.decode("utf-8", "surrogateescape"))
