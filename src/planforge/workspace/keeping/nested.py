"""
Repositories that lie inside a worktree: their commits go with the directory, so they are taken over first.

Their objects are read through our own git, as if they were ours; no setting, hook or
program of theirs is looked at but the names of their refs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from planforge.errors import GitFailed
from planforge.workspace.archive import ODD
from planforge.workspace.git import Git, objects
from planforge.workspace.keeping import contents, directories, entries
from planforge.workspace.keeping.contents import Contents
from planforge.workspace.keeping.leftovers import Tip

LARGEST = 256 * 1024 * 1024
"""Repositories with more objects than this are not taken over: their files are kept, their history is not."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken over, and what could not be."""

    tips: tuple[Tip, ...] = ()
    problems: tuple[str, ...] = ()


def take_over(git: Git, root: Path, content: Contents, own: Sequence[Path]) -> Taken:
    """
    Bring the commits of repositories inside `root`, and of one planted at it, into ours.

    `own` are git's entries of the worktree, where it keeps the submodules that were fetched there.
    The files of submodules come too, if somebody changed them: they are in no tree of ours.
    """
    tips: list[Tip] = []
    problems: list[str] = []
    for path in (b"", *content.nested, *content.submodules):
        place = root / os.fsdecode(path) if path else root
        found = _repository(place, root, own)
        if found is None:
            continue
        shown = os.fsdecode(path) or "."
        label = f"nested-{ODD.sub('-', shown).strip('-')[:60] or 'root'}"
        try:
            commits = _taken(git, found)
            if path in content.submodules:
                commits = [*_files(git, place, found), *commits]
            tips += [Tip(label=label, commit=commit) for commit in commits]
        except GitFailed as error:
            problems.append(f"the repository in `{shown}` is not kept as one: {error.message}")
    return Taken(tips=tuple(tips), problems=tuple(problems))


def _repository(place: Path, root: Path, own: Sequence[Path]) -> Path | None:
    """The repository of a directory, if it goes when the worktree goes."""
    dot = place / ".git"
    if dot.is_symlink():
        return None
    if dot.is_dir():
        return dot if (dot / "objects").is_dir() else None
    with suppress(OSError, ValueError):
        said = dot.read_bytes().removesuffix(b"\n")
        if said.startswith(b"gitdir: "):
            found = (place / os.fsdecode(said.removeprefix(b"gitdir: "))).resolve()
            goes = any(found.is_relative_to(home.resolve()) for home in (root, *own))
            if goes and found not in own and (found / "objects").is_dir():
                return found
    return None


def _taken(git: Git, repository: Path) -> list[str]:
    """
    See to it that what the repository's refs reach is among our objects; the commits to be kept.

    Nothing, if it has only what it got from a remote of its own. That a commit is among our objects
    does not say that it is kept: whoever took it over before us may have died right after.
    """
    local, remote = _names(repository)
    with_theirs = _with(repository)
    theirs = _existing(git, local, with_theirs)
    if not theirs:
        if local:
            raise GitFailed("none of its commits can be read here")
        return []
    known = _existing(git, remote, with_theirs)
    asked = objects.beyond(theirs, known)
    if not git.run("rev-list", "--max-count=1", "--stdin", stdin=asked, extra=with_theirs).stdout:
        return []
    if not objects.complete(git, theirs, ()):
        _require_small(repository / "objects")
        target = str(git.git_dir / "objects" / "pack" / "pack")
        git.run("pack-objects", "--quiet", "--revs", target, stdin=objects.lines(theirs), extra=with_theirs)
    return theirs


def _files(git: Git, place: Path, repository: Path) -> list[str]:
    """A commit of the files of a submodule, if they are not those of the commit it is at."""
    index, with_theirs = repository / "index", _with(repository)
    head = next(iter(_existing(git, [_head(repository)], with_theirs)), "")
    if head and not contents.differs_from_index(git, place, index):
        query = ("rev-parse", "--verify", "--quiet", f"{head}^{{tree}}")
        tree = git.run(*query, extra=with_theirs, accept=(0, 1, 128)).stdout.decode().strip()
        if tree and tree == contents.staged(git, index):
            return []
    _require_small(place)
    tree = contents.take(git, place, None, strict=False).tree
    parents = _existing(git, [head], {}) if head else []
    message = "files of a submodule, as an agent left them\n"
    return [git.commit_tree(tree, parents, message, datetime.now(UTC).isoformat())]


def _head(repository: Path) -> str:
    said = entries.head(repository)
    if not said.startswith("ref: "):
        return said
    with suppress(OSError, UnicodeDecodeError, ValueError):
        return (repository / said.removeprefix("ref: ")).read_text().strip()
    return ""


def _require_small(directory: Path) -> None:
    if (weight := directories.size(directory)) > LARGEST:
        raise GitFailed(f"it takes up {weight // 1_000_000} MB")


def _existing(git: Git, names: Sequence[str], extra: Mapping[str, str]) -> list[str]:
    """Those of the objects that are commits, or tags of commits, and are there."""
    return list(dict.fromkeys(objects.commits(git, names, extra).values()))


def _with(repository: Path) -> dict[str, str]:
    """What lets our git read the repository's objects."""
    path = str(repository / "objects").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{path}"'}


def _names(repository: Path) -> tuple[list[str], list[str]]:
    """What the repository's HEAD, refs and reflogs name, and what of it came from a remote; read as files."""
    local: dict[str, None] = dict.fromkeys(entries.named(repository))
    remote: dict[str, None] = {}
    has_remotes = (repository / "refs" / "remotes").is_dir()
    with suppress(OSError):
        for line in (repository / "packed-refs").read_bytes().splitlines():
            for name in entries.NAMES.findall(line):
                local[name.decode()] = None
                if b" refs/remotes/" in line or (has_remotes and b" refs/tags/" in line):
                    remote[name.decode()] = None
    for kind in ("remotes", "tags") if has_remotes else ():
        for file in (repository / "refs" / kind).rglob("*"):
            with suppress(OSError):
                if file.is_file() and not file.is_symlink():
                    remote |= {name.decode(): None for name in entries.NAMES.findall(file.read_bytes())}
    return list(local), list(remote)
