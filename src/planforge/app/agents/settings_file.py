"""
Changes one table of `planforge.toml`, a file that people write by hand.

A table is added at the end of the file, or taken out as it stands there; comments and the rest stay as they
are. Before anything is written it is made sure that the file then says what it said, with just that
difference, and that the settings can be read: a file that is written in another way is left alone.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planforge.app.places import SETTINGS
from planforge.app.settings import parse
from planforge.documents import toml
from planforge.errors import InvalidInput
from planforge.kernel.files import read_regular
from planforge.kernel.locks import held
from planforge.kernel.objects import write_atomically

if TYPE_CHECKING:
    from planforge.app.project import Project

HEADER = re.compile(r"[ \t]*\[{1,2}[^\n]*\]{1,2}[ \t]*(?:#.*)?")


def add(project: Project, name: Sequence[str], said: Mapping[str, object]) -> str:
    """Write a new table; returns its text."""
    with _changing(project) as path:
        before = _text(path)
        expected = toml.parse(before.encode(), SETTINGS)
        if _table(expected, name) is not None:
            raise InvalidInput(f"`{SETTINGS}` has `{toml.dotted(tuple(name))}` already")
        newline = "\r\n" if "\r\n" in before else "\n"
        lines = [f"[{toml.dotted(tuple(name))}]", *(f"{key} = {_toml(said[key])}" for key in said)]
        text = newline.join([*lines, ""])
        gap = "" if not before else newline if before.endswith("\n") else newline * 2
        _put(expected, name, said)
        _write(path, f"{before}{gap}{text}", expected)
    return text


def remove(project: Project, name: Sequence[str]) -> str:
    """Take a table out, with all tables in it; returns its text."""
    with _changing(project) as path:
        before = _text(path)
        expected = toml.parse(before.encode(), SETTINGS)
        if _table(expected, name) is None:
            raise InvalidInput(f"`{SETTINGS}` has no `{toml.dotted(tuple(name))}`")
        after, text = without(before, name)
        around = _table(expected, name[:-1])
        assert around is not None
        del around[name[-1]]
        _write(path, after, expected)
    return text


def without(text: str, name: Sequence[str]) -> tuple[str, str]:
    """A text without one table and those in it, and what was taken out."""
    dot = r"[ \t]*\.[ \t]*"
    own = re.compile(
        r"[ \t]*\[[ \t]*" + dot.join(f"[\"']?{re.escape(part)}[\"']?" for part in name) + r"[ \t]*[\].]"
    )
    kept: list[str] = []
    taken: list[str] = []
    pending: list[str] = []
    """Blank lines and comments, of which only what follows says whose they are."""
    inside = False
    for line in text.splitlines(keepends=True):
        if HEADER.fullmatch(line.rstrip("\r\n")):
            stays = inside and own.match(line)
            (taken if stays else kept).extend(pending)  # what stands above a table belongs to it
            pending = []
            inside = bool(own.match(line))
        if inside and (not line.strip() or line.lstrip().startswith("#")):
            pending.append(line)
        else:
            (taken if inside else kept).extend([*pending, line])
            pending = []
    if inside and not pending and kept and not kept[-1].strip():
        kept.pop()  # the last table goes with the line that parted it from the one before
    return "".join([*kept, *pending]), "".join(taken)


@contextmanager
def _changing(project: Project) -> Iterator[Path]:
    """The settings file itself, wherever it is a link to, with nobody else of us at it."""
    with held(project.state / "locks" / "settings.lock", f"a change of `{SETTINGS}`", wait=True):
        yield (project.root / SETTINGS).resolve()


def _text(path: Path) -> str:
    try:
        return toml.decode(read_regular(path), SETTINGS)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InvalidInput(f"cannot read `{path}`: {error.strerror}") from error


def _table(said: dict[str, Any], name: Sequence[str]) -> dict[str, Any] | None:
    for part in name:
        found = said.get(part)
        if not isinstance(found, dict):
            return None
        said = found
    return said


def _put(said: dict[str, Any], name: Sequence[str], table: Mapping[str, object]) -> None:
    for part in name[:-1]:
        said = said.setdefault(part, {})
    said[name[-1]] = copy.deepcopy(dict(table))


def _write(path: Path, text: str, expected: Mapping[str, Any]) -> None:
    """Write the file, if it then says what is expected, and the settings can be read."""
    try:
        right = _same(toml.parse(text.encode(), SETTINGS), expected)
    except InvalidInput:
        right = False
    if not right:
        raise InvalidInput(
            f"`{SETTINGS}` is written in a way that Planforge does not change, so it is left as it is",
            "change it by hand: docs/agents.md says what a table of an agent has",
        )
    parse(text.encode())
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise InvalidInput(f"cannot write `{path}`: {error.strerror}") from error


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two files say the same; a table with nothing in it says nothing."""

    def full(value: Any) -> Any:
        if isinstance(value, dict):
            parts = {key: full(part) for key, part in value.items()}
            return {key: part for key, part in parts.items() if part != {}}
        return value

    return bool(full(one) == full(other))


def _toml(value: object) -> str:
    """A text, a list of texts or a table of texts, on one line."""
    match value:
        case dict():
            inside = ", ".join(f"{toml.dotted((key,))} = {_toml(part)}" for key, part in value.items())
            return f"{{ {inside} }}"
        case list():
            return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
