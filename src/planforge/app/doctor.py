"""Whether this machine and this repository have what Planforge needs, each with its evidence and its fix."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from planforge.errors import PlanforgeError

FREE_BYTES = 500 * 1024 * 1024


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    id: str
    status: str
    """ok, warn or fail"""
    evidence: str
    fix: str = ""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """All that was looked at."""

    schema_version: int = 1
    healthy: bool
    findings: tuple[Finding, ...]


def diagnose(start: Path) -> Diagnosis:
    """Look at everything; a look that goes wrong is a finding, not the end."""
    looks: list[tuple[str, Callable[[Path], Iterator[Finding]]]] = [
        ("python", _python),
        ("sqlite", _sqlite),
        ("git", _git),
        ("repository", _repository),
        ("ledger", _ledger),
        ("settings", _settings),
        ("agents", _agents),
        ("disk", _disk),
    ]
    findings: list[Finding] = []
    for name, look in looks:
        try:
            findings.extend(look(start))
        except PlanforgeError as error:
            findings.append(Finding(id=name, status="fail", evidence=error.message, fix=error.hint or ""))
    return Diagnosis(healthy=all(item.status != "fail" for item in findings), findings=tuple(findings))


def _python(start: Path) -> Iterator[Finding]:
    del start
    yield Finding(id="python", status="ok", evidence=sys.version.split()[0])


def _sqlite(start: Path) -> Iterator[Finding]:
    del start
    import apsw

    found = apsw.sqlite_lib_version()
    safe = tuple(int(part) for part in found.split(".")) >= (3, 51, 3)
    fix = "" if safe else "pip install --upgrade apsw"
    evidence = f"{found}{'' if safe else ' can corrupt a shared ledger'}"
    yield Finding(id="sqlite", status="ok" if safe else "fail", evidence=evidence, fix=fix)


def _git(start: Path) -> Iterator[Finding]:
    del start
    from planforge.workspace.git import MINIMUM, version

    found = version()
    enough = found >= MINIMUM
    evidence = ".".join(str(part) for part in found)
    needed = ".".join(str(part) for part in MINIMUM)
    fix = "" if enough else f"install git {needed} or later"
    yield Finding(id="git", status="ok" if enough else "fail", evidence=evidence, fix=fix)


def _repository(start: Path) -> Iterator[Finding]:
    from planforge.workspace.git import FALLBACK_EMAIL, Git

    git = Git.find(start)
    yield Finding(id="repository", status="ok", evidence=str(git.top))
    if not git.has_commits():
        yield Finding(id="commits", status="fail", evidence="no commit to start from", fix="git commit")
    name, email = git.identity()
    known = email != FALLBACK_EMAIL
    yield Finding(
        id="identity",
        status="ok" if known else "warn",
        evidence=f"{name} <{email}>",
        fix="" if known else "git config user.name NAME; git config user.email ADDRESS",
    )


def _ledger(start: Path) -> Iterator[Finding]:
    from planforge.app.project import Project

    project = Project.find(start)
    yield Finding(id="ledger", status="ok", evidence=f"{project.ledger.head()} events")


def _settings(start: Path) -> Iterator[Finding]:
    from planforge.app.project import Project

    check = Project.find(start).settings.check
    if check is None:
        evidence, fix = "no check is configured, so nothing can land", "set `[check]` in planforge.toml"
        yield Finding(id="check", status="warn", evidence=evidence, fix=fix)
        return
    program = shutil.which(check.command[0])
    yield Finding(
        id="check",
        status="ok" if program else "fail",
        evidence=" ".join(check.command) if program else f"`{check.command[0]}` is not on PATH",
        fix="" if program else "install it, or change `[check]` in planforge.toml",
    )


def _agents(start: Path) -> Iterator[Finding]:
    del start
    from planforge.agents.profiles import KNOWN, REHEARSAL

    found = 0
    for name, profile in KNOWN.items():
        program = shutil.which(profile.command[0])
        found += bool(program) and name != REHEARSAL
        if program:
            yield Finding(id=f"agent {name}", status="ok", evidence=program)
    if not found:
        wanted = ", ".join(p.command[0] for name, p in KNOWN.items() if name != REHEARSAL)
        yield Finding(
            id="agents", status="warn", evidence=f"none of {wanted} on PATH", fix=KNOWN["claude"].install
        )


def _disk(start: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(start).free
    enough = free >= FREE_BYTES
    evidence = f"{free // (1024 * 1024)} MiB free"
    yield Finding(
        id="disk", status="ok" if enough else "warn", evidence=evidence, fix="" if enough else "free some"
    )
