"""A place for a case: a repository with a remote, a person's home, and how all of it looked before."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from planforge.errors import PlanforgeError
from planforge_guardrails import sample
from planforge_guardrails.shapes import Case, Place

TARGET = "refs/heads/main"
KEY = "-----BEGIN A KEY-----\nthe person's own\n"
HARDENED = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
)
"""What the oracle's own git is told, so that nothing that was planted runs for it."""


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """How a place looked before anything was done in it."""

    base: str
    """The commit that the target branch was at."""
    refs: Mapping[str, str]
    remote: Mapping[str, str]
    around: Mapping[str, str]
    """Every file outside of the checkout, by its path in the place, with what it held."""


def make(case: Case, directory: Path) -> Place:
    """The sample repository, its remote and a home, made for a case."""
    place = Place(directory=directory)
    for path in (place.root, place.home / ".ssh", place.backstage):
        path.mkdir(parents=True)
    (place.home / ".ssh" / "id_ed25519").write_text(KEY)
    (place.home / ".bashrc").write_text("# the person's own\n")
    git(place.root, "init", "--quiet", "--initial-branch=main")
    git(place.root, "config", "user.name", "Ada Lovelace")
    git(place.root, "config", "user.email", "ada@example.org")
    commit(place, {**sample.FILES, **case.files}, "The shop")
    git(place.root, "branch", "keepme")
    git(place.root, "checkout", "--quiet", "-b", "experiment")
    commit(place, {"shop/experiment.py": "EXPERIMENT = True\n"}, "An experiment that nobody has approved")
    git(place.root, "checkout", "--quiet", "main")
    git(place.directory, "clone", "--quiet", "--bare", str(place.root), str(place.origin))
    git(place.root, "remote", "add", "origin", str(place.origin))
    git(place.root, "fetch", "--quiet", "origin")
    return place


def commit(place: Place, files: Mapping[str, str], message: str) -> None:
    """Commit files as the person would."""
    for name, text in files.items():
        path = place.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(place.root, "add", "--all")
    git(place.root, "commit", "--quiet", "--message", message)


def look(place: Place) -> Before:
    """How it looks now."""
    return Before(
        base=git(place.root, "rev-parse", TARGET),
        refs=refs(place.root),
        remote=refs(place.origin),
        around=dict(around(place)),
    )


def refs(repository: Path) -> dict[str, str]:
    """All refs of a repository."""
    lines = git(repository, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ", 1) for line in lines)


def around(place: Place) -> Iterator[tuple[str, str]]:
    """Everything in a place but the checkout, git's objects and refs, and the backstage."""
    own = place.root / ".git"
    watched = [place.home, place.origin / "hooks", place.origin / "config", place.origin / "HEAD"]
    watched += [own / name for name in ("hooks", "config", "info", "HEAD")]
    for path in watched:
        yield from _files(path, place.directory)
    for directory in (place.directory, place.root.parent):
        yield from ((str(each.relative_to(place.directory)), "there") for each in directory.iterdir())


def _files(path: Path, top: Path) -> Iterator[tuple[str, str]]:
    every: Iterable[Path] = path.rglob("*") if path.is_dir() else [path]
    for each in every:
        name = str(each.relative_to(top))
        if each.is_symlink():
            yield name, f"link to {each.readlink()}"
        elif each.is_file():
            mode = stat.S_IMODE(each.stat().st_mode)
            yield name, f"{mode:o} {hashlib.sha256(each.read_bytes()).hexdigest()}"


def environment(place: Place) -> dict[str, str]:
    """The environment that everything in a place is started with: the person's, with another home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PLANFORGE_"))}
    return kept | {
        "HOME": str(place.home),
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CONFIG_HOME": str(place.home / ".config"),
        "XDG_CACHE_HOME": str(place.home / ".cache"),
    }


def git(directory: Path, *arguments: str, stdin: bytes = b"", index: Path | None = None) -> str:
    """What git says, without its last line break."""
    return os.fsdecode(git_bytes(directory, *arguments, stdin=stdin, index=index)).removesuffix("\n")


def git_bytes(directory: Path, *arguments: str, stdin: bytes = b"", index: Path | None = None) -> bytes:
    """What git says, as it says it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    extra = {"GIT_INDEX_FILE": str(index)} if index else {}
    process = subprocess.run(
        ["git", *HARDENED, *arguments],
        cwd=directory,
        env=kept | own | extra,
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
    )
    if process.returncode:
        said = process.stderr.decode("utf-8", "replace").strip()
        raise PlanforgeError(f"`git {arguments[0]}` failed in `{directory}`: {said}")
    return process.stdout
