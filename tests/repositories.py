"""Real git repositories for tests, made with the git command and nothing of Planforge's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

NAME = "Ada Lovelace"
EMAIL = "ada@example.org"
DATE = "2026-01-02T03:04:05+00:00"
FILES: Mapping[str, str | bytes] = {"README.md": "# A project\n", "app.py": "print('hello')\n"}

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_AUTHOR_DATE": DATE,
    "GIT_COMMITTER_DATE": DATE,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    # A commit starts another git to see whether there is anything to tidy up.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "maintenance.auto",
    "GIT_CONFIG_VALUE_0": "false",
    "LC_ALL": "C",
}


def git(directory: Path, *arguments: str, stdin: bytes = b"") -> str:
    """What git says in `directory`, without its last line break; raises if git fails."""
    process = subprocess.run(
        ["git", *arguments], cwd=directory, env=ENVIRONMENT, input=stdin, capture_output=True, check=False
    )
    assert process.returncode == 0, process.stderr.decode("utf-8", "replace")
    return os.fsdecode(process.stdout).removesuffix("\n")


def empty_repository(directory: Path, *, object_format: str = "sha1") -> Path:
    """A repository in `directory` on the branch `main`, with an identity and without a commit."""
    directory.mkdir(parents=True, exist_ok=True)
    git(directory, "init", "--quiet", "--initial-branch=main", f"--object-format={object_format}")
    with (directory / ".git" / "config").open("a") as config:
        config.write(f"[user]\n\tname = {NAME}\n\temail = {EMAIL}\n")
    return directory


def repository(
    directory: Path, files: Mapping[str, str | bytes] = FILES, *, object_format: str = "sha1"
) -> Path:
    """A repository in `directory` whose first commit holds `files`."""
    empty_repository(directory, object_format=object_format)
    _commit(directory, files, "first")
    return directory


def write(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Write `files` into `directory`, making the directories they need."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def commit(directory: Path, files: Mapping[str, str | bytes], message: str = "a change") -> str:
    """Write `files`, commit everything as the person would, and return the commit."""
    _commit(directory, files, message)
    return git(directory, "rev-parse", "HEAD")


def _commit(directory: Path, files: Mapping[str, str | bytes], message: str) -> None:
    write(directory, files)
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--allow-empty", f"--message={message}")


def trap(directory: Path) -> tuple[Path, Path]:
    """A program and the file that it makes when anybody runs it."""
    program, mark = directory / "trap", directory / "sprung"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\ncat\n")
    program.chmod(0o755)
    return program, mark


def fingerprint(directory: Path) -> dict[str, str | bytes]:
    """Everything that must stay as it is in a person's checkout: files, index, HEAD, settings, branches."""
    own = directory / ".git"
    found: dict[str, str | bytes] = {
        str(path.relative_to(directory)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if (path.is_file() or path.is_symlink())
        and not path.is_relative_to(own)
        and not path.is_relative_to(directory / ".planforge")
    }
    for name in ("HEAD", "index", "config"):
        path = own / name
        found[f".git/{name}"] = path.read_bytes() if path.exists() else b""
    refs = git(directory, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    others = [line for line in refs if not line.startswith(("refs/planforge/", "refs/heads/planforge/"))]
    return found | {"refs": "\n".join(others)}
