"""Where detection looks: the files of a tree, read carefully, for anybody may have written them."""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from planforge.workspace.checks import Check

FILE_LIMIT = 2 * 1024 * 1024
"""How many bytes of a file are worth reading; no one writes a longer one by hand."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A check, and why it is thought to be the project's."""

    name: str
    check: Check
    why: str


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is there and is not taken, and why."""

    what: str


Finds = Iterator[Found | Passed]


def found(name: str, why: str, *command: str, **options: Any) -> Found:
    """A check by its command; `options` are those of `Check`."""
    return Found(name=name, check=Check(command=command, **options), why=why)


class Place:
    """The top of a project's tree, and the person's own checkout of it."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self.home = home
        self.missing: list[str] = []

    def path(self, name: str) -> Path | None:
        """A file of the tree, if it is one and does not lie outside by way of a link."""
        try:
            path = (self.root / name).resolve()
            if path.is_relative_to(self.root.resolve()) and path.is_file():
                return path
        except (OSError, RuntimeError, ValueError):
            pass
        if name not in self.missing:
            self.missing.append(name)
        return None

    def has(self, *names: str) -> str:
        """The first of some files that is there, or nothing."""
        return next((name for name in names if self.path(name)), "")

    def text(self, name: str) -> str | None:
        """What a file says."""
        path = self.path(name)
        try:
            if path is None or path.stat().st_size > FILE_LIMIT:
                return None
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def toml(self, name: str) -> dict[str, Any]:
        """A TOML file; empty if it is missing or not valid."""
        try:
            return tomllib.loads(self.text(name) or "")
        except (tomllib.TOMLDecodeError, RecursionError):
            return {}

    def json(self, name: str) -> dict[str, Any]:
        """A JSON object; empty if it is missing or not valid."""
        try:
            found = msgspec.json.decode((self.text(name) or "").encode())
        except (msgspec.MsgspecError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def ini(self, name: str) -> configparser.ConfigParser:
        """An INI file; empty if it is missing or not valid."""
        parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
        try:
            parser.read_string(self.text(name) or "")
        except configparser.Error:
            return configparser.ConfigParser()
        return parser

    def files(self, pattern: str, limit: int = 200) -> list[Path]:
        """Some files of the tree, in order."""
        found: list[Path] = []
        for path in self.root.glob(pattern):
            if path.is_file() and not path.is_symlink():
                found.append(path)
            if len(found) >= limit:
                break
        return sorted(found)


def table(value: object, *keys: str) -> dict[str, Any]:
    """The table under some keys of a document; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def words(value: object) -> list[str]:
    """The texts of a list, or of one text."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
