"""
The tree of everything in a directory that git does not ignore, whatever an agent made there.

Git would take a repository inside the directory for a submodule, keep nothing of
its files, and obey its settings. Its files are files like all others here. What is
inside a submodule of the person's own is not part of the tree.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from planforge.errors import GitFailed
from planforge.kernel.directories import walk
from planforge.kernel.wording import counted
from planforge.workspace.git import Git
from planforge.workspace.git.checkouts import parents
from planforge.workspace.git.objects import scratch_index

Finder = Callable[[str, bytes], Sequence[object]]
"""Says what is secret in a file, given its path and its content; nothing, if nothing is."""

LARGEST = 16 * 1024 * 1024
"""How much of a file is searched for secrets."""


PATH_MAX = 4096
"""So many bytes of a path the system does not take any more."""

LONGEST = 1024
"""How many bytes a path may have that is kept by itself: it has to fit into longer ones."""

SHOWN = 300
"""How much is shown of what git says."""


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What a directory holds."""

    tree: str
    nested: tuple[bytes, ...] = ()
    """The repositories inside it, whose files are in the tree."""
    submodules: tuple[bytes, ...] = ()
    """The person's own submodules, whose files are not."""
    left_out: tuple[bytes, ...] = ()
    """Files that git could not take in: it may not read them, or not hold their names."""
    withheld: tuple[bytes, ...] = ()
    """Files that are not to get into git; the tree has them as they were at the base, if they were there."""


def take(
    git: Git,
    directory: Path,
    base: str | None,
    *,
    strict: bool = True,
    secret: Finder | None = None,
) -> Contents:
    """The tree of a directory. A file that cannot be in it is a failure if `strict`, or else named."""
    with scratch_index() as index:
        if base:  # starting from it keeps files that are tracked although they are ignored
            git.run("read-tree", base, index=index)
        known = git.run("ls-files", "--stage", "-z", index=index).stdout.split(b"\0")
        submodules = [entry.split(b"\t", 1)[1] for entry in known if entry.startswith(b"160000 ")]
        others = _others(git, directory, index)
        nested = [entry.removesuffix(b"/") for entry in others if entry.endswith(b"/")]
        kept_back = []
        if secret is not None:
            changed = [entry for entry in others if entry and not entry.endswith(b"/")]
            changed += _modified(git, directory, index)
            kept_back = [path for path in changed if _is_secret(secret, directory, path)]
        far = _out_of_reach(directory, others, strict=strict)
        skipped = (*submodules, *nested, *kept_back, *far)
        left_out = [*far, *_add(git, directory, index, skipped, strict=strict)]
        inside = []
        for path in nested:
            inner = take(
                git, directory / os.fsdecode(path), None, strict=strict, secret=_beneath(secret, path)
            )
            git.run("read-tree", f"--prefix={os.fsdecode(path)}/", inner.tree, index=index)
            inside += [path + b"/" + other for other in inner.nested]
            left_out += [path + b"/" + other for other in inner.left_out]
            kept_back += [path + b"/" + other for other in inner.withheld]
        return Contents(
            tree=git.line("write-tree", index=index),
            nested=(*nested, *inside, *(() if strict else _among(directory, known))),
            submodules=tuple(submodules),
            left_out=tuple(left_out),
            withheld=tuple(dict.fromkeys(kept_back)),
        )


def is_changed(git: Git, directory: Path, base: str) -> bool:
    """Whether a directory holds anything else than the commit `base`; the repository is only read."""
    with scratch_index() as index:
        git.run("read-tree", base, index=index)
        return bool(_modified(git, directory, index) or any(_others(git, directory, index)))


def differs_from_index(git: Git, directory: Path, index: Path) -> bool:
    """Whether a directory holds anything else than an index says that it does."""
    with scratch_index() as copy:
        try:
            copy.write_bytes(index.read_bytes())
            return bool(_modified(git, directory, copy) or any(_others(git, directory, copy)))
        except (OSError, GitFailed):
            return True


def staged(git: Git, index: Path) -> str | None:
    """The tree of what an agent has put into its index, if that can be told."""
    with scratch_index() as copy:
        try:
            copy.write_bytes(index.read_bytes())
            process = git.run("write-tree", "--missing-ok", index=copy, accept=(0, 1, 128))
        except (OSError, GitFailed):
            return None
        return process.stdout.decode().strip() or None


def _others(git: Git, directory: Path, index: Path) -> list[bytes]:
    listing = ("ls-files", "--others", "--exclude-standard", "-z")
    return git.run(*listing, work_tree=directory, index=index).stdout.split(b"\0")


def _modified(git: Git, directory: Path, index: Path) -> list[bytes]:
    """The tracked files that are not as the index has them."""
    refresh = ("update-index", "-q", "--ignore-submodules", "--refresh")
    git.run(*refresh, work_tree=directory, index=index, accept=(0, 1))
    listing = ("diff-files", "--name-only", "--ignore-submodules=all", "-z")
    found = git.run(*listing, work_tree=directory, index=index).stdout.split(b"\0")
    return [path for path in found if path]


def _add(git: Git, directory: Path, index: Path, skipped: Sequence[bytes], *, strict: bool) -> list[bytes]:
    """Take everything in, and say what could not be."""
    process = git.run(
        *("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"),
        *(() if strict else ("--ignore-errors",)),
        work_tree=directory,
        index=index,
        stdin=b"\0".join([b".", *(b":(exclude,literal)" + path for path in skipped)]),
        accept=(0,) if strict else (0, 1),
    )
    # Git only warns about a directory that it may not look into, as if there were nothing in it.
    closed = [line for line in process.stderr.splitlines() if b"could not open directory" in line]
    if closed and strict:
        raise GitFailed(f"git cannot read everything: {closed[0][:SHOWN].decode('utf-8', 'replace')}")
    if not process.returncode and not closed:
        return []
    left = [*_others(git, directory, index), *_modified(git, directory, index), *_closed(directory)]
    within = dict.fromkeys(map(_within_reach, left))
    return [path for path in within if path and not _under(path, skipped)]


def _out_of_reach(directory: Path, paths: Sequence[bytes], *, strict: bool) -> list[bytes]:
    """The directories with files that only git could open, because their paths are too long for others."""
    room = PATH_MAX - len(os.fsencode(directory)) - 1
    far = [path for path in paths if len(path) >= room]
    if far and strict:
        shown = far[0][:SHOWN].decode("utf-8", "replace")
        raise GitFailed(f"`{shown}…` is a path of {counted(len(far[0]), 'byte')}, more than can be looked at")
    return list(dict.fromkeys(map(_within_reach, far)))


def _within_reach(path: bytes) -> bytes:
    """The path, or of one that is too long to be used the directory on the way that is not."""
    while len(path) > LONGEST and b"/" in path:
        path = os.path.dirname(path)  # noqa: PTH120  (bytes, which need not be text)
    return path


def _among(directory: Path, known: Sequence[bytes]) -> list[bytes]:
    """Repositories that somebody made in directories with tracked files, which git does not mind."""
    homes = parents(entry.partition(b"\t")[2] for entry in known)
    return sorted(home for home in homes if (directory / os.fsdecode(home) / ".git").is_dir())


def _closed(directory: Path) -> list[bytes]:
    """The directories beneath that we may not look into."""
    found: list[bytes] = []

    def note(error: OSError) -> None:
        if error.filename:
            found.append(os.fsencode(os.path.relpath(error.filename, directory)))

    for _ in walk(directory, note):
        pass
    return found


def _under(path: bytes, directories: Sequence[bytes]) -> bool:
    stem = path.removesuffix(b"/")
    return any(stem == directory or stem.startswith(directory + b"/") for directory in directories)


def _is_secret(secret: Finder, directory: Path, path: bytes) -> bool:
    place = directory / os.fsdecode(path)
    with suppress(OSError):
        if place.is_symlink():
            content = os.fsencode(place.readlink())
        elif place.is_file():
            with place.open("rb") as file:
                content = file.read(LARGEST)
        else:
            return False
        return bool(secret(path.decode("utf-8", "backslashreplace"), content))
    return False


def _beneath(secret: Finder | None, path: bytes) -> Finder | None:
    if secret is None:
        return None
    prefix = path.decode("utf-8", "backslashreplace")
    return lambda inner, content: secret(f"{prefix}/{inner}", content)
