"""
Whether a change alters how the project is checked, in files that are about other things too.

An agent that cannot make a test pass can make it not run: by a setting of the runner,
by another script under the same name, by another recipe of `make test`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from configparser import Error as ConfigError
from configparser import RawConfigParser

Parts = dict[str, str]

TOOLS = frozenset(
    (
        "pytest",
        "coverage",
        "tox",
        "nox",
        "mypy",
        "pyright",
        "basedpyright",
        "ruff",
        "pylint",
        "flake8",
        "bandit",
    )
)
NPM_TOOLS = (
    "jest",
    "mocha",
    "ava",
    "nyc",
    "c8",
    "vitest",
    "tap",
    "eslintConfig",
    "eslintIgnore",
    "lint-staged",
)
CHECKS = re.compile(
    r"(?i)\.?(?:\w+[-_:])?(?:tests?|check|lint|types?|typecheck|type-check|ci|verify|coverage|build)(?:[-_:].*)?"
)
RECIPE = re.compile(
    r"^(?P<names>[\w./ -]+?)\s*::?(?![=:])(?P<rest>[^\n]*)(?P<body>(?:\n(?:[ \t]+[^\n]*|[ \t]*))*)",
    re.MULTILINE,
)


def sets_checks(path: str) -> bool:
    """Whether a file at this path, in small letters, may say how the project is checked."""
    return path.rpartition("/")[2] in READERS


def altered(path: str, before: str | None, after: str | None) -> Iterator[str]:
    """Which of the project's checks are set differently by the change, each as a clause."""
    read = READERS.get(path.rpartition("/")[2])
    if read is None:
        return
    old, new = (_read(read, text) for text in (before, after))
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            how = "is new" if name not in old else "is gone" if name not in new else "is changed"
            yield f"{name} {how}"


def _read(read: Callable[[str], Parts], text: str | None) -> Parts:
    try:
        return read(text) if text else {}
    except (ValueError, TypeError, AttributeError, RecursionError, ConfigError):
        return {"a file that cannot be read": text or ""}


def _pyproject(text: str) -> Parts:
    tools = tomllib.loads(text).get("tool", {})
    return {
        f"`[tool.{name}]`": json.dumps(tools[name], sort_keys=True, default=str)
        for name in tools
        if name in TOOLS
    }


def _setup_cfg(text: str) -> Parts:
    parser = RawConfigParser(strict=False)
    parser.read_string(text)
    wanted = [
        name for name in parser.sections() if re.split(r"[:.-]", name.removeprefix("tool:"))[0] in TOOLS
    ]
    return {f"`[{name}]`": json.dumps(dict(parser[name]), sort_keys=True) for name in wanted}


def _package_json(text: str) -> Parts:
    document = json.loads(text)
    scripts = document.get("scripts", {})
    found = {f"script `{name}`": json.dumps(said) for name, said in scripts.items() if CHECKS.fullmatch(name)}
    return found | {
        f"`{key}`": json.dumps(document[key], sort_keys=True) for key in NPM_TOOLS if key in document
    }


def _makefile(text: str) -> Parts:
    found: Parts = {}
    for recipe in RECIPE.finditer(text):
        for name in recipe["names"].split():
            if CHECKS.fullmatch(name):
                found[f"target `{name}`"] = f"{recipe['rest'].strip()}\n{recipe['body'].rstrip()}"
    return found


READERS: dict[str, Callable[[str], Parts]] = {
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup_cfg,
    "package.json": _package_json,
    "makefile": _makefile,
    "gnumakefile": _makefile,
    "justfile": _makefile,
    ".justfile": _makefile,
}
