"""
Keeps everything of a worktree that is about to go: its files, and the commits that only it has.

What is kept is looked at once more before anybody removes anything: all objects must
be there, because somebody may have pruned the repository meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from planforge.errors import GitFailed
from planforge.kernel.wording import counted
from planforge.workspace.archive import Archive, slug
from planforge.workspace.archive.quarantine import Quarantine
from planforge.workspace.git import Git, objects
from planforge.workspace.keeping import contents, directories, leftovers, nested
from planforge.workspace.keeping.contents import Contents, Finder
from planforge.workspace.keeping.leftovers import Found, Opened, Tip

TRIES = 5
UNFIT = "git cannot take it in"
SECRET = "it holds a secret"
SECRET_COMMITS = "commits of the agent's that hold a file which is kept out of git"


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """A worktree that is about to go."""

    name: str
    directories: tuple[Path, ...]
    """Where its files are: in its place, or where somebody moved it to."""
    places: tuple[Path, ...]
    """Git's entries of it."""
    own: tuple[str, ...]
    """The branches that were made for it."""
    opened: Opened | None
    refs: Mapping[str, str]
    """All refs there are."""


class Keeping:
    """Where the work of one run is kept."""

    def __init__(self, git: Git, archive: Archive, quarantine: Quarantine, secret: Finder | None) -> None:
        self._git = git
        self._archive = archive
        self._quarantine = quarantine
        self._secret = secret

    def keep(self, leaving: Leaving) -> list[str]:
        """Keep everything; what the archive could not take, and what became of it instead."""
        said: list[str] = []
        taken = [self._take(leaving, directory, said) for directory in leaving.directories]
        inner: list[Tip] = []
        for directory, content in zip(leaving.directories, taken, strict=True):
            found = nested.take_over(self._git, directory, content, leaving.places)
            inner += found.tips
            said += found.problems
        withheld = [path for content in taken for path in content.withheld]
        self._commits(leaving, [*self._staged(leaving, taken), *inner], withheld, said)
        for directory, content in zip(leaving.directories, taken, strict=True):
            self._files(leaving, directory, content, said)
        return said

    def _take(self, leaving: Leaving, directory: Path, said: list[str]) -> Contents:
        directories.open_up(directory)
        base = leaving.opened.commit if leaving.opened else None
        taken = contents.take(self._git, directory, base, strict=False, secret=self._secret)
        self._outside_git(leaving.name, directory, taken, said)
        return taken

    def _files(self, leaving: Leaving, directory: Path, taken: Contents, said: list[str]) -> None:
        """Keep what is in a directory, unless a commit that is kept already holds it."""
        parents = [leaving.opened.commit] if leaving.opened else []
        for _ in range(TRIES):
            if self._is_work(leaving.opened, taken.tree):
                commit = self._commit(taken.tree, parents, self._message(leaving.name, "left in", said))
                self._archive.keep([(f"{slug(leaving.name)}.left", commit)])
            if objects.complete(self._git, [taken.tree], parents):
                return
            taken = self._take(leaving, directory, said)
        raise _vanishing("objects", leaving.name)

    def _outside_git(self, name: str, directory: Path, taken: Contents, said: list[str]) -> None:
        for paths, put, why in (
            (taken.withheld, self._quarantine.copy, SECRET),
            (taken.left_out, self._quarantine.move, UNFIT),
        ):
            place = put(name, directory, paths, why) if paths else None
            for path in paths if place else ():
                shown = path.decode("utf-8", "backslashreplace")
                line = f"`{shown}` is kept in `{place}`: {why}"
                if line not in said:
                    said.append(line)

    def _is_work(self, opened: Opened | None, tree: str) -> bool:
        """Whether a tree is something that nobody keeps yet."""
        if opened is None:
            if not self._git.run("ls-tree", tree).stdout:
                return False
        else:
            started = self._git.tree_of(opened.commit)
            if tree == started or (not opened.ready and self._only_lacks(started, tree)):
                return False
        return tree not in self._archive.trees()

    def _only_lacks(self, whole: str, part: str) -> bool:
        """Whether a checkout just was not made to its end, and has nothing that its commit has not."""
        listing = ("diff-tree", "-r", "--no-renames", "--diff-filter=d", "--name-only", "-z")
        return not self._git.run(*listing, whole, part).stdout

    def _staged(self, leaving: Leaving, taken: Sequence[Contents]) -> list[Tip]:
        """What an agent has put into its index and has changed since, as commits."""
        if leaving.opened is None or not leaving.opened.ready:
            return []
        base = leaving.opened.commit
        known = {content.tree for content in taken}
        found = []
        for place in leaving.places:
            tree = contents.staged(self._git, place / "index")
            if (
                tree
                and tree not in known
                and tree != self._git.tree_of(base)
                and not self._is_head(place, tree)
            ):
                commit = self._commit(tree, [base], self._message(leaving.name, "staged in", []))
                found.append(Tip(label="staged", commit=commit))
        return found

    def _is_head(self, place: Path, tree: str) -> bool:
        head = self._git.ref(f"worktrees/{place.name}/HEAD^{{tree}}")
        return tree == head or tree in self._archive.trees()

    def _commits(
        self, leaving: Leaving, more: Sequence[Tip], withheld: Sequence[bytes], said: list[str]
    ) -> None:
        """Keep the commits that only the worktree has."""
        found = leftovers.find(self._git, leaving.opened, leaving.places, leaving.own, leaving.refs, more)
        said += [f"commit `{commit[:12]}` is not whole and cannot be kept" for commit in found.broken]
        if not found.tips:
            return
        if withheld and self._touch(found, withheld):
            place = self._quarantine.pack(
                leaving.name,
                leftovers.packed(self._git, found),
                [tip.commit for tip in found.tips],
                SECRET_COMMITS,
            )
            said.append(f"the agent's own commits are kept in `{place}`: {SECRET_COMMITS}")
            return
        stem = slug(leaving.name)
        self._archive.keep((f"{stem}.{tip.label}", tip.commit) for tip in self._tied(leaving.name, found))
        if not objects.complete(self._git, [tip.commit for tip in found.tips], found.known):
            raise _vanishing("commits", leaving.name)

    def _tied(self, name: str, found: Found) -> list[Tip]:
        """Commits that nobody would ask for by name, such as those before an amend, under one name."""
        lost = [tip.commit for tip in found.tips if tip.label == "lost"]
        if len(lost) < 2:
            return list(found.tips)
        message = self._message(name, f"{counted(len(lost), 'commit')} left behind in", [])
        tie = self._commit(self._git.tree_of(lost[0]), lost, message)
        return [*(tip for tip in found.tips if tip.label != "lost"), Tip(label="lost", commit=tie)]

    def _touch(self, found: Found, paths: Sequence[bytes]) -> bool:
        literal = b"".join(b":(top,literal)" + path + b"\n" for path in paths)
        asked = objects.beyond([tip.commit for tip in found.tips], found.known) + b"--\n" + literal
        return bool(self._git.run("rev-list", "--max-count=1", "--stdin", stdin=asked).stdout)

    def _message(self, name: str, what: str, said: Sequence[str]) -> str:
        body = "".join(f"{line}\n" for line in said)
        return f"{what} worktree {name} of {self._archive.run}\n" + (f"\n{body}" if body else "")

    def _commit(self, tree: str, parents: Sequence[str], message: str) -> str:
        return self._git.commit_tree(tree, parents, message, datetime.now(UTC).isoformat())


def _vanishing(what: str, worktree: str) -> GitFailed:
    return GitFailed(f"{what} of worktree `{worktree}` vanish while they are kept; is `git gc` running?")
