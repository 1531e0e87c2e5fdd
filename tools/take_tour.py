"""
Takes the tour: `make tour`, as a new user would, in three real projects, with every screen written down.

The projects are fetched as source, by version and hash, from whatever package indexes this machine is set up
for, into a cache outside of the repository (`$PLANFORGE_TOUR_CACHE`, else `$XDG_CACHE_HOME/planforge/tour`).
What their tests need comes with them: pytest from our own environment, packages of npm by a lock. A project
that cannot be had is a failure, and never left out. With `--write`, the pages `docs/tour*.md` are written
anew from what was seen; without, a page that says anything else is a failure.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import html
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests" / "tour"
LOCKS = HERE / "tour-projects"

PROJECTS = "PLANFORGE_TOUR"
"""The directory in which the tests find the projects."""
WRITE = "PLANFORGE_TOUR_WRITE"
"""Where it is set, the page is written and not compared."""

SECONDS = 300


class Source(NamedTuple):
    """A project, where it comes from, and what exactly that is."""

    name: str
    version: str
    registry: str
    sha256: str


SOURCES = (
    Source("inflection", "0.5.1", "pypi", "1a29730d366e996aaacffb2f1f1cb9593dc38e2ddd30c91250c6dde09ea9b417"),
    Source(
        "json-stable-stringify",
        "1.0.1",
        "npm",
        "70e228b750bf40ab69dda437f284992f1ea4c4bf9e788dc7fc586a6956256150",
    ),
    Source("node-gyp", "9.4.1", "npm", "106676e44211018bfa8cb69246b9206a764b4178c770495699030b4ebec0b422"),
)


def main() -> None:
    """Fetch the projects and take the tour; the exit code is that of the tests."""
    parser = argparse.ArgumentParser(description="Take the tour in three real projects.")
    parser.add_argument("--write", action="store_true", help="write the pages anew")
    parser.add_argument("--only-fetch", action="store_true", help="fetch the projects and say where they are")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after `--`")
    arguments = parser.parse_args()
    place = provided()
    if arguments.only_fetch:
        sys.stdout.write(f"{place}\n")
        sys.exit(0)
    argv = [sys.executable, "-m", "pytest", "-n", "2", "--durations=3", *(arguments.pytest or [str(TESTS)])]
    told = {PROJECTS: str(place)} | ({WRITE: "1"} if arguments.write else {})
    sys.exit(subprocess.run(argv, cwd=HERE.parent, env=os.environ | told, check=False).returncode)


def cache() -> Path:
    """Where the projects are kept from one run to the next."""
    if named := os.environ.get("PLANFORGE_TOUR_CACHE"):
        return Path(named).absolute()
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "planforge" / "tour"


def provided() -> Path:
    """The directory with all projects, each with what its tests need; what is there already is used again."""
    place = cache()
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for source in SOURCES:
            _provide(source, place / source.name)
    return place


def _provide(source: Source, place: Path) -> None:
    mark = f"{source.sha256}\n{_needs(source)}\n"
    ready = place / "ready"
    if ready.exists() and ready.read_text() == mark:
        return
    sys.stderr.write(f"tour: fetching {source.name} {source.version}\n")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    archive = _from_pypi(source, place) if source.registry == "pypi" else _from_npm(source, place)
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != source.sha256:
        sys.exit(f"tour: {archive.name} is not what it was: its SHA-256 is {found}")
    with tarfile.open(archive) as file:
        file.extractall(place / "unpacked", filter="data")
    (top,) = (place / "unpacked").iterdir()
    top.rename(place / "source")
    if source.registry == "pypi":
        _with_pytest(place / "source" / ".venv")
    else:
        _with_modules(source, place)
    ready.write_text(mark)


def _needs(source: Source) -> str:
    """What the tests of a project need besides it, in short."""
    if source.registry == "pypi":
        return f"{sys.version} pytest {importlib.metadata.version('pytest')}"
    return hashlib.sha256((LOCKS / source.name / "package-lock.json").read_bytes()).hexdigest()


def _from_pypi(source: Source, place: Path) -> Path:
    """The source distribution; not by `pip download`, which would build it to learn what it is called."""
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    index = os.environ.get("PIP_INDEX_URL") or said or _default_index()
    page = f"{index.rstrip('/')}/{source.name}/"
    archive = f"{source.name}-{source.version}.tar.gz"
    try:
        with urllib.request.urlopen(page, timeout=SECONDS) as answer:  # noqa: S310
            links = re.findall(r'href="([^"]+)"', answer.read().decode("utf-8", "replace"))
        found = [html.unescape(link) for link in links if f"/{archive}" in link]
        if not found:
            sys.exit(f"tour: {page} has no {archive}")
        address = urllib.parse.urldefrag(urllib.parse.urljoin(page, found[0])).url
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:  # noqa: S310
            (place / archive).write_bytes(answer.read())
    except OSError as error:
        sys.exit(f"tour: {archive} cannot be had from {index}: {error}")
    return place / archive


def _default_index() -> str:
    """Where pip looks if nobody has told it otherwise."""
    asked = [sys.executable, "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _from_npm(source: Source, place: Path) -> Path:
    _run(["npm", "pack", "--silent", f"{source.name}@{source.version}"], place)
    return place / f"{source.name}-{source.version}.tgz"


def _with_pytest(place: Path) -> None:
    """A virtual environment as people have it beside their code, with the pytest that we run under."""
    venv.create(place, symlinks=True, with_pip=False)
    (packages,) = place.glob("lib/python*/site-packages")
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        found = importlib.metadata.distribution(name)
        for file in found.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(found.locate_file(file)), target)


def _with_modules(source: Source, place: Path) -> None:
    shutil.copytree(LOCKS / source.name, place / "modules")
    words = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--loglevel=error"]
    _run(["npm", "ci", *words], place / "modules")
    (place / "modules" / "node_modules").rename(place / "source" / "node_modules")


def _run(argv: Sequence[str], cwd: Path) -> None:
    try:
        done = subprocess.run(
            list(argv),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"tour: `{' '.join(argv)}` cannot be run: {error}")
    if done.returncode:
        sys.exit(f"tour: `{' '.join(argv)}` failed with {done.returncode}:\n{done.stdout[-2000:]}")


if __name__ == "__main__":
    main()
