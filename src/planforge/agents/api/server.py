"""
The Agent Client Protocol, as an agent: sessions, their modes and models, and one turn at a time in each.

What asks models is loaded with the first prompt, so that a client which only wants to know whom it talks to
is answered at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from planforge import __version__
from planforge.agents.api.options import Mode, Options
from planforge.agents.api.tools import shell
from planforge.agents.api.updates import Updates
from planforge.agents.api.wire import Wire, standard_streams
from planforge.agents.rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    Fields,
    Peer,
    Refusal,
)

if TYPE_CHECKING:
    from planforge.agents.api.histories import History
    from planforge.agents.api.turns import Question, Turn

PROTOCOL = 1
"""The version of the protocol that is spoken here."""

NAMES: dict[Mode, tuple[str, str]] = {
    "text": ("Text", "no tools"),
    "read": ("Read", "reads, lists and searches"),
    "ask": ("Ask", "asks before it writes, edits or runs anything"),
    "write": ("Write", "writes, edits and runs commands without asking"),
}

META = "planforge"
"""The part of `_meta` that is ours: `{"planforge": {"schema": …}}`."""


class Session(msgspec.Struct):
    """One conversation with its client."""

    cwd: Path
    mode: Mode
    model: str
    history: History
    schema: dict[str, Any] | None
    turn: Turn | None = None


class ModelAgent:
    """Our side of the protocol."""

    def __init__(self, options: Options, key: str, wire: Wire) -> None:
        self._options = options
        self._key = key
        self.client = Peer(wire.send, self)
        self._sessions: dict[str, Session] = {}
        self._handlers: dict[str, Callable[[Fields], Awaitable[Fields]]] = {
            "initialize": self.initialize,
            "session/new": self.new,
            "session/load": self.load,
            "session/resume": self.resume,
            "session/set_mode": self.set_mode,
            "session/set_config_option": self.set_option,
            "session/prompt": self.prompt,
        }

    async def answer(self, method: str, params: object) -> Fields:
        """Do what the client asks."""
        given = params or {}
        if method not in self._handlers:
            raise Refusal(METHOD_NOT_FOUND, f"unknown method `{method}`")
        if not isinstance(given, dict):
            raise invalid("`params` is not an object")
        return await self._handlers[method](given)

    def hear(self, method: str, params: object) -> None:
        """Stop the turn of a session, if that is what the client wants and there is one."""
        match params:
            case {"sessionId": str(name)} if method == "session/cancel":
                session = self._sessions.get(name)
                if session is not None and session.turn is not None:
                    session.turn.cancel()

    async def initialize(self, _: Fields) -> Fields:
        """What we are and can do."""
        return {
            "protocolVersion": PROTOCOL,
            "agentInfo": {"name": "planforge-api", "version": __version__},
            "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}},
            "authMethods": [],
        }

    async def new(self, params: Fields) -> Fields:
        """Begin a conversation."""
        from planforge.agents.api import histories

        history = histories.begin()
        return {"sessionId": history.session, **self._described(self._open(params, history))}

    async def load(self, params: Fields) -> Fields:
        """Resume a conversation and replay it to the client."""
        session = self._open(params, _known(params))
        await self._tell_again(session)
        return self._described(session)

    async def resume(self, params: Fields) -> Fields:
        """Resume a conversation without replaying it."""
        return self._described(self._open(params, _known(params)))

    async def set_mode(self, params: Fields) -> Fields:
        """Change what the model may do, from the next turn on."""
        wanted = params.get("modeId")
        mode = next((mode for mode in self._options.modes if mode == wanted), None)
        if mode is None:
            raise invalid(f"there is no mode `{wanted}`; there are {', '.join(self._options.modes)}")
        self._session(params).mode = mode
        return {}

    async def set_option(self, params: Fields) -> Fields:
        """Change the model, from the next turn on."""
        session = self._session(params)
        match params:
            case {"configId": "model", "value": str(model)} if model:
                session.model = model
                return {"configOptions": _config(session)}
        raise invalid(f"there is no option `{params.get('configId')}` that could be `{params.get('value')}`")

    async def prompt(self, params: Fields) -> Fields:
        """Put one question to the model."""
        from planforge.agents.api.turns import Turn

        session = self._session(params)
        if session.turn is not None:
            raise Refusal(INVALID_REQUEST, f"session `{session.history.session}` is still at a prompt")
        question = self._question(session, _prompt(params), _schema(params) or session.schema)
        turn = Turn(self._options, self._updates(session), session.history, question)
        session.turn = turn
        try:
            return await turn.take()
        finally:
            session.turn = None

    def _open(self, params: Fields, history: History) -> Session:
        cwd = str(params.get("cwd"))
        root = Path(cwd)
        if not root.is_absolute() or not root.is_dir():
            raise invalid(f"`cwd` is not the absolute path of a directory: `{cwd}`")
        model = self._options.model or history.model
        session = Session(root, self._options.mode, model, history, _schema(params))
        self._sessions[history.session] = session
        return session

    def _session(self, params: Fields) -> Session:
        name = str(params.get("sessionId"))
        if name not in self._sessions:
            raise invalid(f"unknown session `{name}`")
        return self._sessions[name]

    def _updates(self, session: Session) -> Updates:
        return Updates(self.client, session.history.session)

    def _question(self, session: Session, text: str, schema: dict[str, Any] | None) -> Question:
        from planforge.agents.api import failures, providers
        from planforge.agents.api.turns import Question

        if not session.model:
            raise invalid("no model: start the program with `--model`, or set the session's option `model`")
        session.history.model = session.model
        try:
            model = providers.model(self._options, self._key, session.model)
        except providers.NoKey as error:
            raise failures.refusal(error) from error
        return Question(prompt=text, root=session.cwd, mode=session.mode, model=model, schema=schema)

    def _described(self, session: Session) -> Fields:
        offered = [(mode, *NAMES[mode]) for mode in self._options.modes]
        modes = [{"id": mode, "name": name, "description": what} for mode, name, what in offered]
        return {
            "modes": {"currentModeId": session.mode, "availableModes": modes},
            "configOptions": _config(session),
        }

    async def _tell_again(self, session: Session) -> None:
        from planforge.agents.api import histories

        updates = self._updates(session)
        for text, by_user in histories.said(session.history):
            await updates.heard(text, by_user=by_user)


async def serve(options: Options, key: str) -> None:
    """Serve one client on standard input and output until it is gone."""
    shell.adopt_orphans()
    wire = await standard_streams()
    await wire.serve(ModelAgent(options, key, wire).client)


def run(options: Options, key: str) -> int:
    """Serve one client, from outside of any event loop; the exit code. What is running is ended first."""
    told: list[int] = []

    async def until_told() -> None:
        serving = asyncio.ensure_future(serve(options, key))

        def stop(number: int) -> None:
            told.append(number)
            serving.cancel()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        await serving

    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(until_told())
    return 128 + told[0] if told else 0


def invalid(message: str) -> Refusal:
    """The refusal of a request that makes no sense."""
    return Refusal(INVALID_PARAMS, message)


def _config(session: Session) -> list[Fields]:
    chosen = session.model or "none"
    return [
        {
            "type": "select",
            "id": "model",
            "name": "Model",
            "category": "model",
            "currentValue": chosen,
            "options": [{"value": chosen, "name": chosen}],
        }
    ]


def _known(params: Fields) -> History:
    from planforge.agents.api import histories

    try:
        return histories.load(str(params.get("sessionId")))
    except histories.Unknown as error:
        raise Refusal(NOT_FOUND, str(error), {"kind": "unknown_session", "message": str(error)}) from error


def _prompt(params: Fields) -> str:
    match params.get("prompt"):
        case [*blocks]:
            texts = [block.get("text") for block in blocks if isinstance(block, dict)]
            return "\n".join(text for text in texts if isinstance(text, str))
    raise invalid("`prompt` is not a list of content blocks")


def _schema(params: Fields) -> dict[str, Any] | None:
    """The JSON schema that the client wants an answer to have, given as such or as its text."""
    match params.get("_meta"):
        case {"planforge": {"schema": dict(schema)}}:
            return schema
        case {"planforge": {"schema": str(text)}} if text:
            try:
                schema = json.loads(text)
            except ValueError as error:
                raise invalid(f"`_meta.{META}.schema` is not JSON: {error}") from error
            if isinstance(schema, dict):
                return schema
            raise invalid(f"`_meta.{META}.schema` is not an object")
    return None
