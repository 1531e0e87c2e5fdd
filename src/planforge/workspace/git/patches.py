"""What changed between two commits, and a change carried over to another one, without any work tree."""

from __future__ import annotations

from collections.abc import Callable, Collection

from planforge.kernel.effects import Patch
from planforge.workspace.git import Git, objects
from planforge.workspace.git.objects import PLAIN, text


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
    return text(path), count


def hashes(git: Git, old: str, new: str) -> tuple[tuple[str, str], ...]:
    """The paths that differ between two commits, each with the hash of its new content, if it has any."""
    found = objects.differences(git, old, new)
    return tuple(sorted((text(each.path), each.new.blob.strip("0") and each.new.blob) for each in found))


def patch(git: Git, commit: str, tree: str, parent: str, conflicts: tuple[str, ...] = ()) -> Patch:
    """What `commit` changes against `parent`."""
    files, lines = changes(git, parent, commit)
    return Patch(
        commit=commit, tree=tree, parent=parent, files=files, changed_lines=lines, conflicts=conflicts
    )


def restored(git: Git, commit: str, parent: str, files: Collection[str], at: str) -> str:
    """A commit that holds what `commit` does, with these files as in `parent`; no ref leads to it."""
    entries = [
        b"%s %s\t%s\0" % (was.mode.encode(), was.blob.encode(), path)  # mode 0 takes a file out
        for path, _, was in objects.differences(git, commit, parent)
        if text(path) in files
    ]
    with objects.scratch_index() as index:
        git.run("read-tree", commit, index=index)
        git.run("update-index", "-z", "--index-info", index=index, stdin=b"".join(entries))
        tree = git.line("write-tree", index=index)
    return git.commit_tree(tree, [commit], "the same with the tests of before\n", at)


def rebase(git: Git, commit: str, onto: str, keep: Callable[[str, str], Patch]) -> Patch:
    """Make the change of `commit` on top of `onto`; `keep` commits the tree it gives, with the message."""
    process = git.run(
        "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", onto, commit, accept=(0, 1)
    )
    tree, *conflicts = (text(part) for part in process.stdout.split(b"\0") if part)
    if process.returncode:
        parent = git.commit_of(f"{commit}^")
        return patch(git, commit, git.tree_of(commit), parent, tuple(conflicts))
    _, _, message = git.run("cat-file", "commit", commit).stdout.partition(b"\n\n")
    return keep(tree, message.decode("utf-8", "surrogateescape"))
