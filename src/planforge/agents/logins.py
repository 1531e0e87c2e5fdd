"""
Logins: brought into a private home, and brought back if the agent renewed them.

Nothing but a login that still looks like the person's is taken back, to where it came from and only if that
has not changed meanwhile. What was brought is remembered beside the home, where the agent has no business.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from planforge.agents import private
from planforge.agents.profiles import Profile, strings
from planforge.kernel.files import read_regular
from planforge.kernel.objects import write_atomically

WHOSE = re.compile(r"account|user|email|org|api_?key|uuid|client|url|endpoint|host", re.IGNORECASE)
"""What in a login says whose it is. Tokens and times change when it is renewed; this does not."""

CREDENTIAL = re.compile(
    r"((?<!id_)tokens?|key|secret|password|credential)$|^(access|refresh)$", re.IGNORECASE
)
REFRESH = re.compile(r"^refresh", re.IGNORECASE)
EXPIRY = re.compile(r"^expir(?!es_?in)", re.IGNORECASE)
FOREIGN = "mcp"
"""How tables begin that hold logins to other services than the agent's own."""
MILLISECONDS = 1e11
"""From here on a time is in milliseconds."""


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """A file that holds a login: the person's, its copy in the private home, and what it was."""

    source: str
    path: str
    sha256: str


def bring(home: Path, profile: Profile, person: Path) -> tuple[Brought, ...]:
    """Copy the logins of an agent into its home, and remember them."""
    brought = tuple(_bring(home, profile, person))
    record = _record(home)
    private.write(record.parent, record.name, msgspec.json.encode(brought))
    return brought


def withdraw(home: Path, profile: Profile, person: Path) -> None:
    """Take the logins of an agent out of its home."""
    for path in profile.login:
        private.remove(home, located(profile, path, person)[1])
    forget(home)


def forget(home: Path) -> None:
    """Remove the record of what was brought, and what a process left that died while writing it."""
    record = _record(home)
    for path in (record, *record.parent.glob(f".{record.name}.*.part")):
        path.unlink(missing_ok=True)


def logged_in(path: Path) -> bool | None:
    """Whether a file holds a login that has not run out or can be renewed; None if that cannot be told."""
    content = _read_login(path)
    try:
        said = json.loads(content) if content else {}
    except (ValueError, RecursionError):
        return None if content and content.strip() else False
    found = list(_credentials(said))
    if any(found):
        return True
    return False if found or not any(text.strip() for text in strings(said)) else None


def _credentials(said: object) -> Iterator[bool]:
    """For each place in a login where a credential would be: whether there is one that can be used."""
    for part in said if isinstance(said, list) else ():
        yield from _credentials(part)
    if not isinstance(said, dict):
        return
    own = {key: value for key, value in said.items() if not key.startswith(FOREIGN)}
    expired = any(_is_past(value) for key, value in own.items() if EXPIRY.search(key))
    for key, value in own.items():
        if isinstance(value, dict | list):
            yield from _credentials(value)
        elif CREDENTIAL.search(key):
            filled = isinstance(value, str) and bool(value.strip())
            yield filled and (not expired or bool(REFRESH.search(key)))


def _is_past(moment: object) -> bool:
    """Whether a time is over, in seconds, in milliseconds or as a date; zero says nothing."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment).timestamp()
        except ValueError:
            return False
    if not isinstance(moment, int | float) or moment <= 0:
        return False
    return moment / (1000 if moment > MILLISECONDS else 1) < time.time()


def _bring(home: Path, profile: Profile, person: Path) -> Iterator[Brought]:
    for path in profile.login:
        source, inside = located(profile, path, person)
        content = _read_login(source)
        if content is None:
            continue
        private.write(home, inside, content)
        yield Brought(source=str(source), path=inside, sha256=hashlib.sha256(content).hexdigest())


def located(profile: Profile, path: str, person: Path) -> tuple[Path, str]:
    """Where the person keeps a file of an agent, and where that goes in a private home."""
    for variable, directory in profile.directories.items():
        prefix = f"{directory}/" if directory else ""
        if path.startswith(prefix):
            rest = path.removeprefix(prefix)
            moved = os.environ.get(variable)
            where = Path(moved).expanduser() if moved else person / directory
            return where / rest, f"{variable.lower()}/{rest}"
    return person / path, path


def take_back(home: Path) -> tuple[str, ...]:
    """Put each login that the agent renewed where the person has theirs, unless that changed meanwhile."""
    try:
        brought = msgspec.json.decode(_record(home).read_bytes(), type=tuple[Brought, ...])
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.MsgspecError):
        return (f"`{_record(home)}` cannot be read, so no login was brought back",)
    return tuple(filter(None, (_take_back(home, item) for item in brought)))


def _record(home: Path) -> Path:
    """Where it is written down whose login was brought: beside the home, where the agent has no business."""
    return home.with_name(f"{home.name}.login")


def _take_back(home: Path, item: Brought) -> str:
    """Bring one back; a note for the person, if there is one."""
    source = Path(item.source)
    renewed = private.read(home, item.path)
    if renewed is None or hashlib.sha256(renewed).hexdigest() == item.sha256:
        return ""
    with _alone(source.parent):
        current = _read_login(source)
        if current == renewed:
            return ""
        if current is None or hashlib.sha256(current).hexdigest() != item.sha256:
            return f"an agent renewed its login, but `{source}` has changed meanwhile; both are left alone"
        if not _resembles(renewed, current):
            return f"what an agent made of its login does not look like one; `{source}` is left as it was"
        write_atomically(source.resolve(), renewed)
    return f"an agent renewed its login; `{source}` has the new one"


def _resembles(renewed: bytes, current: bytes) -> bool:
    """Whether it is the same person's login still, as far as that can be told without knowing its form."""
    try:
        before, after = json.loads(current), json.loads(renewed)
    except ValueError:
        return False
    return _is_same(before, after)


def _is_same(before: object, after: object) -> bool:
    """Whether no key is missing, and the account and the server are the same."""
    if not isinstance(before, dict):
        return before is None or isinstance(after, type(before))
    return isinstance(after, dict) and all(
        key in after and (value == after[key] if WHOSE.search(key) else _is_same(value, after[key]))
        for key, value in before.items()
    )


def _read_login(path: Path) -> bytes | None:
    """The person's own file, links followed; `None` if there is none."""
    try:
        content = read_regular(path, private.LARGEST + 1)
    except OSError:
        return None
    return content if content and len(content) <= private.LARGEST else None


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keep other processes of ours out, without leaving a file in the person's home."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # it is gone, and so is the login
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
