"""
The rehearsal agent: a program that speaks the Agent Client Protocol and plays a script.

A turn is a generator that yields the time at which it wants to go on. One loop
over stdin drives all turns, so cancellation, other requests and the end of the
client are seen while a turn sleeps, asks or floods. Only the standard library
is imported, and little of that before it is needed: tests start this program
thousands of times.
"""

import json
import math
import os
import select
import sys
import time
from collections.abc import Callable, Generator, Iterable
from itertools import count
from typing import NoReturn

from planforge import __version__
from planforge.agents import rehearsal_script as script

SCRIPT_VARIABLE = "PLANFORGE_REHEARSAL_SCRIPT"
JOURNAL_VARIABLE = "PLANFORGE_REHEARSAL_JOURNAL"

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
CHUNK = 1024
WINDOW = 128_000
POLL = 0.02
CALL_NUMBERS = count(1)
NOW, NEVER = -math.inf, math.inf

Fields = dict[str, object]
Play = Generator[float, None, None]


class Refusal(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.response: Fields = {"error": {"code": code, "message": message}}


class Turn:
    """One prompt being answered: `play` goes through its scene, `response` is what that came to."""

    def __init__(self, session: str, cwd: str, request: object, prompt: str, played: script.Script) -> None:
        self.session = session
        self.cwd = cwd
        self.request = request
        self.prompt = prompt
        self.scene = played.choose(prompt)
        self.play = self._play(played)
        self.due = NOW
        self.asked: str | None = None
        self.answer: str | None = None
        self._stop = "end_turn"
        self._usage: dict[str, int] = {}

    def response(self, stop: str | None = None) -> Fields:
        """The answer to the prompt; without a `usage` action nothing is said about usage."""
        result: Fields = {"stopReason": stop or self._stop}
        if self._usage:
            result["usage"] = {"totalTokens": sum(self._usage.values()), **self._usage}
        return {"result": result}

    def _play(self, played: script.Script) -> Play:
        if self.scene is None:
            first_line = self.prompt.strip().partition("\n")[0][:200]
            raise Refusal(INTERNAL_ERROR, f"no scene of `{played.name}` fits the prompt `{first_line}`")
        scene = played.scenes[self.scene]
        try:
            values = {"cwd": self.cwd, **scene.captured(self.prompt)}
        except script.ScriptError as error:
            raise Refusal(INTERNAL_ERROR, f"`scenes[{self.scene}]`: {error}") from error
        for cue in scene.cues:
            if cue.only_if in (None, self.answer):
                yield from self._perform(script.filled(cue.action, values))
            yield NOW

    def _perform(self, action: script.Action) -> Play:
        match action:
            case script.Say(update, text):
                yield from self._stream(update, (text[at : at + CHUNK] for at in range(0, len(text), CHUNK)))
            case script.Flood(size):
                lengths = (min(CHUNK, left) for left in range(size, 0, -CHUNK))
                yield from self._stream("agent_message_chunk", ("x" * length for length in lengths))
            case script.Raw(descriptor, text):
                put(descriptor, text.encode(errors="replace"))
            case script.Write() | script.Delete():
                self._edit(action)
            case script.Run(argv):
                yield from self._run(argv)
            case script.Detach(seconds):
                yield from self._run(("sleep", str(seconds)), detached=True)
            case script.Sleep(seconds):
                yield time.monotonic() + seconds
            case script.Context(used):
                self._update("usage_update", used=used, size=max(used, WINDOW))
            case script.Ask(title, kind):
                yield from self._ask(title, kind)
            case _:
                self._end(action)

    def _stream(self, update: str, texts: Iterable[str]) -> Play:
        for text in texts:
            self._update(update, content={"type": "text", "text": text})
            yield NOW

    def _ask(self, title: str, kind: str) -> Play:
        call = {"toolCallId": f"call-{next(CALL_NUMBERS)}", "title": title, "kind": kind, "status": "pending"}
        options = [
            {"optionId": choice, "name": choice, "kind": choice} for choice in ("allow_once", "reject_once")
        ]
        self.asked = f"permission-{call['toolCallId']}"
        params = {"sessionId": self.session, "toolCall": call, "options": options}
        send({"id": self.asked, "method": "session/request_permission", "params": params})
        yield NEVER

    def _end(self, action: script.Ending) -> None:
        match action:
            case script.Stop(reason):
                self._stop = reason
            case script.Usage(tokens):
                self._usage = dict(tokens)
            case script.Error(code, message):
                raise Refusal(code, message)
            case script.Exit(code):
                os._exit(code)
            case script.Deaf():
                be_deaf()
            case script.Die(number):
                die(number)

    def _edit(self, action: script.Write | script.Delete) -> None:
        kind = "delete" if isinstance(action, script.Delete) else "edit"
        path = os.path.normpath(os.path.join(self.cwd, action.path))  # noqa: PTH118
        call = self._announce(f"{kind} {action.path}", kind, locations=[{"path": path}])
        try:
            edit(action, path)
        except (OSError, ValueError) as error:
            self._conclude(call, "failed", rawOutput={"error": str(error)})
        else:
            self._conclude(call, "completed", locations=[{"path": path}])

    def _run(self, argv: tuple[str, ...], *, detached: bool = False) -> Play:
        from subprocess import DEVNULL, Popen

        call = self._announce(" ".join(argv), "execute")
        try:
            child = Popen(
                argv, cwd=self.cwd, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=detached
            )
        except (OSError, ValueError) as error:
            self._conclude(call, "failed", rawOutput={"error": str(error)})
            return
        if detached:
            self._conclude(call, "completed", rawOutput={"pid": child.pid})
            return
        try:
            while child.poll() is None:
                yield time.monotonic() + POLL
        finally:
            child.kill()
            child.wait()
        status = "failed" if child.returncode else "completed"
        self._conclude(call, status, rawOutput={"exitCode": child.returncode})

    def _announce(self, title: str, kind: str, **fields: object) -> str:
        call = f"call-{next(CALL_NUMBERS)}"
        self._update("tool_call", toolCallId=call, title=title, kind=kind, status="in_progress", **fields)
        return call

    def _conclude(self, call: str, status: str, **fields: object) -> None:
        self._update("tool_call_update", toolCallId=call, status=status, **fields)

    def _update(self, session_update: str, /, **fields: object) -> None:
        params = {"sessionId": self.session, "update": {"sessionUpdate": session_update, **fields}}
        send({"method": "session/update", "params": params})


class Agent:
    """The protocol: answers requests, and drives the turns that prompts begin."""

    def __init__(self, script_path: str | None) -> None:
        self._script_path = script_path
        self._script: script.Script | None = None
        self._sessions: dict[str, str] = {}
        self._turns: list[Turn] = []
        self._handlers: dict[str, Callable[[Fields], Fields]] = {
            "initialize": self._initialize,
            "authenticate": lambda _: {},
            "session/new": self._new_session,
            "session/set_mode": lambda _: {},
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
            case {"method": "session/cancel", "params": {"sessionId": session}}:
                for turn in [turn for turn in self._turns if turn.session == session]:
                    self._finish(turn, turn.response("cancelled"))
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
        return {
            "protocolVersion": 1,
            "agentInfo": {"name": "planforge-rehearsal", "version": __version__},
            "agentCapabilities": {"loadSession": False},
            "authMethods": [],
        }

    def _new_session(self, params: Fields) -> Fields:
        from pathlib import Path

        try:
            if not self._script_path:
                raise script.ScriptError(f"no script: give its path, or set `{SCRIPT_VARIABLE}`")
            self._script = script.load(self._script_path)
        except script.ScriptError as error:
            put(2, f"planforge-rehearsal: {error}\n".encode(errors="replace"))
            raise Refusal(INTERNAL_ERROR, str(error)) from error
        cwd = params.get("cwd")
        if not isinstance(cwd, str) or not Path(cwd).is_absolute() or not Path(cwd).is_dir():
            raise Refusal(INVALID_PARAMS, f"`cwd` is not the absolute path of a directory: `{cwd}`")
        session = f"rehearsal-{len(self._sessions) + 1}"
        self._sessions[session] = cwd
        return {"sessionId": session}

    def _begin(self, request: object, params: Fields) -> None:
        session = str(params.get("sessionId"))
        if session not in self._sessions or self._script is None:
            raise Refusal(INVALID_PARAMS, f"unknown session `{session}`")
        if any(turn.session == session for turn in self._turns):
            raise Refusal(INVALID_REQUEST, f"session `{session}` is still answering a prompt")
        prompt = prompt_text(params.get("prompt"))
        turn = Turn(session, self._sessions[session], request, prompt, self._script)
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
        send({"id": turn.request, **response})

    def _take_answer(self, request: str, answer: object) -> None:
        for turn in self._turns:
            if turn.asked == request:
                match answer:
                    case {"result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}}}:
                        turn.answer = "allowed"
                    case _:
                        turn.answer = "denied"
                turn.asked, turn.due = None, NOW


def put(descriptor: int, data: bytes) -> None:
    """Write all of `data`, past Python's buffers, so that a sudden end loses none of it."""
    while data:
        data = data[os.write(descriptor, data) :]


def send(message: Fields) -> None:
    """Send one message to the client."""
    put(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


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


def edit(action: script.Write | script.Delete, path: str) -> None:
    """Change the file at `path` as the action says."""
    from pathlib import Path

    file = Path(path)
    if isinstance(action, script.Delete):
        file.unlink()
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a" if action.append else "w", encoding="utf-8") as stream:
        stream.write(action.text)


def die(number: int) -> None:
    """End by a signal, whatever Python would make of it."""
    import signal

    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def be_deaf() -> NoReturn:
    """Live on and listen to nobody; only SIGKILL helps."""
    import signal

    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        signal.pause()


def main() -> int:
    """Play the script named by the argument or by the environment, until the client is gone."""
    arguments = sys.argv[1:]
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        put(2, b"usage: planforge-rehearsal [SCRIPT.json]\n")
        return 2
    try:
        Agent(arguments[0] if arguments else os.environ.get(SCRIPT_VARIABLE)).serve()
    except ConnectionError:  # the client went away while it was being written to
        return 0
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
