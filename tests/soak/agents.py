"""What agents do in their worktrees, with files and with git, gently and roughly."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from repositories import ENVIRONMENT, commit, git, repository, write
from soak.hashing import tree_of
from soak.scene import NESTED, RUN, Scene

PATHS = ("app.py", "docs/guide.md", "new.py", "a b/ü.txt", "line\nbreak", "bad\udcff", "deep/er/x", "-dash")
NOISE = ("debug.log", "build/out", "docs/trace.log")


class Agents(Scene):
    """A scene with agents in it."""

    def _agent(self, name: str) -> None:
        edits = (
            *(self._write, self._change, self._remove, self._rename),
            *(self._chmod, self._link, self._noise, self._nest),
        )
        gits = (
            *(self._commits_itself, self._amends, self._resets, self._branches, self._detaches),
            *(self._stashes, self._stages, self._drops_its_branch, self._tags),
        )
        rough = (
            *(self._deletes_it, self._moves_it, self._moves_it_by_git, self._moves_it_beside),
            *(self._breaks_dot_git, self._replaces_dot_git),
        )
        kind = self._random.random()
        chosen = edits if kind < 0.55 else gits if kind < 0.93 else rough
        act = self._random.choice(chosen)
        for _ in range(2):
            self._random.choice(edits)(name)
        self._trace(f"agent in {name}: {act.__name__.strip('_')}")
        act(name)

    def _some(self, name: str) -> Path:
        return self._path(name) / self._random.choice(PATHS)

    def _write(self, name: str) -> None:
        with suppress(OSError):
            path = self._some(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._text())

    def _change(self, name: str) -> None:
        with suppress(OSError), (self._path(name) / "app.py").open("a") as file:
            file.write(self._text())

    def _remove(self, name: str) -> None:
        path = self._some(name)
        with suppress(OSError):
            if self._random.random() < 0.3 and path.parent != self._path(name):
                shutil.rmtree(path.parent)
            else:
                path.unlink()

    def _rename(self, name: str) -> None:
        with suppress(OSError):
            self._some(name).rename(self._path(name) / "renamed")

    def _chmod(self, name: str) -> None:
        with suppress(OSError):
            path = self._some(name)
            if not path.is_symlink():
                path.chmod(self._random.choice((0o755, 0o644, 0o400)))

    def _link(self, name: str) -> None:
        with suppress(OSError):
            target = self._random.choice(("app.py", "/etc/passwd", "nowhere", "docs"))
            (self._path(name) / self._random.choice(("link", "docs/link"))).symlink_to(target)

    def _noise(self, name: str) -> None:
        with suppress(OSError):
            write(self._path(name), {self._random.choice(NOISE): self._text()})

    def _nest(self, name: str) -> None:
        inner = self._path(name) / self._random.choice(NESTED)
        with suppress(OSError):
            if not inner.exists():
                shutil.copytree(self._origin.with_name("inner"), inner, symlinks=True)
                commit(inner, {"lib.rs": self._text()}, "mine")
                if self._random.random() < 0.3:
                    git(inner, "update-ref", "-d", "HEAD")
            write(inner, {"more.rs": self._text()})

    def _try(self, name: str, *arguments: str) -> bool:
        """A git command of an agent's, which may well fail."""
        command = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *arguments]
        path = self._path(name)
        # Without a `.git` of its own, the person's would be found further up.
        environment = ENVIRONMENT | {"GIT_CEILING_DIRECTORIES": str(path.parent)}
        process = subprocess.run(command, cwd=path, env=environment, capture_output=True, check=False)
        return not process.returncode

    def _note_made(self, name: str, revision: str = "HEAD") -> None:
        # An agent that replaced `.git` commits into a repository of its own.
        if (self._path(name) / ".git").is_file():
            self._attempts[name].made.add(git(self._path(name), "rev-parse", f"{revision}^{{commit}}"))

    def _commits_itself(self, name: str, *options: str) -> None:
        message = f"--message={self._text()}."
        if self._try(name, "add", "--all") and self._try(
            name, "commit", "--quiet", "--allow-empty", message, *options
        ):
            self._note_made(name)

    def _amends(self, name: str) -> None:
        self._commits_itself(name)
        self._write(name)
        self._commits_itself(name, "--amend")

    def _resets(self, name: str) -> None:
        self._commits_itself(name)
        self._try(name, "reset", "--quiet", self._random.choice(("--hard", "--soft", "--mixed")), "HEAD~1")

    def _branches(self, name: str) -> None:
        self._count += 1
        self._try(name, "checkout", "--quiet", "-b", f"agent-{self._count}")
        self._commits_itself(name)

    def _detaches(self, name: str) -> None:
        self._try(name, "checkout", "--quiet", "--detach", self._random.choice(("HEAD", "feature", "HEAD~1")))

    def _stashes(self, name: str) -> None:
        before = git(self._place, "for-each-ref", "--format=%(objectname)", "refs/stash")
        self._try(name, "stash", "--quiet", "--include-untracked")
        if git(self._place, "for-each-ref", "--format=%(objectname)", "refs/stash") != before:
            self._note_made(name, "refs/stash")

    def _stages(self, name: str) -> None:
        self._try(name, "add", "--all")
        self._write(name)

    def _drops_its_branch(self, name: str) -> None:
        self._try(name, "checkout", "--quiet", "--detach")
        self._try(name, "update-ref", "-d", f"refs/heads/planforge/work/{RUN}/{name}")

    def _tags(self, name: str) -> None:
        self._count += 1
        self._commits_itself(name)
        self._try(name, "tag", f"tag-{self._count}")

    def _deletes_it(self, name: str) -> None:
        shutil.rmtree(self._path(name))
        self._attempts[name].there = False

    def _moves_it(self, name: str) -> None:
        self._count += 1
        aside = self._directory / f"aside-{self._count}"
        self._path(name).rename(aside)
        self._aside[aside] = tree_of(aside, self._attempts[name].tracked)
        self._attempts[name].there = False

    def _moves_it_by_git(self, name: str) -> None:
        self._count += 1
        aside = self._directory / f"aside-{self._count}"
        if not (self._path(name) / ".git").is_file():
            return
        path = self._path(name)
        process = subprocess.run(
            ["git", "worktree", "move", str(path), str(aside)],
            cwd=self._place, env=ENVIRONMENT, capture_output=True, check=False,
        )  # fmt: skip
        if not process.returncode:
            tree = tree_of(aside, self._attempts[name].tracked)
            self._aside[aside] = tree
            self._trees.setdefault(tree, f"{name} moved to {aside.name}")
            self._attempts[name].there = False

    def _moves_it_beside(self, name: str) -> None:
        self._count += 1
        self._path(name).rename(self._path(f"beside-{self._count}"))
        tree = tree_of(self._path(f"beside-{self._count}"))
        self._attempts[name].there = False
        self._trees.setdefault(tree, f"{name} moved beside")

    def _breaks_dot_git(self, name: str) -> None:
        with suppress(OSError):
            (self._path(name) / ".git").unlink()

    def _replaces_dot_git(self, name: str) -> None:
        with suppress(OSError, AssertionError):  # git adds no repository inside that has no commit
            (self._path(name) / ".git").unlink()
            repository(self._path(name), {"theirs.py": self._text()})
