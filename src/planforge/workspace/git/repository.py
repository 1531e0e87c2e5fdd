"""
What is unusual about a repository, and what Planforge does about it or cannot do.

`survey` says it for the person, who otherwise finds out when a step fails. It looks at
one commit, HEAD, and at nothing in the work tree. `unconverted` is for every change: it
finds files that a filter of git's (Git LFS, git-crypt) should have converted on the way
in, which no filter does here.

A survey of a repository with 100,000 files takes about half a second.
"""

from __future__ import annotations

import os
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from planforge.actions import Action, Hint
from planforge.errors import PlanforgeError
from planforge.kernel.wording import counted
from planforge.workspace.git import FALLBACK_EMAIL, Git, objects, stale_locks
from planforge.workspace.git.objects import GITLINK, LINK, Entry
from planforge.workspace.sandbox.home import is_private

OK, WARN, FAIL = "ok", "warn", "fail"

MANY = 100_000
"""From how many files on a repository counts as large."""
LOOKED_AT = 500_000
"""Of how many files the names are compared."""
SHOWN = 3
LFS = "lfs"
POINTER = b"version https://git-lfs.github.com/spec/"
POINTER_BYTES = 1024
"""A pointer of Git LFS's is smaller than this, by its specification."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is unusual about a repository."""

    id: str
    status: str
    """ok: taken care of. warn: not all is as one would expect. fail: this cannot be worked with."""
    evidence: str
    fix: Hint = ""


class Unconverted(msgspec.Struct, frozen=True, kw_only=True):
    """A changed file that a filter of git's would have converted."""

    path: str
    filter: str


def survey(git: Git) -> tuple[Note, ...]:
    """Everything unusual about a repository; nothing at all for most."""
    try:
        settings = git.settings()
        notes = [*_format(git), *_settings(git), *_surroundings(git), *_history(git), *_locks(git)]
        if git.has_commits():
            notes += _files(git, [*objects.entries(git, "HEAD")], partial=settings.partial)
    except PlanforgeError as error:
        return (Note(id="repository", status=FAIL, evidence=error.message, fix=error.hint or ""),)
    return tuple(notes)


def unconverted(git: Git, old: str, new: str) -> tuple[Unconverted, ...]:
    """The files that differ between two commits, should have gone through a filter, and have not."""
    found = objects.differences(git, old, new)
    changed = {path: now.blob for path, _, now in found if now.is_file and now.mode != LINK}
    told = objects.filters(git, new, changed).items() if changed else ()
    filters = {path: objects.text(name) for path, name in told if name != b"set"}  # which names none
    pointers = _pointers(git, [changed[path] for path, name in filters.items() if name == LFS])
    return tuple(
        Unconverted(path=objects.text(path), filter=name)
        for path, name in sorted(filters.items())
        if changed[path] not in pointers
    )


# What `.git` says


def _format(git: Git) -> Iterator[Note]:
    kept = dict(git.settings().kept)
    if (form := kept.get("extensions.objectformat", "sha1")) != "sha1":
        yield Note(id="object-format", status=OK, evidence=f"objects are named by {form}")
    if (refs := kept.get("extensions.refstorage", "files")) != "files":
        yield Note(
            id="ref-storage",
            status=FAIL,
            evidence=f"refs are stored as {refs}, which Planforge does not know",
            fix="git refs migrate --ref-format=files",
        )
    if git.settings().sparse:
        said = "your checkout is sparse; worktrees of Planforge's hold all files"
        yield Note(id="sparse", status=OK, evidence=said)


def _settings(git: Git) -> Iterator[Note]:
    settings = git.settings()
    kept = dict(settings.kept)
    if git.identity()[1] == FALLBACK_EMAIL:
        yield Note(
            id="identity",
            status=WARN,
            evidence=f"nobody is named, so commits bear the name {git.identity()[0]}",
            fix="git config user.name NAME; git config user.email ADDRESS",
        )
    if settings.signs:
        said = "your commits are signed; those of Planforge's are not"
        yield Note(id="signing", status=WARN, evidence=said, fix="sign the merge when you take what landed")
    if names := ", ".join(_hooks(git)):
        said = f"hooks ({names}) do not run for commits of Planforge's"
        yield Note(id="hooks", status=OK, evidence=said, fix="put what they check into planforge.toml")
    if kept.get("core.filemode") == "false":
        said = "`core.fileMode` is false, so it is not seen when a file becomes executable"
        yield Note(id="file-mode", status=WARN, evidence=said, fix="git config core.fileMode true")
    if kept.get("core.symlinks") == "false":
        said = "`core.symlinks` is false, so links are written as files"
        yield Note(id="symlinks", status=WARN, evidence=said, fix="git config core.symlinks true")
    ends = [f"`{name}` is `{kept[name]}`" for name in ("core.autocrlf", "core.eol") if name in kept]
    if ends and kept.get("core.autocrlf") != "false":
        said = f"{' and '.join(ends)}: line ends are converted in worktrees too"
        yield Note(id="line-ends", status=OK, evidence=said)


def _hooks(git: Git) -> list[str]:
    directory = git.top / Path(git.settings().hooks or git.git_dir / "hooks").expanduser()
    try:
        found = [path for path in directory.iterdir() if path.suffix != ".sample"]
    except OSError:
        return []
    return sorted(path.name for path in found if path.is_file() and os.access(path, os.X_OK))


def is_repository(entry: Path) -> bool:
    """Whether a `.git` is a repository. Some sandboxes leave an empty one behind."""
    return entry.is_file() or (entry / "HEAD").exists()


def _surroundings(git: Git) -> Iterator[Note]:
    if git.own.parent.name == "worktrees" and git.own != git.git_dir:
        said = f"this is a linked worktree of `{git.git_dir}`; HEAD is the one of this worktree"
        yield Note(id="linked-worktree", status=OK, evidence=said)
    outer = next((path for path in git.top.parents if is_repository(path / ".git")), None)
    if outer is not None and outer / ".git" != git.git_dir:
        said = f"it lies inside the repository `{outer}`, which is not looked at"
        yield Note(id="nested", status=OK, evidence=said)
    if is_private(git.top):
        said = (
            f"`{git.top}` is a home, or where programs keep what is yours: "
            "agents and checks see its history and their own worktree, and no other file of it"
        )
        fix = "name what else they need in `visible` under `[sandbox]` in planforge.toml"
        yield Note(id="home", status=WARN, evidence=said, fix=fix)


def _history(git: Git) -> Iterator[Note]:
    head = git.run("symbolic-ref", "--quiet", "HEAD", accept=(0, 1, 128)).stdout
    if not git.has_commits():
        said = "there is no commit to start from"
        yield Note(id="commits", status=FAIL, evidence=said, fix="git commit --allow-empty -m start")
    elif not head:
        said = f"HEAD is detached; work starts from {git.commit_of('HEAD')[:12]}"
        yield Note(id="detached", status=OK, evidence=said)
    if cut := _lines(git.git_dir / "shallow"):
        said = (
            f"the history is cut off at {counted(cut, 'commit')}; what branched off before cannot be merged"
        )
        yield Note(id="shallow", status=WARN, evidence=said, fix="git fetch --unshallow")
    replaced = git.run("for-each-ref", "--format=x", "refs/replace").stdout.count(b"x")
    if replaced:
        said = f"replacements for {counted(replaced, 'object')}; Planforge works with the true ones"
        yield Note(id="replaced", status=WARN, evidence=said, fix="git replace --list")
    if _lines(git.git_dir / "info" / "grafts"):
        said = "`.git/info/grafts` gives commits other parents; Planforge works with the true ones"
        yield Note(id="grafts", status=WARN, evidence=said, fix="git replace --convert-graft-file")
    if borrowed := _lines(git.git_dir / "objects" / "info" / "alternates"):
        said = f"objects are borrowed from {borrowed} other repositories; without these, nothing can be read"
        yield Note(id="borrowed", status=WARN, evidence=said, fix="git repack -a -d")


def _lines(file: Path) -> int:
    try:
        return sum(
            bool(line.strip()) and not line.startswith(b"#") for line in file.read_bytes().split(b"\n")
        )
    except OSError:
        return 0


def _locks(git: Git) -> Iterator[Note]:
    for lock in stale_locks.find(git):
        said = f"`{lock.name}.lock` is {_age(lock.seconds)} old; {lock.why}"
        fix: Hint = Action("doctor", fix=True) if lock.dead else f"if no git is running, rm {lock.path}"
        yield Note(id=f"lock {lock.name}", status=WARN, evidence=said, fix=fix)


def _age(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


# What is in the commit


def _files(git: Git, entries: Sequence[Entry], *, partial: bool) -> Iterator[Note]:
    if len(entries) >= MANY:
        said = f"{len(entries)} files: each worktree and each check writes all of them"
        yield Note(id="large", status=WARN, evidence=said)
    yield from _submodules([entry.path for entry in entries if entry.mode == GITLINK])
    yield from _filtered(git, [entry for entry in entries if entry.path.endswith(b".gitattributes")])
    yield from _names(git, [entry.path for entry in entries[:LOOKED_AT]])
    if partial:
        yield _partial(git, [entry.blob for entry in entries if entry.mode != GITLINK])


def _submodules(paths: Sequence[bytes]) -> Iterator[Note]:
    if paths:
        names = objects.listed(paths, SHOWN)
        said = f"submodules ({names}) stay empty in worktrees; changes inside them are not committed"
        fix = "let the setup command run `git submodule update --init`"
        yield Note(id="submodules", status=WARN, evidence=said, fix=fix)


def _filtered(git: Git, attributes: Sequence[Entry]) -> Iterator[Note]:
    said = objects.contents(git, (entry.blob for entry in attributes)).values()
    lines = b"\n".join([*(content for _, content in said), git.settings().attributes]).splitlines()
    words = {word for line in lines if not line.startswith(b"#") for word in line.split()[1:]}
    names = sorted(objects.text(word[7:]) for word in words if word.startswith(b"filter="))
    if LFS in names:
        evidence = "files of Git LFS are worked with as the pointers that git holds, not as their contents"
        fix = "keep `git lfs pull` out of worktrees: contents instead of pointers would be a change"
        yield Note(id="lfs", status=WARN, evidence=evidence, fix=fix)
    if others := ", ".join(f"`{name}`" for name in names if name != LFS):
        evidence = f"filters ({others}) are not run: their files are worked with as git holds them"
        fix = "keep steps away from files that a filter encrypts: what is written there is stored as it is"
        yield Note(id="filters", status=WARN, evidence=evidence, fix=fix)


def _names(git: Git, paths: Sequence[bytes]) -> Iterator[Note]:
    alike: defaultdict[str, list[bytes]] = defaultdict(list)
    odd = []
    for path in paths:
        if path.isascii():
            alike[path.decode("ascii").lower()].append(path)
            continue
        try:
            text = path.decode("utf-8")
        except UnicodeDecodeError:
            odd.append(path)
        else:
            alike[unicodedata.normalize("NFC", text).casefold()].append(path)
    if odd:
        names = objects.listed(odd, SHOWN)
        said = f"names that are not UTF-8 ({names}) are shown with `\\x…` for what cannot be read"
        yield Note(id="names", status=OK, evidence=said)
    same = next((found for found in alike.values() if len(found) > 1), None)
    if same:
        blind = dict(git.settings().kept).get("core.ignorecase") == "true"
        said = f"{objects.listed(same, SHOWN)} differ only in case or accents"
        cannot = (
            "; this disk cannot hold them all" if blind else ", which this disk can hold and others cannot"
        )
        yield Note(id="alike", status=FAIL if blind else OK, evidence=said + cannot)


def _partial(git: Git, blobs: Iterable[str]) -> Note:
    asked = dict.fromkeys(blobs)
    missing = git.run("cat-file", "--batch-check=", stdin=objects.lines(asked)).stdout.count(b" missing\n")
    fix = "git fetch --refetch --no-filter"
    if missing:
        files = counted(missing, "file")
        said = f"this is a partial clone without {files} of HEAD, and Planforge fetches nothing"
        return Note(id="partial", status=FAIL, evidence=said, fix=fix)
    said = "this is a partial clone; Planforge fetches nothing, so older commits may be out of reach"
    return Note(id="partial", status=WARN, evidence=said, fix=fix)


def _pointers(git: Git, blobs: Iterable[str]) -> set[str]:
    """Those of the blobs that are pointers of Git LFS's."""
    small = [blob for blob, size in objects.sizes(git, blobs).items() if size < POINTER_BYTES]
    return {blob for blob, (_, said) in objects.contents(git, small).items() if said.startswith(POINTER)}
