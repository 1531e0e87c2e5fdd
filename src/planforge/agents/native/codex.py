"""
Codex by its own command line: `codex exec --json`.

Each line is an event: the thread, its turns, and the items of a turn. A turn ends with `turn.completed` or
with `turn.failed`; an `error` before that is one that it may get over. The text is the last
`agent_message`. What it says was used is the whole thread's, so what the thread had used before is taken
off.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from planforge.actions import see
from planforge.agents import faults, usage
from planforge.agents.native import program
from planforge.agents.native.codex_record import Record, Tokens
from planforge.agents.native.lines import NOTHING, decoded, inner
from planforge.agents.profiles import Profile
from planforge.agents.protocol import Place, Task
from planforge.agents.transcript import Transcript
from planforge.errors import AgentUnavailable, PlanforgeError
from planforge.kernel.effects import AgentAnswer, Usage

KINDS = {
    "command_execution": "execute",
    "file_change": "edit",
    "mcp_tool_call": "other",
    "collab_tool_call": "think",
    "web_search": "fetch",
}
"""Which items are tools, and of what kind, in the words of the Agent Client Protocol."""

STATUSES = {"completed": "completed", "failed": "failed", "declined": "denied"}

WAITING, PATIENCE = "waiting for network", 3
"""What it says while its service cannot be reached, for ever; and how often it may say that."""

NO_KEY = "missing environment variable"
UNAUTHORIZED = 401

GLANCE = 0.5
"""How often its record is looked at, in seconds."""


class _Event(msgspec.Struct):
    type: str = ""
    thread_id: str | None = None
    item: msgspec.Raw = NOTHING
    usage: Tokens | None = None
    message: str | None = None
    error: msgspec.Raw = NOTHING


class _Change(msgspec.Struct):
    path: str = ""


class _Item(msgspec.Struct):
    id: str = ""
    type: str = ""
    text: str | None = None
    message: str | None = None
    command: str | None = None
    status: str | None = None
    server: str | None = None
    tool: str | None = None
    query: str | None = None
    changes: msgspec.Raw = NOTHING


class _Error(msgspec.Struct):
    message: str = ""


_EVENT = msgspec.json.Decoder(_Event)
_ITEM = msgspec.json.Decoder(_Item)
_ERROR = msgspec.json.Decoder(_Error)
_CHANGES = msgspec.json.Decoder(list[_Change])


async def ask(name: str, profile: Profile, task: Task, place: Place) -> AgentAnswer:
    """Put the task to Codex and return its answer, or raise what kind of failure it was."""
    program.require_session(task)
    listener = Codex(task, place)
    with _written(task.schema, place.home) as schema:
        argv = command(task, place, schema)
        ending = await program.converse(name, profile, task, place, argv, listener)
    transcript = listener.transcript
    if transcript.hopeless:
        raise AgentUnavailable(
            f"agent `{name}` does not reach its service: {faults.one_line(transcript.trouble)}",
            see("agent list"),
        )
    if ending.full:
        return transcript.handed_over(name)
    if not transcript.ended or ending.fault:
        raise program.unanswered(name, profile, ending, transcript.trouble)
    if error := listener.failure(name, profile):
        raise error
    return msgspec.structs.replace(transcript.answer(name), output=_formed(task, transcript.text))


def command(task: Task, place: Place, schema: Path | None = None) -> list[str]:
    """The command for this task; the prompt is no part of it. Options must stand before `resume`."""
    form = ["--output-schema", str(schema)] if schema else []
    return [*place.argv, *form, *(["resume", task.session] if task.session else []), "-"]


@contextmanager
def _written(schema: str, home: Path) -> Iterator[Path | None]:
    """A file in the agent's home with the schema, for as long as it is needed."""
    if not schema:
        yield None
        return
    path = home / f"schema-{os.urandom(8).hex()}.json"
    # The home is the agent's: it may have left a link in the place of any file whose name it knows.
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.write(schema)
        yield path
    finally:
        path.unlink(missing_ok=True)


def _formed(task: Task, text: str) -> str:
    """The text, if a form was asked for and it is JSON at least."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (ValueError, RecursionError):
        return ""
    return text.strip() if task.schema else ""


class Codex:
    """Makes sense of the events of Codex."""

    def __init__(self, task: Task, place: Place) -> None:
        self.transcript = Transcript(task, place)
        self.error: str | None = None
        """Why its last turn failed, if it did."""
        self._home = Path(place.env.get("CODEX_HOME") or place.home / ".codex")
        self._record = Record(self._home, task.session) if task.session else None
        counted = self._record.counted() if self._record else None
        self._before = counted.total.usage() if counted else task.before
        self._resumed = bool(task.session)
        self._looked = 0.0
        self._waited = 0
        self._understood: dict[str, Callable[[_Event], None]] = {
            "thread.started": self._thread_started,
            "turn.started": self._turn_started,
            "item.started": self._item,
            "item.updated": self._item,
            "item.completed": self._item,
            "error": self._complained,
            "turn.completed": self._turn_completed,
            "turn.failed": self._turn_failed,
        }

    def take(self, line: bytes) -> bool:
        """Take in one line; False if it is no event."""
        event = decoded(line, _EVENT)
        if event is None or not event.type:
            return False
        self.transcript.grew(len(line))
        if understood := self._understood.get(event.type):
            understood(event)
        else:
            self.transcript.said(event.type)  # of another version
        return True

    def failure(self, name: str, profile: Profile) -> PlanforgeError | None:
        """The error to raise for how its turn ended; None if it ended with an answer."""
        transcript = self.transcript
        if self.error is not None:
            status = UNAUTHORIZED if self.error.lower().startswith(NO_KEY) else None
            now, login = time.time(), profile.login_command
            return faults.failure(name, self.error, status=status, now=now, login=login)
        return transcript.unusable(name)

    # Events

    def _thread_started(self, event: _Event) -> None:
        self.transcript.named(event.thread_id)
        if self.transcript.session and self._record is None:
            self._record = Record(self._home, self.transcript.session)
        self.transcript.said("started")

    def _turn_started(self, event: _Event) -> None:
        del event
        self.transcript.ended = False
        self.transcript.said("begins its turn")

    def _item(self, event: _Event) -> None:
        item = inner(event.item, _ITEM)
        if item is None:
            self.transcript.said("goes on")
            return
        if item.type == "error":
            self.transcript.said(f"warns: {item.message}")
            return
        self.transcript.trouble, self._waited = "", 0
        if item.type in KINDS:
            self.transcript.began(item.id, KINDS[item.type], _title(item))
            if item.status in STATUSES:
                self.transcript.finished(item.id, STATUSES[item.status])
        elif item.type == "agent_message" and event.type == "item.completed":
            self.transcript.text = faults.plain(item.text or "")
            self.transcript.said(self.transcript.text or "says nothing")
        else:
            self.transcript.said(item.type)

    def _complained(self, event: _Event) -> None:
        self.transcript.trouble = event.message or "it did not say why"
        self._waited += WAITING in self.transcript.trouble
        self.transcript.hopeless = self._waited >= PATIENCE
        self.transcript.said(self.transcript.trouble)

    def _turn_completed(self, event: _Event) -> None:
        self.error = None
        self.transcript.ended, self.transcript.trouble = True, ""
        if event.usage is not None:
            self._count(event.usage.usage())
        self.transcript.said("has ended its turn")

    def _turn_failed(self, event: _Event) -> None:
        told = inner(event.error, _ERROR)
        self.error = (told.message if told else "") or self.transcript.trouble
        self.transcript.ended = True
        self.transcript.said("has failed")

    # Figures

    def glance(self) -> None:
        """Read its record, which has the usage before the turn has ended."""
        now = time.monotonic()
        if self.transcript.ended or self._record is None or now - self._looked < GLANCE:
            return
        counted = self._record.counted()
        self._looked = time.monotonic()
        if counted is not None:
            self.transcript.filled(counted.context)
            self._count(counted.total.usage())

    def _count(self, total: Usage) -> None:
        if self._resumed and self._before is None:
            return  # nobody knows how much of it was before
        self.transcript.counted(usage.of_call(total, self._before))


def _title(item: _Item) -> str:
    """What a tool does, in a line."""
    if item.type == "file_change":
        return " ".join(["edit", *(change.path for change in (inner(item.changes, _CHANGES) or [])[:10])])
    if item.type == "mcp_tool_call":
        return f"{item.server} {item.tool}"
    return item.command or item.query or item.tool or item.type
