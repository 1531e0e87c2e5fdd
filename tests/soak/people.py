"""What people do to the repository meanwhile: their own work, and cleaning up as the manuals say."""

from __future__ import annotations

from repositories import commit, git
from soak.scene import Scene


class People(Scene):
    """A scene with people in it."""

    _put_right = False
    """Whether all that crashes left behind was put right, so that git must work as ever."""

    def _somebody(self, *arguments: str) -> None:
        """A command of the person's; before a killed `git worktree add` was made good, it may fail."""
        try:
            git(self._place, *arguments)
        except AssertionError as error:
            if self._put_right:
                raise
            self._trace(f"  {error}")

    def _hostile(self) -> None:
        acts = [
            self._gc,
            self._prunes,
            self._expires,
            self._deletes_branches,
            self._amends_main,
            self._packs_refs,
        ]
        for act in self._random.sample(acts, self._random.choice((1, 1, 2, 3))):
            self._trace(f"somebody: {act.__name__.strip('_')}")
            act()

    def _gc(self) -> None:
        if self._random.random() < 0.3:
            self._somebody("gc", "--quiet", "--prune=now")
        else:  # what of it matters most, in a tenth of the time
            self._somebody("prune", "--expire=now")

    def _prunes(self) -> None:
        self._somebody("worktree", "prune", "--expire=now")

    def _expires(self) -> None:
        self._somebody("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")

    def _packs_refs(self) -> None:
        self._somebody("pack-refs", "--all")

    def _deletes_branches(self) -> None:
        listed = git(
            self._place, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags", "refs/stash"
        )
        for ref in listed.splitlines():
            if ref not in ("refs/heads/main", "refs/heads/feature") and self._random.random() < 0.6:
                git(self._place, "update-ref", "-d", ref)

    def _amends_main(self) -> None:
        commit(self._place, {"person.txt": self._text()}, "the person's")
        git(self._place, "commit", "--quiet", "--amend", "--allow-empty", f"--message={self._text()}.")
