"""
Scripts for the rehearsal agent: reading them, refusing bad ones, choosing a scene.

The whole script is checked before the first prompt, so a slip in the last scene
is reported at once and not in the middle of a run. A scene is chosen by the
prompt alone and nothing is remembered, so the same prompt gets the same answer
in every process. Places are named as in the file: `scenes[0].do[2]`.

Structures are `NamedTuple`s because importing `dataclasses` would add a third to
the time that the agent needs to start.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

TOOL_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
STOP_REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
USAGE_FIELDS = {
    "input": "inputTokens",
    "output": "outputTokens",
    "thought": "thoughtTokens",
    "cached_read": "cachedReadTokens",
    "cached_write": "cachedWriteTokens",
}
Kind = TypeVar("Kind")
PLACEHOLDER = re.compile(r"\$?\$\{(\w+)\}")


class ScriptError(Exception):
    """A script that cannot be played; the message says where and why."""


class Say(NamedTuple):
    """Stream text as one kind of session update: the agent's message or its thought."""

    update: str
    text: str


class Raw(NamedTuple):
    """Put text as it is on stdout, where only JSON-RPC belongs, or on stderr."""

    descriptor: int
    text: str


class Flood(NamedTuple):
    """Stream this many bytes of message."""

    size: int


class Write(NamedTuple):
    """Write a file or add to its end, inside the session's directory or not."""

    path: str
    text: str
    append: bool


class Delete(NamedTuple):
    """Remove a file."""

    path: str


class Run(NamedTuple):
    """Run a command in the session's directory and wait for it."""

    argv: tuple[str, ...]


class Detach(NamedTuple):
    """Leave a child behind in a session of its own."""

    seconds: float


class Sleep(NamedTuple):
    """Do nothing for a while, or for ever."""

    seconds: float


class Ask(NamedTuple):
    """Ask the client for permission and wait for its answer."""

    title: str
    kind: str


class Deaf(NamedTuple):
    """Never answer, and hear neither a cancellation nor the end of the client."""


class Stop(NamedTuple):
    """Choose the stop reason that the turn will end with."""

    reason: str


class Usage(NamedTuple):
    """Choose the usage that the turn will report, in the protocol's names."""

    tokens: tuple[tuple[str, int], ...]


class Context(NamedTuple):
    """Say how many tokens are in context now."""

    used: int


class Error(NamedTuple):
    """Answer the prompt with a JSON-RPC error."""

    code: int
    message: str


class Exit(NamedTuple):
    """End the process without an answer."""

    code: int


class Die(NamedTuple):
    """End the process by a signal."""

    signal: int


Ending = Stop | Usage | Error | Exit | Die | Deaf
Action = Say | Raw | Flood | Write | Delete | Run | Detach | Sleep | Ask | Context | Ending


class Cue(NamedTuple):
    """An action, and the answer (`allowed` or `denied`) without which it is left out."""

    action: Action
    only_if: str | None


class Scene(NamedTuple):
    """What to do for the prompts that hold every text in `when`."""

    when: tuple[str, ...]
    captures: Mapping[str, re.Pattern[str]]
    cues: tuple[Cue, ...]

    def fits(self, prompt: str) -> bool:
        """Whether this scene answers `prompt`."""
        return all(text in prompt for text in self.when)

    def captured(self, prompt: str) -> dict[str, str]:
        """What the scene's patterns find in `prompt`."""
        found: dict[str, str] = {}
        for name, pattern in self.captures.items():
            hit = pattern.search(prompt)
            if hit is None or hit.group(1) is None:
                raise ScriptError(f"`match.{name}` finds nothing in the prompt: `{pattern.pattern}`")
            found[name] = hit.group(1)
        return found


class Script(NamedTuple):
    """A named list of scenes."""

    name: str
    scenes: tuple[Scene, ...]

    def choose(self, prompt: str) -> int | None:
        """The index of the first scene that fits, if any does."""
        return next((index for index, scene in enumerate(self.scenes) if scene.fits(prompt)), None)


def filled(action: Action, values: Mapping[str, str]) -> Action:
    """The action with each `${name}` replaced; `$${name}` stands for a literal `${name}`."""

    def value_of(hit: re.Match[str]) -> str:
        return hit[0][1:] if hit[0].startswith("$$") else values[hit[1]]

    def fill(field: object) -> object:
        if isinstance(field, str):
            return PLACEHOLDER.sub(value_of, field)
        return tuple(map(fill, field)) if isinstance(field, tuple) else field

    return type(action)._make(map(fill, action))


def load(path: str) -> Script:
    """Read and check the script at `path`."""
    from pathlib import Path

    try:
        return parse(Path(path).read_bytes())
    except OSError as error:
        raise ScriptError(f"cannot read the script `{path}`: {error.strerror}") from error
    except ScriptError as error:
        raise ScriptError(f"bad script `{path}`: {error}") from error


def parse(source: bytes) -> Script:
    """Check a script and return it, or raise `ScriptError` for the first thing that is wrong."""
    try:
        document: object = json.loads(source, object_pairs_hook=_without_duplicates)
    except json.JSONDecodeError as error:
        raise ScriptError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ScriptError(f"not JSON: {error}") from error
    try:
        script = _fields(document, "name", "scenes")
        name, scenes = _text(script["name"]), _list(script["scenes"])
    except ValueError as error:
        raise ScriptError(str(error)) from error
    return Script(name, tuple(_scene(scene, f"scenes[{index}]") for index, scene in enumerate(scenes)))


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ScriptError(f"the key `{key}` stands twice in one object")
        found[key] = value
    return found


def _scene(value: object, place: str) -> Scene:
    try:
        scene = _fields(value, "when", "do", optional=("match",))
        when = tuple(map(_text, _list(scene["when"])))
        match = _object(scene.get("match", {}))
        captures = {name: _pattern(name, pattern) for name, pattern in match.items()}
        actions = _list(scene["do"])
    except ValueError as error:
        raise ScriptError(f"`{place}`: {error}") from error
    cues: list[Cue] = []
    for index, action in enumerate(actions):
        asked = any(isinstance(cue.action, Ask) for cue in cues)
        try:
            cues.append(_cue(action, {"cwd", *captures}, asked=asked))
        except ValueError as error:
            raise ScriptError(f"`{place}.do[{index}]`: {error}") from error
    return Scene(when, captures, tuple(cues))


def _pattern(name: str, value: object) -> re.Pattern[str]:
    if not re.fullmatch(r"\w+", name) or name == "cwd":
        raise ValueError(f"`match` cannot name a value `{name}`")
    try:
        pattern = re.compile(_text(value))
    except re.error as error:
        raise ValueError(f"`match.{name}` is not a regular expression: {error}") from error
    if not pattern.groups:
        raise ValueError(f"`match.{name}` has no group: `{pattern.pattern}`")
    return pattern


def _cue(value: object, names: set[str], *, asked: bool) -> Cue:
    fields = _object(value)
    verbs = [key for key in fields if key != "if"]
    if len(verbs) != 1:
        raise ValueError(f"wants one action, has {', '.join(f'`{verb}`' for verb in verbs) or 'none'}")
    [verb] = verbs
    if verb not in ACTIONS:
        raise ValueError(f"unknown action `{verb}` (known: {', '.join(ACTIONS)})")
    only_if = _one_of("allowed", "denied")(fields["if"]) if "if" in fields else None
    if only_if and not asked:
        raise ValueError("has `if`, but no `ask` comes before it")
    try:
        action = ACTIONS[verb](fields[verb])
        filled(action, dict.fromkeys(names, ""))
    except KeyError as error:
        raise ValueError(f"`{verb}` uses `${{{error.args[0]}}}`, which `match` does not name") from error
    except ValueError as error:
        raise ValueError(f"`{verb}` {error}") from error
    return Cue(action, only_if)


def _expect(value: object, kind: type[Kind], called: str) -> Kind:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"wants {called}, not `{json.dumps(value)}`")
    return value


def _object(value: object) -> dict[str, object]:
    return _expect(value, dict, "an object")


def _list(value: object) -> list[object]:
    return _expect(value, list, "a list")


def _text(value: object) -> str:
    return _expect(value, str, "a text")


def _whole(value: object, low: float = 0, high: float = math.inf) -> int:
    number = _expect(value, int, "a whole number")
    if not low <= number <= high:
        raise ValueError(f"wants a whole number from {low} to {high}, not `{number}`")
    return number


def _fields(value: object, *required: str, optional: tuple[str, ...] = ()) -> dict[str, object]:
    fields = _object(value)
    for key in required:
        if key not in fields:
            raise ValueError(f"has no `{key}`")
    for key in fields:
        if key not in required and key not in optional:
            raise ValueError(f"has an unknown key `{key}`")
    return fields


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e9:
        raise ValueError(f"wants seconds, not `{json.dumps(value)}`")
    return float(value)


def _one_of(*known: str) -> Callable[[object], str]:
    def choice(value: object) -> str:
        if value not in known:
            raise ValueError(f"wants one of {', '.join(known)}, not `{json.dumps(value)}`")
        return str(value)

    return choice


def _write(value: object, *, append: bool) -> Write:
    fields = _fields(value, "path", "text")
    return Write(_text(fields["path"]), _text(fields["text"]), append)


def _run(value: object) -> Run:
    argv = tuple(map(_text, _list(value)))
    if not argv:
        raise ValueError("wants at least a program")
    return Run(argv)


def _hang(value: object) -> Action:
    if value is not True and value != "deaf":
        raise ValueError(f'wants `true` or `"deaf"`, not `{json.dumps(value)}`')
    return Deaf() if value == "deaf" else Sleep(math.inf)


def _ask(value: object) -> Ask:
    fields = _fields(value, "title", optional=("kind",))
    return Ask(_text(fields["title"]), _one_of(*TOOL_KINDS)(fields.get("kind", "edit")))


def _usage(value: object) -> Usage:
    fields = _fields(value, "input", "output", optional=tuple(USAGE_FIELDS))
    return Usage(tuple((USAGE_FIELDS[key], _whole(tokens)) for key, tokens in fields.items()))


def _error(value: object) -> Error:
    fields = _fields(value, "code", "message")
    return Error(_whole(fields["code"], -math.inf), _text(fields["message"]))


def _die(value: object) -> Die:
    import signal

    name = _text(value)
    if f"SIG{name}" not in signal.Signals.__members__:
        raise ValueError(f"wants the name of a signal, such as KILL, not `{name}`")
    return Die(signal.Signals[f"SIG{name}"].value)


ACTIONS: Mapping[str, Callable[[object], Action]] = {
    "say": lambda value: Say("agent_message_chunk", _text(value)),
    "think": lambda value: Say("agent_thought_chunk", _text(value)),
    "write": lambda value: _write(value, append=False),
    "append": lambda value: _write(value, append=True),
    "delete": lambda value: Delete(_text(value)),
    "run": _run,
    "sleep": lambda value: Sleep(_seconds(value)),
    "ask": _ask,
    "usage": _usage,
    "context": lambda value: Context(_whole(value)),
    "stop": lambda value: Stop(_one_of(*STOP_REASONS)(value)),
    "error": _error,
    "exit": lambda value: Exit(_whole(value, 0, 255)),
    "die": _die,
    "hang": _hang,
    "garbage": lambda value: Raw(1, _text(value)),
    "stderr": lambda value: Raw(2, _text(value)),
    "flood": lambda value: Flood(_whole(value)),
    "detach": lambda value: Detach(_seconds(value)),
}
