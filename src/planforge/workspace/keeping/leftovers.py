"""
The commits that an agent made by itself, found before its worktree goes.

Where they may be: the worktree's HEAD, its branch, everything that its reflog and
ORIG_HEAD name, other branches and tags that came or moved meanwhile, stashes, and
branches that were there before and are gone. What another kept ref or a ref of the
person's reaches already is nothing new.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from planforge.workspace.archive import ARCHIVE, BASES, ODD, WORK
from planforge.workspace.git import Git, objects
from planforge.workspace.keeping import entries

OURS = "refs/heads/planforge/"
NAMED = re.compile("refs/(?:heads|tags|stash)/?")


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """How things were when a worktree was made."""

    commit: str
    branch: str = ""
    entry: str = ""
    """The name of git's own directory for it."""
    ready: bool = True
    """Whether it was made to the end; before that, nobody has worked in it."""
    at: str = ""
    refs: dict[str, str] | None = None
    """The refs of the person's there were, and what they pointed at; None if that is not known."""
    stashes: tuple[str, ...] = ()


class Tip(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that nothing else keeps, and where it was found."""

    label: str
    commit: str


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to keep of an agent's own commits."""

    tips: tuple[Tip, ...] = ()
    broken: tuple[str, ...] = ()
    """Commits of which something is missing, so that they cannot be kept."""
    known: frozenset[str] = frozenset()
    """Commits that are kept anyway."""


def of_the_person(refs: Mapping[str, str]) -> dict[str, str]:
    """The refs that are worth remembering when a worktree is made: all but ours and those of remotes."""
    passed_over = ("refs/planforge/", "refs/remotes/", f"{WORK}/")
    return {name: found for name, found in refs.items() if not name.startswith(passed_over)}


def stashes(git: Git) -> tuple[str, ...]:
    """The stashes there are; git keeps the older ones only in a reflog."""
    with suppress(OSError):
        # Both what each entry was before and after: entries before it may have been expired.
        found = entries.NAMES.findall((git.git_dir / "logs" / "refs" / "stash").read_bytes())
        return tuple(name.decode() for name in dict.fromkeys(found) if name.strip(b"0"))
    return ()


def find(
    git: Git,
    opened: Opened | None,
    places: Sequence[Path],
    own: Sequence[str],
    refs: Mapping[str, str],
    more: Sequence[Tip] = (),
) -> Found:
    """The commits that only the worktree with the entries `places` and the branches `own` has, and `more`."""
    known = _known(git, opened, refs, own)
    candidates = [*((tip.label, tip.commit) for tip in more), *_candidates(git, opened, places, own, refs)]
    wanted = _commits(git, [(label, commit) for label, commit in candidates if commit not in known])
    if not wanted:
        return Found()
    graph = beyond(git, [commit for _, commit in wanted], known)
    broken: list[str] = []
    if graph is None:
        broken = [commit for _, commit in wanted if beyond(git, [commit], known) is None]
        wanted = [(label, commit) for label, commit in wanted if commit not in broken]
        graph = beyond(git, [commit for _, commit in wanted], known) or {}
    return Found(tips=tuple(_independent(wanted, graph)), broken=tuple(broken), known=frozenset(known))


def packed(git: Git, found: Found) -> bytes:
    """The commits that were found and all that they need beyond what is kept anyway, as one pack."""
    asked = objects.beyond([tip.commit for tip in found.tips], found.known)
    return git.run("pack-objects", "--quiet", "--revs", "--stdout", stdin=asked).stdout


def _known(git: Git, opened: Opened | None, refs: Mapping[str, str], own: Sequence[str]) -> set[str]:
    """What is kept whatever becomes of the worktree."""
    kept = {
        found
        for name, found in refs.items()
        if name.startswith((f"{ARCHIVE}/", f"{BASES}/", "refs/remotes/"))
    }
    if opened is None or opened.refs is None:
        theirs = entries.checked_out(git, [])
        return kept | {refs[name] for name in theirs if name in refs and name not in own}
    return kept | {found for name, found in opened.refs.items() if refs.get(name) == found}


def _candidates(
    git: Git, opened: Opened | None, places: Sequence[Path], own: Sequence[str], refs: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for place in places:
        said = entries.head(place)
        yield "head", refs.get(said.removeprefix("ref: "), said)
    for name in own:
        yield "head", refs[name]
    if opened is not None and opened.refs is not None:
        theirs = entries.checked_out(git, list(places))
        yield from _moved(opened.refs, refs, theirs)
        for commit in (refs.get("refs/stash", ""), *reversed(stashes(git))):
            if commit not in opened.stashes and commit != opened.refs.get("refs/stash"):
                yield "stash", commit
    for place in places:
        for commit in entries.named(place):
            yield "lost", commit


def _moved(before: Mapping[str, str], now: Mapping[str, str], theirs: set[str]) -> Iterator[tuple[str, str]]:
    """Refs that came or moved, and what those that moved or went were before."""
    for name, commit in of_the_person(now).items():
        # What is checked out elsewhere is the person's, and a plan's branch moves by landings.
        landing = name.startswith(OURS) and name in before
        if before.get(name) != commit and name not in theirs and not landing and name != "refs/stash":
            yield f"branch-{_short(name)}", commit
    for name, commit in before.items():
        if now.get(name) != commit and name not in theirs and not name.startswith((OURS, "refs/stash")):
            yield f"was-{_short(name)}", commit


def _short(name: str) -> str:
    return ODD.sub("-", NAMED.sub("", name, count=1)).strip("-")[:60] or "odd"


def _commits(git: Git, wanted: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those that are commits which exist, each once."""
    meant = objects.commits(git, (name for _, name in wanted))
    found: dict[str, str] = {}
    for label, name in wanted:
        if name in meant:
            found.setdefault(meant[name], label)
    return [(label, commit) for commit, label in found.items()]


def beyond(git: Git, commits: Sequence[str], known: set[str]) -> dict[str, list[str]] | None:
    """
    All commits that only `commits` reach, each with its parents.

    None if something of them is missing: a ref to such a commit would stop the person's own `git gc`.
    """
    asked = objects.beyond(commits, known)
    listed = git.run("rev-list", "--parents", "--stdin", stdin=asked, accept=(0, 1, 128))
    if listed.returncode:
        return None
    graph = {words[0]: words[1:] for words in (line.split() for line in listed.stdout.decode().splitlines())}
    return graph if not graph or objects.complete(git, commits, known) else None


def _independent(wanted: Sequence[tuple[str, str]], graph: Mapping[str, list[str]]) -> Iterator[Tip]:
    """Those that no other one before them reaches."""
    covered: set[str] = set()
    for label, commit in wanted:
        if commit in graph and commit not in covered:
            yield Tip(label=label, commit=commit)
            reached = [commit]
            while reached:
                at = reached.pop()
                if at in graph and at not in covered:
                    covered.add(at)
                    reached += graph[at]
