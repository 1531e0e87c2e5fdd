"""The project: its repository, its ledger, its settings, its checks, its agents."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from planforge.actions import Action, Hint
from planforge.agents.profiles import REHEARSAL
from planforge.agents.programs import login
from planforge.agents.roster import every, nobody
from planforge.app.places import STATE
from planforge.app.project import Project
from planforge.app.upkeep.doctor import tools
from planforge.app.upkeep.doctor.findings import FAIL, FIX, OK, UNKNOWN, WARN, Finding
from planforge.errors import PlanforgeError
from planforge.kernel.wording import counted
from planforge.workspace.detection import detect
from planforge.workspace.git import Git
from planforge.workspace.git import repository as unusual
from planforge.workspace.preparation.untracked import INCLUDE, included
from planforge.workspace.sandbox import strongest

if TYPE_CHECKING:
    from planforge.agents.profiles import Profile
    from planforge.workspace.checks import Check

SKEW_SECONDS = 5.0
"""The most seconds that clocks may differ without a warning."""

SHARED_DISKS = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "fuse.sshfs", "glusterfs")


def here(start: Path) -> Project | None:
    """The project, or None if it cannot be opened; the check of the ledger reports that."""
    try:
        return Project.find(start)
    except PlanforgeError:
        return None


def settled(start: Path) -> Project | None:
    """The same, or None if its settings are invalid; the check of the settings reports that."""
    project = here(start)
    try:
        if project is not None:
            _ = project.settings
    except PlanforgeError:
        return None
    return project


def repository(start: Path) -> Iterator[Finding]:
    """Its path, your identity, and everything that Planforge handles specially."""
    git = Git.find(start)
    yield Finding(id="repository", status=OK, evidence=str(git.top))
    notes = unusual.survey(git)
    for note in notes:
        yield Finding(id=note.id, status=note.status, evidence=note.evidence, fix=note.fix)
    if not any(note.id in ("identity", "repository") for note in notes):
        name, email = git.identity()
        yield Finding(id="identity", status=OK, evidence=f"{name} <{email}>")


def ledger(start: Path) -> Iterator[Finding]:
    """The ledger, and whether the clock agrees with it."""
    project = Project.find(start)
    yield Finding(id="ledger", status=OK, evidence=counted(project.ledger.head(), "event"))
    yield from _clock(project)
    if kind := _shared_disk(project.state):
        yield Finding(
            id="ledger's disk",
            status=WARN,
            evidence=f"`{project.state}` is on {kind}, where SQLite cannot be sure of its locks",
            fix="work in a clone on a disk of this machine",
        )


def _clock(project: Project) -> Iterator[Finding]:
    last = project.ledger.last(1)
    ahead = (datetime.fromisoformat(last[0].at) - datetime.now(UTC)).total_seconds() if last else 0.0
    if ahead > SKEW_SECONDS:
        evidence = (
            f"the clock is {ahead:.0f} s behind the newest event; no lease expires until it has caught up"
        )
        yield Finding(id="clock", status=FAIL, evidence=evidence, fix="timedatectl set-ntp true")
        return
    probe = project.state / "locks" / "clock.probe"
    try:
        probe.parent.mkdir(exist_ok=True)
        probe.write_bytes(b"")
        apart = probe.stat().st_mtime - time.time()
        probe.unlink()
    except OSError as error:
        evidence = f"cannot write in `{project.state}`: {error.strerror}"
        yield Finding(id="clock", status=FAIL, evidence=evidence, fix=f"chown -R you {project.state}")
        return
    if abs(apart) > SKEW_SECONDS:
        evidence = f"files are dated {apart:+.0f} s from the clock of this machine"
        yield Finding(id="clock", status=WARN, evidence=evidence, fix="timedatectl set-ntp true")
        return
    yield Finding(id="clock", status=OK, evidence="agrees with the ledger and with the disk")


def state(start: Path) -> Iterator[Finding]:
    """Whether git ignores Planforge's own directory."""
    project = here(start)
    if project is not None and not is_ignored(project):
        evidence = f"`{STATE}/.gitignore` does not ignore the directory, so its files could be committed"
        yield Finding(id="state", status=FAIL, evidence=evidence, fix=FIX)


def is_ignored(project: Project) -> bool:
    """Whether the state directory has its own `.gitignore` for everything."""
    try:
        return "*" in (project.state / ".gitignore").read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return False


def settings(start: Path) -> Iterator[Finding]:
    """Whether `planforge.toml` is valid."""
    project = Project.find(start)
    _ = project.settings
    there = (project.root / "planforge.toml").exists()
    evidence = "`planforge.toml` is valid" if there else "no `planforge.toml`: all defaults"
    yield Finding(id="settings", status=OK, evidence=evidence)


def confinement(start: Path) -> Iterator[Finding]:
    """The sandbox in the settings, if a stronger one works here."""
    project = settled(start)
    if project is None:
        return
    level = project.settings.sandbox.chosen()  # raises if it does not work or was not allowed
    if level is not strongest():
        evidence = f"{level}, as planforge.toml says, although {strongest()} works here"
        fix = 'set `level = "auto"` under `[sandbox]` in planforge.toml'
        yield Finding(id="sandbox level", status=WARN, evidence=evidence, fix=fix)


def checks(start: Path) -> Iterator[Finding]:
    """The project's checks, from the settings or detected."""
    project = settled(start)
    if project is None:
        return
    named = dict(project.settings.checks)
    if project.settings.check is not None:
        named = {"": project.settings.check} | named
    for name, check in named.items():
        setting = f"checks.{name}" if name else "check"
        change = f"change `[{setting}]` in planforge.toml"
        yield _check(project, f"check {name}".strip(), check, change)
    if not named:
        yield from _detected(project)


def _detected(project: Project) -> Iterator[Finding]:
    found = detect(project.root)
    for item in found.found:
        looked = _check(project, f"check {item.name}", item.check, "set `[check]` in planforge.toml")
        yield Finding(
            id=looked.id,
            status=WARN if looked.status == FAIL else looked.status,
            evidence=f"{looked.evidence} (detected: {item.why})",
            fix=looked.fix,
        )
    if not any(item.name == "tests" for item in found.found):
        evidence = "no tests were found, so nothing can land"
        yield Finding(id="check", status=WARN, evidence=evidence, fix="set `[check]` in planforge.toml")


def preparation(start: Path) -> Iterator[Finding]:
    """What each worktree gets before an agent starts."""
    project = settled(start)
    if project is None:
        return
    wanted = project.settings.workspace
    if (project.root / INCLUDE).exists():
        named = included(project.git, project.root)
        evidence = (
            f"`{INCLUDE}` names {counted(len(named), 'file')} that git ignores; each worktree gets a copy"
        )
        yield Finding(id="worktree files", status=OK if named else WARN, evidence=evidence)
    for what, command in (("setup", wanted.setup), ("smoke", wanted.smoke)):
        if command:
            made = what == "smoke" and bool(wanted.setup)
            change = f"change `workspace.{what}` in planforge.toml"
            yield tools.look(what, command, change, project.root, made=made)


def _check(project: Project, id_: str, check: Check, otherwise: str) -> Finding:
    made = bool(project.settings.workspace.setup)
    return tools.look(id_, check.command, otherwise, project.root, check.env, made=made)


def agents(start: Path) -> Iterator[Finding]:
    """The installed agents with their logins, and agents in the settings that are missing."""
    project = settled(start)
    wanted = project.settings.agents if project else None
    own = {name: profile for name, profile in wanted.profiles.items() if profile.command} if wanted else {}
    profiles = every(own)
    asked = {wanted.default, *wanted.roles.values()} - {""} if wanted else set()
    found = 0
    for name, profile in profiles.items():
        candidates = [profiles[one] for one in profile.either if one in profiles] or [profile]
        installed = next((candidate for candidate in candidates if candidate.installed), None)
        found += installed is not None and not profile.by_name
        if installed is not None and (not profile.by_name or name in (*asked, REHEARSAL)):
            yield _agent(name, installed, wanted=name in asked)
        elif name in asked:
            missing = " or ".join(f"`{candidate.missing}`" for candidate in candidates)
            evidence = f"{missing} is not installed, and planforge.toml asks for it"
            yield Finding(id=f"agent {name}", status=FAIL, evidence=evidence, fix=candidates[0].install)
    if not found and not asked:
        none = nobody(own)
        yield Finding(id="agents", status=WARN, evidence=none.message, fix=none.hint or "")


def _agent(name: str, profile: Profile, *, wanted: bool) -> Finding:
    """An installed agent: its path and its login."""
    path, try_it = shutil.which(profile.program), Action("agent test", name)
    if name == REHEARSAL:
        return Finding(id=f"agent {name}", status=OK, evidence=f"{path}; needs no login")
    match login(profile).split():
        case ["yes", by]:
            return Finding(id=f"agent {name}", status=OK, evidence=f"{path}; logged in {by}; not started")
        case ["no"]:
            keys = [f"export {variable}=..." for variable in profile.login_env[:1]]
            way: Hint = next(filter(None, (profile.login_command, *keys)), "") or try_it
            status = FAIL if wanted else WARN
            return Finding(id=f"agent {name}", status=status, evidence=f"{path}; not logged in", fix=way)
    evidence = f"{path}; login unknown"
    return Finding(id=f"agent {name}", status=UNKNOWN, evidence=evidence, fix=try_it)


def _shared_disk(path: Path) -> str:
    """The file system, if it is shared with other machines; empty if unknown."""
    device = path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    kinds = (line.split(" - ")[1].split()[0] for line in lines if line.split()[2] == number)
    return next((kind for kind in kinds if kind.startswith(SHARED_DISKS)), "")
