"""
Git objects by themselves: taken out of a repository, checked by their names, laid into a new one.

An object here is what git hashes, with its header, so its name can be checked with
nothing but a hash function. What is read from one is never taken for a path on
disk: only git itself writes files from a tree, and it refuses names that lead out.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha1, sha256
from pathlib import Path
from typing import NamedTuple

from planforge.errors import GitFailed
from planforge.workspace.git import Git
from planforge.workspace.git import objects as stored

TREE, SUBMODULE = "40000", "160000"

ENTRIES_LIMIT = 500_000
"""How many entries a tree may have with all below it. A few nested trees can name billions."""


class CommitObject(NamedTuple):
    """What a commit says."""

    tree: str
    parents: tuple[str, ...]


class TreeEntry(NamedTuple):
    """One line of a tree."""

    mode: str
    name: bytes
    object: str


def name_of(content: bytes, length: int) -> str:
    """The name that git gives an object, in a repository whose names have this length."""
    return sha256(content).hexdigest() if length == 64 else sha1(content).hexdigest()  # noqa: S324


def is_named(name: str, content: bytes) -> bool:
    """Whether an object is what its name says."""
    return name_of(content, len(name)) == name


def body(content: bytes, kind: str) -> bytes:
    """An object without its header, which must be of this kind."""
    header, separator, rest = content.partition(b"\0")
    if not separator or header != f"{kind} {len(rest)}".encode():
        raise GitFailed(f"it is not a whole {kind}")
    return rest


def commit(content: bytes) -> CommitObject:
    """What a commit object says of its tree and its parents."""
    lines = body(content, "commit").partition(b"\n\n")[0].decode("utf-8", "replace").split("\n")
    if not lines[0].startswith("tree "):
        raise GitFailed("it is a commit without a tree")
    parents = tuple(line.removeprefix("parent ") for line in lines if line.startswith("parent "))
    return CommitObject(lines[0].removeprefix("tree "), parents)


def tree(content: bytes, length: int) -> list[TreeEntry]:
    """The lines of a tree object."""
    rest, size, found = body(content, "tree"), length // 2, []
    while rest:
        head, separator, rest = rest.partition(b"\0")
        mode, space, name = head.partition(b" ")
        if not (separator and space and name and len(rest) >= size):
            raise GitFailed("it is not a whole tree")
        found.append(TreeEntry(mode.decode("ascii", "replace"), name, rest[:size].hex()))
        rest = rest[size:]
    return found


def files(objects: Mapping[str, bytes], root: str) -> dict[bytes, TreeEntry]:
    """Every file below a tree, by its path. A tree that is not among `objects` is missed."""
    found: dict[bytes, TreeEntry] = {}
    left = [(b"", root)]
    seen = 0
    while left:
        prefix, name = left.pop()
        if name not in objects:
            raise GitFailed(f"tree `{name[:12]}` is missing")
        entries = tree(objects[name], len(name))
        seen += len(entries)
        if seen > ENTRIES_LIMIT:
            raise GitFailed(f"tree `{root[:12]}` has more than {ENTRIES_LIMIT} entries")
        for entry in entries:
            if entry.mode == TREE:
                left.append((prefix + entry.name + b"/", entry.object))
            else:
                found[prefix + entry.name] = entry
    return found


def changed(old: Mapping[bytes, TreeEntry], new: Mapping[bytes, TreeEntry]) -> list[bytes]:
    """The paths that differ between two trees."""
    return sorted(path for path in {*old, *new} if old.get(path) != new.get(path))


def take(git: Git, names: Iterable[str]) -> dict[str, bytes]:
    """Objects of a repository, whole."""
    wanted = list(dict.fromkeys(names))
    found = stored.contents(git, wanted)
    if lost := next((name for name in wanted if name not in found), None):
        raise GitFailed(f"`{lost[:12]}` is not in the repository any more")
    return {name: b"%s %d\0%s" % (kind, len(content), content) for name, (kind, content) in found.items()}


def trees_and_files(git: Git, root: str) -> tuple[set[str], dict[str, int]]:
    """Every tree from `root` down, and every file with its size."""
    found = list(stored.entries(git, root, "-t", "-l"))
    trees = {root, *(entry.blob for entry in found if entry.mode == stored.TREE)}
    files = (entry for entry in found if entry.mode not in (stored.TREE, stored.GITLINK))
    return trees, {entry.blob: entry.size for entry in files}


def lay_out(objects: Mapping[str, bytes], directory: Path, cut: Sequence[str]) -> Git:
    """A new repository that holds `objects` and thinks that the commits in `cut` have no parents."""
    form = "sha256" if any(len(name) == 64 for name in objects) else "sha1"
    git = Git(directory / ".git", directory)
    git.git_dir.mkdir(parents=True)
    git.run("init", "--quiet", f"--object-format={form}", str(directory), work_tree=directory)
    for name, content in objects.items():
        path = git.git_dir / "objects" / name[:2] / name[2:]
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(zlib.compress(content, 1))
    (git.git_dir / "shallow").write_text("".join(f"{name}\n" for name in sorted(cut)))
    return git
