"""
Pushes one branch to another repository, as the person does and never by force.

What is there already is looked at first. The push itself is the other side's compare-and-swap: it takes a
branch that is new or moves forward, and nothing else. No tags, no submodules, no hooks go with it.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from planforge.errors import AgentUnauthenticated, GitFailed, InvalidInput, NotFound, RefusedByGate
from planforge.workspace.git import Git
from planforge.workspace.git.objects import NAME
from planforge.workspace.landing.merges import is_ancestor

HEADS = "refs/heads/"
LOOKING, PUSHING = 60.0, 300.0
"""How many seconds each may take."""

SCP = re.compile(r"(?P<host>(?:[\w.-]+@)?[\w.-]+):(?!/)(?P<path>.+)")
"""The short way to write an address that is reached by ssh."""
LOGIN = re.compile(r"(?<=://)[^/@\s]*@")
KEPT_OUT = re.compile(
    "could not read (?:Username|Password)|Authentication failed|Permission denied|terminal prompts disabled"
    "|Invalid username|Host key verification failed|returned error: 40[13]",
    re.IGNORECASE,
)
REFUSED = re.compile(r"rejected|non-fast-forward|fetch first|stale info", re.IGNORECASE)

EXACTLY = (
    "-c", "push.gpgSign=false",
    "-c", "push.recurseSubmodules=no",
    "-c", "push.pushOption=",
)  # fmt: skip
"""What would have something else go along."""


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """Another repository."""

    name: str
    url: str

    @property
    def shown(self) -> str:
        """Its address without a login."""
        return LOGIN.sub("", self.url)


def remote(git: Git, name: str) -> Remote:
    """The repository that the person calls `name`."""
    known = dict(git.settings().remotes)
    if name not in known:
        names = ", ".join(f"`{each}`" for each in sorted(known))
        raise NotFound(
            f"there is no remote `{name}`" + (f"; there are {names}" if names else ""),
            f"run `git remote add {name} URL`" if not names else "say which: `--remote NAME`",
        )
    return Remote(name=name, url=_address(git, known[name]))


def tips(git: Git, remote: Remote, *branches: str) -> dict[str, str]:
    """Where these branches are there; those that are not, are not named."""
    wanted = [f"{HEADS}{branch}" for branch in branches]
    words = ("ls-remote", "--refs", "--end-of-options", remote.url, *wanted)
    output = _spoken(git, remote, LOOKING, *words)
    found = {}
    for line in output.decode("utf-8", "replace").splitlines():
        commit, _, ref = line.partition("\t")
        if ref in wanted and NAME.fullmatch(commit):
            found[ref.removeprefix(HEADS)] = commit
    return found


def require_forward(git: Git, remote: Remote, branch: str, commit: str, there: str | None) -> None:
    """Refuse a branch that has anything there which `commit` has not."""
    if there is None or there == commit:
        return
    if git.ref(f"{there}^{{commit}}") is None or not is_ancestor(git, there, commit):
        raise RefusedByGate(
            f"`{branch}` of `{remote.name}` is at `{there[:12]}`, which has other commits",
            f"look at it there; Planforge never pushes by force: `git fetch {remote.name} {branch}`",
        )


def push(git: Git, remote: Remote, commit: str, branch: str) -> None:
    """Have the branch be at `commit` there, if that is a step forward or it is new."""
    if not NAME.fullmatch(commit):
        raise GitFailed(f"`{commit}` is not the name of a commit")
    words = (
        *EXACTLY,
        *("push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no", "--no-force"),
        *("--end-of-options", remote.url, f"{commit}:{HEADS}{branch}"),
    )
    _spoken(git, remote, PUSHING, *words)


def _spoken(git: Git, remote: Remote, seconds: float, *words: str) -> bytes:
    process = git.abroad(*words, seconds=seconds, accept=tuple(range(256)))
    if process.returncode == 0:
        return process.stdout
    said = process.stderr.decode("utf-8", "replace") + process.stdout.decode("utf-8", "replace")
    lines = [line.strip() for line in LOGIN.sub("", said).splitlines() if line.strip()]
    last = next((line for line in lines if line.startswith(("fatal:", "error:", "!"))), (lines or [""])[-1])
    line = "".join(filter(str.isprintable, last))[:300]
    if REFUSED.search(said):
        raise RefusedByGate(
            f"`{remote.name}` did not take it: {line}", "look at what is there, and at its rules"
        )
    if KEPT_OUT.search(said):
        raise AgentUnauthenticated(
            f"`{remote.name}` ({remote.shown}) wants you to log in: {line}",
            f"make sure that `git ls-remote {remote.name}` works without asking anything",
        )
    raise GitFailed(f"cannot reach `{remote.name}` ({remote.shown}): {line}")


def _address(git: Git, url: str) -> str:
    """An address that means the same from anywhere, in a way of speaking that is allowed."""
    if "://" in url:
        scheme = url.partition("://")[0].lower()
        if scheme in ("https", "ssh", "file"):
            return url
        raise InvalidInput(f"`{scheme}://` is not spoken here", "use an address with `https://` or `ssh://`")
    if "::" in url.partition("/")[0]:
        raise InvalidInput(f"`{url.partition('::')[0]}::` would run a program", "use `https://` or `ssh://`")
    if short := SCP.fullmatch(url):
        return f"ssh://{short['host']}/{short['path']}" if short["path"].startswith("~") else url
    path = Path(url).expanduser()
    return str(path if path.is_absolute() else (git.top / path).resolve())
