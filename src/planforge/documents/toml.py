"""
TOML that people write: read into structures, and explained in one line where it is wrong.

msgspec checks the values and is quick. Only when it refuses is the file walked through here, along the same
structures, to name the key, what was given and what is expected, or the key that was probably meant.
"""

from __future__ import annotations

import datetime
import enum
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from planforge.errors import InvalidInput, did_you_mean, nearest

ANY_NAME = "NAME"
"""Stands in a known key for a part that people choose, such as the name of an agent."""

NAMES: dict[Any, str] = {
    str: "a text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "`true` or `false`",
    datetime.date: "a date such as 2027-01-31",
    tuple: "a list",
    dict: "a table",
}
DATES = (datetime.datetime, datetime.date, datetime.time)
BARE = re.compile(r"[A-Za-z0-9_-]+|\[\d+\]")
"""A part of a key that needs no quotes: a name, or the index of a list."""
PLACE = re.compile(r"(?P<what>.*?) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|(?P<end>.*))\)", re.S)
UNQUOTED = re.compile(r"(?!(?i:true|false)\b)[\w~/.][\w~/.-]*")
"""What looks like a text that was written without quotes."""
TWICE = ("Cannot overwrite a value", "Cannot mutate immutable namespace", "Cannot declare")
LONGEST = 60
"""So many characters of a wrong value are shown."""

Key = tuple[str, ...]
Read = TypeVar("Read")


def decode(content: bytes, name: str) -> str:
    """The text of the file called `name`."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise InvalidInput(
            f"`{name}` line {line}, column {column}: not UTF-8", "save the file as UTF-8"
        ) from error


def parse(content: bytes, name: str) -> dict[str, Any]:
    """The tables of the file called `name`; a byte order mark, which some editors write, is ignored."""
    text = decode(content, name).removeprefix("\ufeff")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(_no_toml(name, text, str(error))) from error
    except RecursionError as error:
        raise InvalidInput(f"`{name}` is nested too deeply to be read") from error
    except ValueError as error:  # Python reads no whole number of thousands of digits
        raise InvalidInput(f"`{name}` has a number that is too long to be read") from error


def convert(said: Mapping[str, Any], kind: type[Read], name: str, key: Key = ()) -> Read:
    """The structure that a table says, which stands at `key` in the file called `name`."""
    try:
        return msgspec.convert(said, kind, builtin_types=DATES, str_keys=True)
    except (msgspec.ValidationError, RecursionError) as error:
        for problem, hint in _mistakes(said, kind, key, kind):
            raise InvalidInput(f"`{name}`: {problem}", hint) from error
        raise InvalidInput(f"`{name}`: {error}") from error


def dotted(key: Key) -> str:
    """A key as it is written in a file."""
    parts = (part if BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in key)
    return ".".join(parts).replace(".[", "[")


def known_keys(kind: Any, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Every key of a structure, with its type; `NAME` stands for a part that people choose."""
    kind = _without_none(kind)
    if _is_struct(kind):
        for field in _fields(kind):
            part = (*key, field.encode_name)
            yield part, field.type
            yield from known_keys(field.type, part)
    elif get_origin(kind) is dict:
        yield from known_keys(get_args(kind)[1], (*key, ANY_NAME))
    elif get_origin(kind) is tuple:
        yield from known_keys(get_args(kind)[0], (*key, "[0]"))


Problem = tuple[str, str | None]
"""What is wrong, and a hint."""


def _mistakes(said: Any, kind: Any, key: Key, all_of_it: Any) -> Iterator[Problem]:
    """Everything that is wrong with a value, the first mistake first."""
    kind = _without_none(kind)
    origin = get_origin(kind)
    wanted: Any = dict if _is_struct(kind) or origin is dict else list if origin is tuple else object
    if wanted is object:
        yield from _in_value(said, kind, key)
    elif not isinstance(said, wanted):
        yield f"`{dotted(key)}` must be {_expected(kind)}, not {_shown(said)}", None
    elif wanted is list:
        for index, each in enumerate(said):
            yield from _mistakes(each, get_args(kind)[0], (*key, f"[{index}]"), all_of_it)
    elif origin is dict:
        for name, each in said.items():
            yield from _mistakes(each, get_args(kind)[1], (*key, name), all_of_it)
    else:
        yield from _in_table(said, kind, key, all_of_it)


def _in_table(said: Mapping[str, Any], kind: Any, key: Key, all_of_it: Any) -> Iterator[Problem]:
    fields = {field.encode_name: field for field in _fields(kind)}
    for name, each in said.items():
        if name in fields:
            yield from _mistakes(each, fields[name].type, (*key, name), all_of_it)
        else:
            yield _unknown((*key, name), fields, all_of_it)
    for name, field in fields.items():
        if field.required and name not in said:
            yield f"`{dotted((*key, name))}` is missing", f"it must be {_expected(field.type)}"
    try:
        msgspec.convert(said, kind, builtin_types=DATES, str_keys=True)
    except msgspec.ValidationError as error:  # what the structure itself asks for, key first
        problem = str(error).partition(" - at `$")[0]
        yield problem.replace("`", f"`{dotted(key)}.", 1) if key else problem, None


def _in_value(said: Any, kind: Any, key: Key) -> Iterator[Problem]:
    try:
        msgspec.convert(said, kind, builtin_types=DATES, str_keys=True)
    except msgspec.ValidationError:
        guess = did_you_mean(said, _choices(kind)) if isinstance(said, str) else ""
        yield f"`{dotted(key)}` must be {_expected(kind)}, not {_shown(said)}{guess}", None


def _unknown(key: Key, siblings: Mapping[str, object], all_of_it: Any) -> Problem:
    problem = f"there is no setting `{dotted(key)}`"
    if near := nearest(key[-1], siblings):
        return f"{problem}; did you mean `{dotted((*key[:-1], near))}`?", None
    elsewhere = [
        known for known, _ in known_keys(all_of_it) if known[-1] == key[-1] and ANY_NAME not in known
    ]
    if elsewhere:
        return f"{problem}; did you mean `{dotted(min(elsewhere, key=len))}`?", None
    table = f"`[{dotted(key[:-1])}]`" if key[:-1] else "the file"
    return problem, f"{table} may have {', '.join(f'`{name}`' for name in siblings)}"


def _without_none(kind: Any) -> Any:
    parts = [part for part in get_args(kind) if part is not NoneType]
    return parts[0] if get_origin(kind) in (Union, UnionType) and len(parts) == 1 else kind


@cache
def _fields(kind: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _choices(kind: Any) -> tuple[str, ...]:
    """The words that a value may be, where it may be one of a few."""
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return tuple(str(each.value) for each in kind)
    return tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()


def _expected(kind: Any) -> str:
    kind = _without_none(kind)
    if choices := _choices(kind):
        return f"one of {', '.join(json.dumps(choice) for choice in choices)}"
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_expected, get_args(kind))))
    return NAMES[dict if _is_struct(kind) else get_origin(kind) or kind]


def _shown(said: Any) -> str:
    """A value as it is written in a file, cut short."""
    if isinstance(said, list | dict):
        return NAMES[tuple if isinstance(said, list) else dict]
    text = json.dumps(said, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _no_toml(name: str, text: str, error: str) -> str:
    """Why a text is not TOML, with the line and the column."""
    place = PLACE.fullmatch(error)
    if place is None or place["line"] is None:
        return f"`{name}` is not TOML: {error}"
    at = f"`{name}` line {place['line']}, column {place['column']}"
    if place["what"].startswith(TWICE):
        return f"{at}: `{_key_at(text, int(place['line']))}` is there twice"
    there = text.split("\n")[int(place["line"]) - 1][int(place["column"]) - 1 :]
    if place["what"] == "Invalid value" and (word := UNQUOTED.match(there)):
        return f"{at}: a text needs quotes: `{json.dumps(word[0], ensure_ascii=False)}`"
    return f"{at}: {place['what'][:1].lower()}{place['what'][1:]}"


def _key_at(text: str, number: int) -> str:
    """The key that a line of a file sets, with the table that it is in."""
    lines = [line.strip() for line in text.splitlines()[:number]]
    headers = [line.partition("]")[0].strip("[ ") for line in lines if line.startswith("[")]
    table = headers[-1] if headers else ""
    if lines[-1].startswith("["):
        return table
    key = lines[-1].partition("=")[0].strip()
    return f"{table}.{key}" if table else key
