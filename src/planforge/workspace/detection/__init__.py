"""
How a project builds, lints, checks its types and runs its tests, told from its files.

Nothing is run to find out. Makefile and justfile targets come first, for they are what
the project's own people type; then what the tools' own files say, language by language.
For each name the first find is taken. What else was found, and what was looked for in
vain, is said, so that a person can see why nothing, or the wrong thing, was chosen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from planforge.workspace.checks import ORDER, Check
from planforge.workspace.detection import javascript, languages, makefiles, python
from planforge.workspace.detection.places import Found, Passed, Place

DETECTORS = (makefiles, python, javascript, languages)

MANIFESTS = (
    *("pyproject.toml", "setup.py", "package.json", "Cargo.toml", "go.mod", "pom.xml", "build.gradle"),
    *("build.gradle.kts", "CMakeLists.txt", "Makefile", "justfile", "Gemfile", "composer.json", "mix.exs"),
)
NOT_ENTERED = frozenset(
    {"node_modules", "vendor", "target", "build", "dist", "venv", "env", "third_party", "site-packages"}
)
DEPTH = 3
ELSEWHERE = 50
"""How many directories with projects of their own are named."""


class Detected(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, and what was not."""

    schema_version: int = 1
    found: tuple[Found, ...]
    passed_over: tuple[str, ...] = ()
    """What is there and was not taken, and why."""
    missing: tuple[str, ...] = ()
    """The names of checks that nothing was found for."""
    looked: tuple[str, ...] = ()
    """The files that were looked for and are not there."""
    elsewhere: tuple[str, ...] = ()
    """Directories with projects of their own, which are not looked into."""

    @property
    def checks(self) -> dict[str, Check]:
        """The checks by name, as settings would give them."""
        return {item.name: item.check for item in self.found}


def detect(root: Path, home: Path | None = None) -> Detected:
    """
    How the project whose files are in `root` is checked.

    `home` is the person's own checkout, if that is another directory: virtual environments are there.
    """
    place = Place(root, home or root)
    taken: dict[str, Found] = {}
    passed: list[str] = []
    for detector in DETECTORS:
        for item in detector.look(place):
            if isinstance(item, Passed):
                passed.append(item.what)
            elif item.name in taken:
                words = " ".join(item.check.command)
                passed.append(f"{item.name}: `{words}` ({item.why}), for the one above was found first")
            else:
                taken[item.name] = item
    elsewhere = tuple(_elsewhere(root))
    if elsewhere and taken:
        passed.append("projects in directories below: the one at the top was taken")
    return Detected(
        found=tuple(taken[name] for name in ORDER if name in taken),
        passed_over=tuple(dict.fromkeys(passed)),
        missing=tuple(name for name in ORDER if name not in taken),
        looked=tuple(place.missing),
        elsewhere=elsewhere,
    )


def _elsewhere(root: Path) -> Iterator[str]:
    """Directories below the top that look like a project, as far as it is worth looking."""
    found = 0
    for path, directories, files in os.walk(root):
        depth = len(Path(path).relative_to(root).parts)
        directories[:] = sorted(
            name for name in directories if name not in NOT_ENTERED and not name.startswith(".")
        )
        if depth >= DEPTH:
            directories.clear()
        if depth and (known := sorted(set(files) & set(MANIFESTS))):
            yield f"{Path(path).relative_to(root)} ({', '.join(known)})"
            found += 1
            if found >= ELSEWHERE:
                return
