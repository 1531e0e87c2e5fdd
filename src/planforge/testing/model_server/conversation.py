"""
What a program asks a model and what the model answers, whatever dialect they speak.

Each dialect turns a request into `Asked` and a `Reply` into what goes over the wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol
from uuid import uuid4

ADDED = re.compile(
    r"<(system-reminder|environment_context|user_instructions|session_context|turn_aborted|"
    r"local-command-[a-z]+|command-[a-z]+)>.*?</\1>\s*",
    re.DOTALL,
)
"""What programs put among a person's words by themselves."""
INSTRUCTIONS = re.compile(r"\s*# AGENTS\.md instructions\b")
PLACES = (
    re.compile(r"<cwd>\s*(/[^<\n]*?)\s*</cwd>"),
    re.compile(r"[Ww]orking directory(?: is)?:?\**\s*`?(/[^\n`]*)"),
    re.compile(r"Workspace Directories:\**\s*-?\s*(/[^\n]*)"),
    re.compile(r"working in the(?: following)? director(?:y|ies):\s*-?\s*(/[^\n]*)"),
)
FAILURES = re.compile(
    r"\A\s*(?:<tool_use_error>|error\b|failed\b|exec_command failed|unsupported call|unknown tool"
    r"|no such tool|permission denied|tool .{1,80} not found|invalid )"
    r"|exited with code (?!0\b)-?\d+|\bexit code:? (?!0\b)-?\d+|Command exited with code (?!0\b)\d+"
    r"|rejected by|user rejected|has rejected|prevents you from using|denied this",
    re.IGNORECASE,
)


class Piece(NamedTuple):
    """One thing that was said or done in a conversation."""

    kind: Literal["system", "user", "assistant", "call", "result"]
    text: str
    told: bool | None = None
    """Of a result: whether the program says that the tool failed; None if its dialect cannot say so."""

    @property
    def failed(self) -> bool:
        """Whether the tool failed, as the program or else the text says."""
        return bool(FAILURES.search(self.text[:20_000])) if self.told is None else self.told


class Tool(NamedTuple):
    """A tool that the program offers."""

    name: str
    properties: Mapping[str, object]
    required: tuple[str, ...] = ()
    kind: str = "function"


class Call(NamedTuple):
    """A tool that the model wants used."""

    name: str
    input: Mapping[str, object]
    kind: str = "function"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One request to a model."""

    model: str
    pieces: Sequence[Piece]
    tools: Sequence[Tool]
    stream: bool

    @classmethod
    def of(cls, body: Mapping[str, object], pieces: Sequence[Piece], tools: Sequence[Tool]) -> Asked:
        """A request whose body says which model is asked, and whether it is to answer in a stream."""
        model, stream = str(body.get("model", "")), bool(body.get("stream"))
        return cls(model=model, pieces=pieces, tools=tools, stream=stream)

    @property
    def system(self) -> str:
        """What the program tells the model before anybody speaks."""
        return "\n".join(piece.text for piece in self.pieces if piece.kind == "system")

    @property
    def history(self) -> tuple[str, ...]:
        """Every text of the conversation but the system's, in order."""
        return tuple(piece.text for piece in self.pieces if piece.kind != "system")

    @property
    def prompt(self) -> str:
        """The latest words of the person, without what the program put among them."""
        return "\n".join(_own(piece.text) for piece in self._parts()[1])

    @property
    def earlier(self) -> tuple[str, ...]:
        """What was said before the prompt, by either side."""
        said = (_own(piece.text) for piece in self._parts()[0] if piece.kind != "call")
        return tuple(filter(None, said))

    @property
    def results(self) -> tuple[Piece, ...]:
        """The results of the calls since the prompt."""
        return tuple(piece for piece in self._parts()[2] if piece.kind == "result")

    @property
    def cwd(self) -> str:
        """The directory that the program says it works in, or an empty text."""
        told = "\n".join([self.system, *(piece.text for piece in self.pieces if piece.kind == "user")])
        for pattern in PLACES:
            if hit := pattern.search(told):
                return hit[1].strip().rstrip("/") or "/"
        return ""

    def _parts(self) -> tuple[list[Piece], list[Piece], list[Piece]]:
        """What came before the latest words of the person, these words, and what has come since."""
        kept = (piece for piece in self.pieces if piece.kind != "system")
        said = [piece for piece in kept if piece.kind != "user" or _own(piece.text)]
        end = len(said)
        while end and said[end - 1].kind != "user":
            end -= 1
        begin = end
        while begin and said[begin - 1].kind == "user":
            begin -= 1
        return said[:begin], said[begin:end], said[end:]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokens:
    """What a reply is said to have cost; `input` does not count what came from the cache or went to it."""

    input: int = 0
    output: int = 0
    thought: int = 0
    cached_read: int = 0
    cached_write: int = 0

    @property
    def prompt(self) -> int:
        """All that went in."""
        return self.input + self.cached_read + self.cached_write

    @property
    def completion(self) -> int:
        """All that came out."""
        return self.output + self.thought


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """One answer of a model: text, or text and a call."""

    text: str = ""
    thought: str = ""
    call: Call | None = None
    tokens: Tokens = Tokens()
    stop: str = "end_turn"
    id: str = field(default_factory=lambda: uuid4().hex)


class Limit(NamedTuple):
    """A refusal of the server: its status, what it says, and when to come again, in seconds since 1970."""

    status: int
    message: str
    reset: float | None
    now: float

    @property
    def seconds(self) -> int:
        """How long to wait, in whole seconds, at least one."""
        return max(1, round((self.reset or self.now) - self.now))


class Dialect(Protocol):
    """One way to speak with a model over HTTP: a module that is called like it."""

    __name__: str

    def parse(self, path: str, body: Mapping[str, object], /) -> Asked:
        """What a request asks."""

    def plain(self, asked: Asked, reply: Reply, /) -> object:
        """The reply in one piece, as JSON."""

    def stream(self, asked: Asked, reply: Reply, /) -> Iterator[bytes]:
        """The reply as events."""

    def refuse(self, limit: Limit, /) -> tuple[dict[str, str], object]:
        """Headers and JSON of a refusal."""


def pieces_of(text: str, size: int = 200) -> Iterator[str]:
    """A text cut for streaming."""
    return (text[at : at + size] for at in range(0, len(text), size))


def listed(value: object) -> list[Mapping[str, object]]:
    """The objects in a list, or none if it is something else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def words(content: object) -> str:
    """The text of a content that is a text, or a list of blocks that have one."""
    if isinstance(content, str):
        return content
    found = (block.get("text") for block in listed(content))
    return "\n".join(text for text in found if isinstance(text, str))


def tool(name: object, schema: object, kind: str = "function") -> Tool:
    """A tool as its JSON schema describes it."""
    fields = schema if isinstance(schema, dict) else {}
    properties, required = fields.get("properties"), fields.get("required")
    return Tool(
        str(name),
        properties if isinstance(properties, dict) else {},
        tuple(map(str, required)) if isinstance(required, list) else (),
        kind,
    )


def _own(text: str) -> str:
    return "" if INSTRUCTIONS.match(text) else ADDED.sub("", text).strip()
