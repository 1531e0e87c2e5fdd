"""
The protocol: answers requests, and drives the turns that prompts begin.

One loop over stdin drives all turns, so whatever a turn does, its client is heard.
"""

import contextlib
import json
import os
import select
import time
from collections.abc import Callable, Sequence

from planforge import __version__
from planforge.testing import script
from planforge.testing.rehearsal.sessions import SESSIONS_VARIABLE, Session
from planforge.testing.rehearsal.streams import (
    AUTH_REQUIRED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NOT_FOUND,
    PARSE_ERROR,
    UNKNOWN_METHOD,
    Fields,
    Refusal,
    line_of,
    put,
    send,
)
from planforge.testing.rehearsal.turns import NEVER, NOW, Turn
from planforge.testing.script import actions

SCRIPT_VARIABLE = "PLANFORGE_REHEARSAL_SCRIPT"
JOURNAL_VARIABLE = "PLANFORGE_REHEARSAL_JOURNAL"
OPTIONS = {"--journal": JOURNAL_VARIABLE, "--sessions": SESSIONS_VARIABLE}
HIDDEN = "if it is there, a sandbox hides it: name it in `reads` of the agent's profile"
USAGE = b"usage: planforge-rehearsal [--journal FILE] [--sessions DIRECTORY] [SCRIPT.json]\n"


class Agent:
    """The protocol's side of things."""

    def __init__(self, script_path: str | None) -> None:
        self._script_path = script_path
        self._script: script.Script | None = None
        self._manners = script.Manners()
        self._known = False
        self._sessions: dict[str, Session] = {}
        self._turns: list[Turn] = []
        self._handlers: dict[str, Callable[[Fields], Fields]] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new_session,
            "session/load": lambda params: self._take_up(params, replay=True),
            "session/resume": lambda params: self._take_up(params, replay=False),
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    def serve(self) -> None:
        """Answer until the client is gone; the turns under way then end with the commands they run."""
        rest = b""
        try:
            while True:
                wait = min((turn.due for turn in self._turns), default=NEVER) - time.monotonic()
                if select.select([0], [], [], min(max(wait, 0), 3600))[0]:
                    data = os.read(0, 65536)
                    if not data:
                        return
                    *lines, rest = (rest + data).split(b"\n")
                    for line in filter(bytes.strip, lines):
                        self._hear(line)
                for turn in list(self._turns):
                    if turn.due <= time.monotonic():
                        self._advance(turn)
        finally:
            for turn in self._turns:
                turn.play.close()

    def _hear(self, line: bytes) -> None:
        try:
            message: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            send({"id": None, **Refusal(PARSE_ERROR, f"not JSON: {error}").response})
            return
        match message:
            case {"method": str(method), "id": request, **others}:
                self._reply(request, method, others.get("params", {}))
            case {"method": "session/cancel", "params": {"sessionId": name}}:
                for turn in [turn for turn in self._turns if turn.session.name == name]:
                    if turn.cancel():
                        self._finish(turn, turn.response())
            case {"id": str(request), **answer} if "method" not in answer:
                self._take_answer(request, answer)
            case {"method": str()} | {"result": _} | {"error": _}:
                pass
            case _:
                send({"id": None, **Refusal(INVALID_REQUEST, "not a JSON-RPC message").response})

    def _reply(self, request: object, method: str, params: object) -> None:
        """Answer a request, or begin the turn that will."""
        try:
            if not isinstance(params, dict):
                raise Refusal(INVALID_PARAMS, "`params` is not an object")
            if method == "session/prompt":
                self._begin(request, params)
                return
            if method not in self._handlers:
                raise Refusal(UNKNOWN_METHOD, f"unknown method `{method}`")
            response: Fields = {"result": self._handlers[method](params)}
        except Refusal as refusal:
            response = refusal.response
        send({"id": request, **response})

    def _initialize(self, _: Fields) -> Fields:
        with contextlib.suppress(script.ScriptError):  # the first session will say what is wrong
            self._read_script()
        manners = self._manners
        capabilities: Fields = {"loadSession": manners.load}
        if manners.resume:
            capabilities["sessionCapabilities"] = {"resume": {}}
        return {
            "protocolVersion": 1,
            "agentInfo": {"name": "planforge-rehearsal", "version": __version__},
            "agentCapabilities": capabilities,
            "authMethods": [{"id": name, "name": name} for name in manners.auth],
        }

    def _authenticate(self, params: Fields) -> Fields:
        method = params.get("methodId")
        if self._manners.auth and method not in self._manners.auth:
            raise Refusal(INVALID_PARAMS, f"unknown way to log in `{method}`")
        self._known = True
        return {}

    def _new_session(self, params: Fields) -> Fields:
        manners, cwd = self._prepare(params)
        session = Session(self._name(), cwd, *_settings(manners))
        self._sessions[session.name] = session
        if manners.load or manners.resume:
            from planforge.testing.rehearsal import sessions

            sessions.keep(session)
        return {"sessionId": session.name, **self._choices(session)}

    def _take_up(self, params: Fields, *, replay: bool) -> Fields:
        from planforge.testing.rehearsal import sessions

        if not (self._manners.load if replay else self._manners.resume):
            raise Refusal(UNKNOWN_METHOD, f"unknown method `session/{'load' if replay else 'resume'}`")
        manners, cwd = self._prepare(params)
        name = str(params.get("sessionId"))
        session = sessions.recall(name, cwd, *_settings(manners))
        if session is None:
            raise Refusal(NOT_FOUND, f"unknown session `{name}`")
        self._sessions[name] = session
        for texts in session.said if replay else []:
            for kind, text in zip(("user_message_chunk", "agent_message_chunk"), texts, strict=True):
                update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
                send({"method": "session/update", "params": {"sessionId": name, "update": update}})
        return self._choices(session)

    def _prepare(self, params: Fields) -> tuple[script.Manners, str]:
        """What every session needs: a good script, a login if that is asked for, a directory."""
        from pathlib import Path

        try:
            self._read_script()
        except script.ScriptError as error:
            put(2, f"planforge-rehearsal: {error}\n".encode(errors="replace"))
            raise Refusal(INTERNAL_ERROR, str(error)) from error
        if self._manners.login and not self._known:
            raise Refusal(AUTH_REQUIRED, "Authentication required")
        cwd = params.get("cwd")
        if not isinstance(cwd, str) or not Path(cwd).is_absolute() or not Path(cwd).is_dir():
            raise Refusal(INVALID_PARAMS, f"`cwd` is not the absolute path of a directory: `{cwd}`")
        return self._manners, cwd

    def _read_script(self) -> None:
        if not self._script_path:
            raise script.ScriptError(
                f"no script: give its path, or set `{SCRIPT_VARIABLE}` in `env` of the agent's profile"
            )
        try:
            self._script = script.load(self._script_path)
        except script.ScriptError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise script.ScriptError(f"{error}; {HIDDEN}") from error
            raise
        self._manners = self._script.manners

    def _name(self) -> str:
        """A name for a session: one of its own if another process is to know it, else a number."""
        if self._manners.load or self._manners.resume:
            return f"rehearsal-{os.urandom(8).hex()}"
        return f"rehearsal-{len(self._sessions) + 1}"

    def _choices(self, session: Session) -> Fields:
        """The modes and models that there are, and which of them are set."""
        manners = self._manners
        found: Fields = {}
        if manners.modes:
            available = [{"id": name, "name": name} for name in manners.modes]
            found["modes"] = {"currentModeId": session.mode, "availableModes": available}
        if manners.models:
            found["configOptions"] = [
                {
                    "id": "model",
                    "name": "Model",
                    "type": "select",
                    "category": "model",
                    "currentValue": session.model,
                    "options": [{"value": name, "name": name} for name in manners.models],
                }
            ]
        return found

    def _set_mode(self, params: Fields) -> Fields:
        if not self._manners.modes:
            return {}
        self._session(params).mode = _one_of(self._manners.modes, params.get("modeId"), "mode")
        return {}

    def _set_option(self, params: Fields) -> Fields:
        session = self._session(params)
        if params.get("configId") != "model" or not self._manners.models:
            raise Refusal(INVALID_PARAMS, f"unknown option `{params.get('configId')}`")
        session.model = _one_of(self._manners.models, params.get("value"), "model")
        return {"configOptions": self._choices(session)["configOptions"]}

    def _session(self, params: Fields) -> Session:
        name = str(params.get("sessionId"))
        if name not in self._sessions:
            raise Refusal(INVALID_PARAMS, f"unknown session `{name}`")
        return self._sessions[name]

    def _begin(self, request: object, params: Fields) -> None:
        session = self._session(params)
        assert self._script is not None
        if any(turn.session is session for turn in self._turns):
            raise Refusal(INVALID_REQUEST, f"session `{session.name}` is still answering a prompt")
        turn = Turn(session, request, prompt_text(params.get("prompt")), self._script)
        record("asked", turn)
        self._turns.append(turn)

    def _advance(self, turn: Turn) -> None:
        try:
            turn.due = next(turn.play)
        except StopIteration:
            self._finish(turn, turn.response())
        except Refusal as refusal:
            self._finish(turn, refusal.response)

    def _finish(self, turn: Turn, response: Fields) -> None:
        """Answer the prompt; the journal knows of it before the client does."""
        turn.play.close()
        self._turns.remove(turn)
        record("answered", turn)
        turn.session.remember(turn.prompt, turn.said)
        line = line_of({"id": turn.request, **response})
        match turn.ending:
            case actions.Truncate():
                put(1, line[: len(line) // 2])
                os._exit(0)
            case actions.Leave(code):
                put(1, line)
                os._exit(code)
            case actions.Twice():
                put(1, line + line)
            case _:
                put(1, line)

    def _take_answer(self, request: str, answer: object) -> None:
        for turn in self._turns:
            if turn.asked == request:
                match answer:
                    case {"result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}}}:
                        turn.answer = "allowed"
                    case _:
                        turn.answer = "denied"
                turn.asked, turn.due = None, NOW


def _settings(manners: script.Manners) -> tuple[str, str]:
    """The mode and the model that a session begins with."""
    return next(iter(manners.modes), ""), next(iter(manners.models), "")


def _one_of(known: Sequence[str], value: object, called: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise Refusal(INVALID_PARAMS, f"unknown {called} `{value}`")
    return value


def prompt_text(blocks: object) -> str:
    """The text blocks of a prompt, a line break between them."""
    if not isinstance(blocks, list):
        raise Refusal(INVALID_PARAMS, "`prompt` is not a list of content blocks")
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def record(event: str, turn: Turn) -> None:
    """Add one line to the journal, if one is kept, in a single write that no other process can split."""
    path = os.environ.get(JOURNAL_VARIABLE)
    if not path:
        return
    from hashlib import sha256
    from pathlib import Path

    prompt = sha256(turn.prompt.encode(errors="surrogatepass")).hexdigest()
    line = json.dumps({"event": event, "prompt": prompt, "scene": turn.scene, "pid": os.getpid()})
    try:
        with Path(path).open("ab", buffering=0) as journal:
            journal.write(line.encode() + b"\n")
    except OSError as error:
        raise Refusal(INTERNAL_ERROR, f"cannot write the journal `{path}`: {error.strerror}") from error


def play(arguments: Sequence[str]) -> int:
    """Play the script that an argument or the environment names, until the client is gone."""
    *options, path = arguments if len(arguments) % 2 else [*arguments, ""]
    named = dict(zip(options[::2], options[1::2], strict=True))
    if path.startswith("-") or not named.keys() <= OPTIONS.keys():
        put(2, USAGE)
        return 2
    os.environ |= {OPTIONS[option]: value for option, value in named.items()}
    try:
        Agent(path or os.environ.get(SCRIPT_VARIABLE)).serve()
    except ConnectionError:  # the client went away while it was being written to
        return 0
    except KeyboardInterrupt:
        return 130
    return 0
