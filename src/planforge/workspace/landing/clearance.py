"""
Whether a checkout can be brought forward without anything of the person's being lost.

What would be lost is named: changes that are not committed, files that git does
not track where new ones are to be, whatever somebody has begun there. So is what
git would do to the files that Planforge does not, such as running a filter.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from planforge.actions import Action, Advice
from planforge.errors import RefusedByGate
from planforge.workspace.git import Git, objects
from planforge.workspace.git.objects import GITLINK, Difference
from planforge.workspace.landing.merges import is_ancestor
from planforge.workspace.landing.places import Place

SHOWN = 5
"""How many paths a refusal names."""


def changes_between(git: Git, old: str, new: str) -> list[Difference]:
    """The paths that differ between two commits; submodules are left to the person."""
    found = objects.differences(git, old, new)
    return [change for change in found if GITLINK not in (change.old.mode, change.new.mode)]


def require_possible(place: Place, index: Path, branch: str, old: str, new: str) -> None:
    """Refuse what cannot be done here at all, or only by git itself."""
    git, path = place.git, place.path
    require_no_operation(place)
    require_forward(git, branch, old, new)
    by_hand = f"run `git merge --ff-only {new[:12]}` there yourself"
    tags = git.run("ls-files", "-t", "-z", work_tree=path, index=index).stdout.split(b"\0")
    if any(entry.startswith(b"S ") for entry in tags):
        raise RefusedByGate(f"`{path}` is a sparse checkout, which Planforge does not update", by_hand)
    if filtered := _filtered(place, new, changes_between(git, old, new)):
        said = "goes through a filter of git's, which Planforge does not run"
        raise RefusedByGate(f"`{filtered}` {said}", by_hand)
    for name, value in (("core.autocrlf", "true"), ("core.eol", "crlf")):
        if value in _settings(git, name):
            raise RefusedByGate(f"`{name}` is `{value}`, so line ends would have to be converted", by_hand)


def require_no_operation(place: Place) -> None:
    """Refuse while a merge, a rebase or the like is in progress."""
    if what := place.under_way:
        raise RefusedByGate(f"{what} is under way in `{place.path}`", "finish it or abort it first")


def require_forward(git: Git, branch: str, old: str, new: str) -> None:
    """Refuse what would lose commits."""
    if not is_ancestor(git, old, new):
        raise RefusedByGate(
            f"`{branch}` has commits that what has landed is not built on",
            Advice("run {} first: it merges them", Action("land")),
        )


def require_clean(
    place: Place,
    index: Path,
    commit: str,
    changes: Sequence[Difference],
    besides: Collection[str] = (),
    *,
    half_done: bool = False,
) -> None:
    """
    Refuse if anything is not committed or would be overwritten, besides what an update had half done.

    `besides` are documents that Planforge itself writes: those may differ where the update leaves them alone.
    """
    ours = {change.path: change for change in changes} if half_done else {}
    left_alone = {os.fsencode(path) for path in besides} - {change.path for change in changes}
    staged, unstaged = _dirty(place, index, commit)
    dirty = [path for path in staged | (unstaged - left_alone) if not is_ours(place, ours.get(path))]
    if dirty:
        said = f"`{place.path}` has changes that are not committed"
        raise RefusedByGate(f"{said}: {listed(dirty)}", "commit or stash them first")
    tracked = set(place.git.run("ls-files", "-z", index=index).stdout.split(b"\0"))
    new = [change.path for change in changes if change.new.is_file and change.path not in tracked]
    found = {name for path in new for name in _in_the_way(place.path, path, tracked)}
    theirs = [name for name in found if not is_ours(place, ours.get(name))]
    if theirs:
        said = f"files that git does not track are in the way in `{place.path}`"
        raise RefusedByGate(f"{said}: {listed(theirs)}", "move them away first")


def is_clean(place: Place, commit: str, changes: Sequence[Difference], besides: Collection[str] = ()) -> bool:
    """Whether the checkout is as `commit` has it and nothing is in the way of `changes`."""
    with objects.scratch_index(place.own / "index") as index:
        try:
            require_clean(place, index, commit, changes, besides)
        except RefusedByGate:
            return False
    return True


def _dirty(place: Place, index: Path, commit: str) -> tuple[set[bytes], set[bytes]]:
    """Tracked paths that are not as `commit` has them, in the index, and among the files."""
    git, options = place.git, ("--name-only", "-z", "--ignore-submodules=dirty")
    staged = git.run("diff-index", "--cached", *options, commit, index=index).stdout
    git.run("update-index", "-q", "--refresh", work_tree=place.path, index=index, accept=(0, 1))
    unstaged = git.run("diff-files", *options, work_tree=place.path, index=index).stdout
    return set(filter(None, staged.split(b"\0"))), set(filter(None, unstaged.split(b"\0")))


def _in_the_way(root: Path, path: bytes, tracked: Collection[bytes]) -> Iterator[bytes]:
    """What is where the new file `path` is to be and is not going away by itself."""
    parts = path.split(b"/")
    for length in range(1, len(parts) + 1):
        name = b"/".join(parts[:length])
        full = root / os.fsdecode(name)
        if not os.path.lexists(full):
            return
        if full.is_symlink() or not full.is_dir():
            if name not in tracked:
                yield name
            return
    for directory, directories, files in os.walk(root / os.fsdecode(path)):
        links = [name for name in directories if Path(directory, name).is_symlink()]
        below = (os.fsencode(Path(directory, name).relative_to(root)) for name in (*files, *links))
        yield from (name for name in below if name not in tracked)


def _filtered(place: Place, commit: str, changes: Sequence[Difference]) -> str | None:
    """A path that the attributes of `commit` send through a filter, such as that of large files."""
    paths = [change.path for change in changes if change.new.is_file]
    found = objects.filters(place.git, commit, paths, work_tree=place.path)
    return next(map(objects.text, found), None)


def _settings(git: Git, name: str) -> set[str]:
    """What the repository, the machine and the person say of a setting."""
    home = Path.home()
    theirs = [
        Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config",
        home / ".gitconfig",
    ]
    found = set()
    for file in theirs:
        variables = {"GIT_CONFIG_GLOBAL": str(file), "GIT_CONFIG_NOSYSTEM": "0"}
        found.add(git.run("config", "--get", name, extra=variables, accept=(0, 1)).stdout.decode().strip())
    return {value.lower() for value in found}


def listed(paths: Collection[bytes]) -> str:
    """The first few of many paths, in words."""
    return objects.listed(sorted(paths), SHOWN)


def is_ours(place: Place, change: Difference | None) -> bool:
    """Whether an update may have left a path so: missing, or with all or the start of its new content."""
    if change is None:
        return False
    full = place.path / os.fsdecode(change.path)
    try:
        if full.is_symlink():
            found = os.fsencode(full.readlink())
        elif full.is_dir():
            return True  # what is in it is looked at by itself
        else:
            found = full.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return True
    return any(content.startswith(found) for content in _contents(place, change))


def _contents(place: Place, change: Difference) -> Iterator[bytes]:
    """The new content as git has it, and as git writes it."""
    if change.new.is_file:
        yield place.git.run("cat-file", "blob", change.new.blob).stdout
        path = os.fsdecode(change.path)
        query = ("cat-file", "--filters", f"--path={path}", change.new.blob)
        yield place.git.run(*query, work_tree=place.path).stdout
