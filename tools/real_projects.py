"""
Evidence for real projects against what their own runners print: `make test-projects`.

Each project is fetched as source, from whatever package index this machine is set up for, into a
cache outside of the repository; put under git; given what it needs to run its tests, as a
person would; and then left without any word about Planforge. What its own runner prints
is read here with patterns of its own, not with those that are being tested.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "planforge-projects"
SECONDS = 900


class Counts(NamedTuple):
    """How many tests there were and how they went."""

    total: int
    passed: int
    failed: int
    skipped: int


class Project(NamedTuple):
    """A project, where it comes from, and how its own people run its tests."""

    name: str
    version: str
    registry: str
    runner: tuple[str, ...]
    """Empty for one without tests."""
    printed: Callable[[str], Counts | None]


def by_pytest(text: str) -> Counts | None:
    """The last line of pytest."""
    lines = re.findall(r"^=+ (.*\d+ (?:passed|failed).*) in [\d.]+s.*=+$", text, re.MULTILINE)
    if len(lines) != 1:
        return None

    def number(word: str) -> int:
        found = re.search(rf"(\d+) {word}\b", lines[0])
        return int(found[1]) if found else 0

    passed, failed = number("passed") + number("xpassed"), number("failed") + number("errors?")
    skipped = number("skipped") + number("xfailed")
    return Counts(passed + failed + skipped, passed, failed, skipped)


def by_tape(text: str) -> Counts | None:
    """The comments at the end of tape's output."""
    total, passed = (re.findall(rf"^# {word} +(\d+)$", text, re.MULTILINE) for word in ("tests", "pass"))
    failed = re.findall(r"^# fail +(\d+)$", text, re.MULTILINE) or ["0"]
    return Counts(int(total[0]), int(passed[0]), int(failed[0]), 0) if total and passed else None


def by_unittest(text: str) -> Counts | None:
    """The last lines of unittest."""
    ran = re.findall(r"^Ran (\d+) tests? in .*\n\nOK(?: \(skipped=(\d+)\))?$", text, re.MULTILINE)
    if len(ran) != 1:
        return None
    total, skipped = int(ran[0][0]), int(ran[0][1] or 0)
    return Counts(total, total - skipped, 0, skipped)


PYTEST = (".venv/bin/python", "-m", "pytest")
PROJECTS = (
    Project("iniconfig", "2.3.1", "pypi", PYTEST, by_pytest),
    Project("boltons", "26.2.0", "pypi", PYTEST, by_pytest),
    Project("more-itertools", "11.2.1", "pypi", ("make", "test"), by_unittest),
    Project("reusify", "1.1.0", "npm", ("npm", "test"), by_tape),
    Project("xtend", "4.0.2", "npm", ("npm", "test"), by_tape),
    Project("sortedcontainers", "2.4.0", "pypi", (), by_pytest),
)


def run(argv: Sequence[str], cwd: Path, *, fails: bool = False) -> str:
    """What a command prints, both streams; it must succeed unless it may fail."""
    path = f"{cwd / '.venv' / 'bin'}:{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"} | {
        "PATH": path
    }
    done = subprocess.run(
        list(argv),
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=SECONDS,
        check=False,
    )
    if done.returncode and not fails:
        sys.exit(f"`{' '.join(argv)}` failed in {cwd}:\n{done.stdout[-2000:]}")
    return done.stdout


def fetched(project: Project) -> Path:
    """The project's source, under git and ready for its own tests."""
    place = CACHE / f"{project.name}-{project.version}"
    if (place / ".ready").exists():
        return place / "source"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    if project.registry == "pypi":
        wanted = f"{project.name}=={project.version}"
        words = ["--quiet", "--no-binary", ":all:", "--no-deps", "--dest", "."]
        run([sys.executable, "-m", "pip", "download", *words, wanted], place)
    else:
        run(["npm", "pack", "--silent", f"{project.name}@{project.version}"], place)
    (archive,) = [*place.glob("*.tar.gz"), *place.glob("*.tgz")]
    with tarfile.open(archive) as file:
        file.extractall(place / "unpacked", filter="data")
    (top,) = (place / "unpacked").iterdir()
    top.rename(place / "source")
    ready(project, place / "source")
    (place / ".ready").touch()
    return place / "source"


def ready(project: Project, source: Path) -> None:
    """Commit the source as it came, then install what its tests need, as a person would."""
    identity = ["-c", "user.name=Planforge", "-c", "user.email=planforge@localhost"]
    run(["git", "init", "--quiet", "--initial-branch=main"], source)
    (source / ".git" / "info" / "exclude").write_text(".venv\nnode_modules\n*.egg-info\n")
    run(["git", "add", "--all"], source)
    run(["git", *identity, "commit", "--quiet", "--message=as published"], source)
    if project.registry == "npm":
        words = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
        run(["npm", "install", *words], source)
    elif project.runner:
        run([sys.executable, "-m", "venv", ".venv"], source)
        words = ["--quiet", "--disable-pip-version-check"]
        run([".venv/bin/python", "-m", "pip", "install", *words, "pytest", "--editable", "."], source)


class Row(NamedTuple):
    """What both sides said about one project."""

    project: Project
    command: str
    printed: Counts | None
    outcome: str
    found: Counts | None
    reason: str

    @property
    def agrees(self) -> bool:
        """Without tests nothing can be told; with them the counts must be the same."""
        if not self.project.runner:
            return self.outcome == "cannot_tell" and self.found is None
        return self.printed is not None and self.printed == self.found


def compared(project: Project) -> Row:
    """Run the project's own runner, and ours."""
    source = fetched(project)
    printed = project.printed(run(project.runner, source, fails=True)) if project.runner else None
    argv = [sys.executable, "-m", "planforge", "evidence", "--no-reuse", "--json"]
    said = run(argv, source, fails=True)
    evidence = json.loads(said[said.index("\n{\n") if "\n{\n" in said else said.index("{") :])["evidence"]
    counts = evidence["counts"]
    found = Counts(counts["total"], counts["passed"], counts["failed"], counts["skipped"]) if counts else None
    command = " ".join(evidence["command"]).replace("${root}/", "")
    return Row(project, command, printed, evidence["outcome"], found, evidence["reason"])


def main() -> None:
    """Compare, print the table, and say by the exit code whether all agree."""
    parser = argparse.ArgumentParser(
        description="Compare evidence with what real projects' own runners print."
    )
    parser.add_argument("--only", metavar="NAME", action="append", help="one of the projects")
    arguments = parser.parse_args()
    rows = []
    for project in PROJECTS:
        if not arguments.only or project.name in arguments.only:
            sys.stderr.write(f"projects: {project.name} {project.version}\n")
            rows.append(compared(project))
    lines = [f"{'project':<26}{'its own runner':<34}{'evidence':<34}{'':<14}detected"]
    for row in rows:
        name = f"{row.project.name} {row.project.version}"
        verdict = "the same" if row.agrees else "NOT THE SAME"
        sides = f"{_shown(row.printed):<34}{_shown(row.found):<34}"
        lines.append(f"{name:<26}{sides}{verdict:<14}{row.command or row.reason}")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(not all(row.agrees for row in rows))


def _shown(counts: Counts | None) -> str:
    if counts is None:
        return "no tests"
    return f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped"


if __name__ == "__main__":
    main()
