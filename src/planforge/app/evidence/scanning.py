"""
Scanning files for tests that are worth less than they look.

Works in any directory. What is scanned is a tree, some files, or only what changed against a
revision or is staged; for those git is asked. What is no text, too large or out of reach is
counted, not scanned. A large tree is shared among processes.
"""

from __future__ import annotations

import os
import re
import signal
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import msgspec

from planforge import __version__
from planforge.app import settings
from planforge.app.places import SETTINGS
from planforge.errors import InvalidInput, NotFound
from planforge.kernel.directories import walk
from planforge.rules.sarif import Log
from planforge.rules.scanning.counts import Inventory
from planforge.rules.scanning.inspection import opened
from planforge.rules.scanning.issues import RULES, Issue, Waiver, expired, live, named, waive
from planforge.rules.scanning.languages import Role
from planforge.rules.scanning.sarif import log
from planforge.rules.scanning.scanner import examine
from planforge.workspace.git import Git
from planforge.workspace.git.repository import is_repository

HUGE = 1_000_000
"""A larger file, in bytes, is not scanned."""
LOOKED_AT = 2048
"""A file with a NUL in so many first bytes is no text."""
LEFT_OUT = frozenset(
    ("node_modules", "vendor", "dist", "build", "target", "__pycache__", "venv", "coverage", "site-packages")
)
"""Directories of what others wrote or what is made; those with a dot are left out as well, but for a few."""
KEPT = frozenset(
    (
        ".azure-pipelines",
        ".buildkite",
        ".ci",
        ".circleci",
        ".forgejo",
        ".gitea",
        ".github",
        ".gitlab",
        ".woodpecker",
    )
)
"""Directories with a dot that say how a project is checked."""
WORTH_SHARING = 3_000_000
"""From so many bytes on, starting processes costs less than it saves."""
STRICT = re.compile(r"^\s*xfail_strict\s*=\s*(?:true|1)\b", re.MULTILINE | re.IGNORECASE)
EVERYTHING: AbstractSet[int] | None = None

Progress = Callable[[int, int], None]


class Scanned(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan found."""

    schema_version: int = 1
    root: str
    files: int
    """How many files were scanned."""
    tests: Inventory
    """What there is in the test files among them."""
    left_out: dict[str, int]
    """How many were not, by the reason: binary, huge, unreadable, not code."""
    issues: tuple[Issue, ...]

    @property
    def blocking(self) -> int:
        """How many issues fail the scan."""
        return sum(1 for issue in self.issues if issue.blocks)

    @property
    def sarif(self) -> Log:
        """The same as SARIF."""
        return log(self.issues, __version__)


class Target(NamedTuple):
    """A file to scan."""

    name: str
    """What it is called in the report: relative to the project, or absolute."""
    place: str
    """By what its kind is told: relative to the directory that was asked for."""
    file: str
    size: int
    lines: AbstractSet[int] | None = None
    """The lines that count; all if None."""
    content: bytes | None = None
    """What it holds, if not what is on disk."""


class Asked(NamedTuple):
    """What all files are scanned for."""

    waivers: tuple[Waiver, ...]
    rules: frozenset[str]
    tests_only: bool
    strict_xfail: bool


class Outcome(NamedTuple):
    """What became of one file: why it was left out, or what was found."""

    left_out: str = ""
    issues: tuple[Issue, ...] = ()
    tests: Inventory = Inventory()


def scan(
    start: Path,
    places: Sequence[Path] = (),
    *,
    diff: str | None = None,
    staged: bool = False,
    rules: Sequence[str] = (),
    tests_only: bool = False,
    progress: Progress | None = None,
) -> Scanned:
    """Scan `places`, or everything in `start`; or only the lines that changed."""
    if diff is not None and staged:
        raise InvalidInput("`--diff` and `--staged` cannot be had together", "take one of them")
    root = project_of(start)
    wanted = frozenset(_rule(word) for word in rules)
    found = settings.read(root).scan
    today = datetime.now().astimezone().date()
    asked = Asked(live(found.waivers, today), wanted, tests_only, _strict(root))
    targets = [*_targets(root, start, places, diff, staged)]
    outcomes = _all(targets, asked, progress)
    left_out = Counter(outcome.left_out for outcome in outcomes if outcome.left_out)
    issues = [issue for outcome in outcomes for issue in outcome.issues]
    if not wanted or "expired-waiver" in wanted:
        issues.extend(expired(found.waivers, today, SETTINGS))
    return Scanned(
        root=_shown(str(root)),
        files=len(outcomes) - left_out.total(),
        tests=sum((outcome.tests for outcome in outcomes), Inventory()),
        left_out=dict(sorted(left_out.items())),
        issues=tuple(sorted(issues, key=lambda issue: (issue.path, issue.line, issue.column, issue.rule))),
    )


def project_of(start: Path) -> Path:
    """The directory that paths are relative to: the nearest with settings or a repository, else `start`."""
    for directory in (start, *start.parents):
        if (directory / SETTINGS).is_file() or is_repository(directory / ".git"):
            return directory
    return start


def _rule(word: str) -> str:
    found = named(word)
    if found is None:
        known = ", ".join(f"`{name}`" for name in RULES)
        raise InvalidInput(f"there is no rule `{word}`", f"the rules are {known}")
    return found


def _strict(root: Path) -> bool:
    """Whether the settings of pytest make every expected failure strict."""
    for name in ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"):
        try:
            text = (root / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if STRICT.search(text):
            return True
    return False


def _targets(
    root: Path, start: Path, places: Sequence[Path], diff: str | None, staged: bool
) -> Iterator[Target]:
    if diff is None and not staged:
        for place in places or (start,):
            yield from _below(root, Path(os.path.normpath(start / place)))
        return
    git = Git.find(start)
    chosen = [os.path.normpath(start / place) for place in places]
    for target in _staged(git) if staged else _changed(git, diff or "HEAD"):
        path = os.path.normpath(git.top / target.file)
        if not chosen or any(path == place or path.startswith(f"{place}{os.sep}") for place in chosen):
            yield target


def _below(root: Path, place: Path) -> Iterator[Target]:
    """The files of a directory, or one file."""
    try:
        mode = place.stat().st_mode
    except OSError as error:
        raise NotFound(f"cannot read `{place}`: {error.strerror}", "name a file or a directory") from None
    if not stat.S_ISDIR(mode):
        yield _target(root, place.parent, place)
        return
    if place.parent == place and not is_repository(place / ".git"):
        raise InvalidInput(f"`{place}` is the whole file system, not a project", "name a directory in it")
    for directory, names, files in walk(place):
        names[:] = sorted(
            name for name in names if name not in LEFT_OUT and (not name.startswith(".") or name in KEPT)
        )
        for name in sorted(files):
            yield _target(root, place, Path(directory) / name)


def _target(root: Path, base: Path, file: Path) -> Target:
    inside = file.is_relative_to(root)
    name = _shown(file.relative_to(root).as_posix() if inside else str(file))
    place = name if inside else _shown((Path(base.name) / file.relative_to(base)).as_posix())
    try:
        size = file.stat().st_size
    except OSError:
        size = 0
    return Target(name, place, str(file), size)


def _shown(name: str) -> str:
    """A name that can be printed and put into JSON, whatever bytes it has."""
    return os.fsencode(name).decode("utf-8", "replace")


DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules=all")
HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


def _changed(git: Git, revision: str) -> Iterator[Target]:
    """What differs from a revision in the work tree, files that git does not know yet included."""
    commit = git.commit_of(revision)
    for name, lines in _lines(git, commit):
        yield _in_repository(git, name, lines)
    new = git.run("ls-files", "--others", "--exclude-standard", "-z", work_tree=git.top).stdout
    for name in _names(new):
        yield _in_repository(git, name, EVERYTHING)


def _staged(git: Git) -> Iterator[Target]:
    """What differs from HEAD in the index, as it is there."""
    changed = dict(_lines(git, "--cached"))
    listed = git.run("ls-files", "--stage", "-z", work_tree=git.top).stdout
    for entry in listed.split(b"\0"):
        about, _, path = entry.partition(b"\t")
        name = os.fsdecode(path)
        if name in changed and about.startswith(b"100"):
            content = git.run("cat-file", "blob", about.split()[1].decode()).stdout
            yield _in_repository(git, name, changed[name])._replace(content=content, size=len(content))


def _lines(git: Git, against: str) -> Iterator[tuple[str, AbstractSet[int] | None]]:
    """The changed files, each with the lines of the later state that are new or beside something deleted."""
    for kind in ("AM", "T"):
        words = ("diff", *DIFF, f"--diff-filter={kind}", against)
        names = _names(git.run(*words, "--name-only", "-z", work_tree=git.top).stdout)
        if kind == "T":
            yield from ((name, EVERYTHING) for name in names)
            continue
        patch = git.run(*words, "--unified=0", work_tree=git.top).stdout
        # The sections come in the order of the names, which cannot be told from the patch for all names.
        sections = re.split(rb"^diff --git ", patch, flags=re.MULTILINE)[1:]
        for name, section in zip(names, sections, strict=True):
            yield name, _touched(section)


def _touched(section: bytes) -> frozenset[int]:
    found: set[int] = set()
    for hunk in HUNK.finditer(section):
        first, count = int(hunk[1]), int(hunk[2]) if hunk[2] else 1
        found.update(range(first, first + count) if count else (first, first + 1))
    return frozenset(found)


def _names(listed: bytes) -> list[str]:
    return [os.fsdecode(name) for name in listed.split(b"\0") if name]


def _in_repository(git: Git, name: str, lines: AbstractSet[int] | None) -> Target:
    return _target(git.top, git.top, git.top / name)._replace(lines=lines)


def _all(targets: list[Target], asked: Asked, progress: Progress | None) -> list[Outcome]:
    """What became of each file; shared among processes if that pays off."""
    workers = _processors()
    if workers > 1 and sum(min(target.size, HUGE) for target in targets) > WORTH_SHARING:
        return _shared(targets, asked, progress, workers)
    return _counted(map(partial(_one, asked=asked), targets), len(targets), progress)


def _processors() -> int:
    available = getattr(os, "sched_getaffinity", None)
    return len(available(0)) if available else os.cpu_count() or 1


def _counted(outcomes: Iterator[Outcome], total: int, progress: Progress | None) -> list[Outcome]:
    found = []
    for outcome in outcomes:
        found.append(outcome)
        if progress:
            progress(len(found), total)
    return found


def _shared(targets: list[Target], asked: Asked, progress: Progress | None, workers: int) -> list[Outcome]:
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_ignore_interrupts)
    with pool:
        try:
            outcomes = pool.map(partial(_one, asked=asked), targets, chunksize=8)
            return _counted(outcomes, len(targets), progress)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _ignore_interrupts() -> None:
    """An interrupt is for the process that shares out the work; it ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one(target: Target, asked: Asked) -> Outcome:
    """Scan one file."""
    content = _content(target)
    if isinstance(content, str):
        return Outcome(left_out=content)
    source = opened(target.place, _decoded(content))
    if source is None:
        return Outcome(left_out="not code")
    if asked.tests_only and source.role not in (Role.TEST, Role.SUPPORT):
        return Outcome(left_out="no test")
    found = examine(source, strict_xfail=asked.strict_xfail)
    return Outcome(issues=_kept(found.issues, target, asked), tests=found.counts)


def _content(target: Target) -> bytes | str:
    """What a file holds, or why it is not looked at."""
    if target.size > HUGE:
        return "huge"
    content = target.content
    if content is None:
        try:
            if not stat.S_ISREG(os.lstat(target.file).st_mode):
                return "not code"  # a link is scanned where it leads to, if that is in the tree
            content = Path(target.file).read_bytes()
        except OSError:
            return "unreadable"
    if b"\0" in content[:LOOKED_AT]:
        return "binary"
    return content


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _kept(found: Sequence[Issue], target: Target, asked: Asked) -> tuple[Issue, ...]:
    return tuple(
        waive(msgspec.structs.replace(issue, path=target.name), asked.waivers)
        for issue in found
        if (not asked.rules or issue.rule in asked.rules)
        and (target.lines is None or issue.touches(target.lines))
    )
