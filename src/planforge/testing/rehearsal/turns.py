"""
One prompt being answered.

A turn is a generator that yields the time at which it wants to go on, so that
cancellation, other requests and the end of the client are seen while it sleeps,
asks or floods.
"""

import math
import os
import time
from collections.abc import Generator, Iterable
from itertools import count

from planforge.testing import script
from planforge.testing.rehearsal import sessions, streams, tools
from planforge.testing.rehearsal.streams import AUTH_REQUIRED, INTERNAL_ERROR, Fields, Refusal, send
from planforge.testing.script import actions

CHUNK = 1024
WINDOW = 128_000
POLL = 0.02
CALL_NUMBERS = count(1)
NOW, NEVER = -math.inf, math.inf

Play = Generator[float, None, None]


class Turn:
    """One prompt being answered: `play` goes through its scene, `response` is what that came to."""

    def __init__(
        self, session: sessions.Session, request: object, prompt: str, played: script.Script
    ) -> None:
        self.session = session
        self.request = request
        self.prompt = prompt
        self.scene = played.choose(prompt)
        self.play = self._play()
        self.due = NOW
        self.asked: str | None = None
        self.answer: str | None = None
        self.said = ""
        self.ending: actions.Leave | actions.Twice | actions.Truncate | None = None
        self._script = played
        self._values: dict[str, str] = {}
        self._pace = 0.0
        self._stop = "end_turn"
        self._usage: dict[str, int] = {}
        self._quota: Fields = {}

    def response(self) -> Fields:
        """The answer to the prompt; without a `usage` action nothing is said about usage."""
        result: Fields = {"stopReason": self._stop}
        if self._usage:
            result["usage"] = {"totalTokens": sum(self._usage.values()), **self._usage}
        if self._quota:
            result["_meta"] = {"quota": {"token_count": self._quota}}
        return {"result": result}

    def cancel(self) -> bool:
        """Stop; whether that is all, or something is still to be done first."""
        self.play.close()
        self.asked, self.due, self._stop = None, NOW, "cancelled"
        self.play = self._play(when_cancelled=True)
        return self.scene is None or not self._script.scenes[self.scene].when_cancelled

    def _play(self, *, when_cancelled: bool = False) -> Play:
        session = self.session
        given = {"cwd": session.cwd, "mode": session.mode, "model": session.model, "history": session.history}
        try:
            scene, self._values = self._script.begin(self.scene, self.prompt, given)
        except script.ScriptError as error:
            raise Refusal(INTERNAL_ERROR, str(error)) from error
        yield from self._cues(scene.when_cancelled if when_cancelled else scene.cues)

    def _cues(self, cues: Iterable[actions.Cue]) -> Play:
        for cue in cues:
            if cue.only_if in (None, self.answer):
                yield from self._perform(actions.filled(cue.action, self._values))
            yield NOW

    def _perform(self, action: actions.Action) -> Play:
        match action:
            case actions.Say() | actions.Remark() | actions.Flood() | actions.Line():
                yield from self._speak(action)
            case actions.Write() | actions.Edit() | actions.Delete() | actions.Read():
                self._touch(action)
            case actions.Run(argv):
                yield from self._run(argv)
            case actions.Detach(seconds):
                yield from self._run(("sleep", str(seconds)), detached=True)
            case actions.Sleep(seconds):
                yield time.monotonic() + seconds
            case actions.Ask():
                yield from self._ask(action)
            case actions.Tool() | actions.Context() | actions.Plan() | actions.Mode():
                self._tell(action)
            case actions.Raw() | actions.Bytes() | actions.Slow():
                self._disturb(action)
            case _:
                self._end(action)

    def _speak(self, action: actions.Say | actions.Remark | actions.Flood | actions.Line) -> Play:
        match action:
            case actions.Say(update, text):
                yield from self._stream(update, pieces(text))
            case actions.Remark(text):
                yield from self._stream("agent_message_chunk", pieces(text))
            case actions.Flood(size):
                yield from self._stream("agent_message_chunk", flood(size))
            case actions.Line(size):
                content = {"type": "text", "text": "…"}
                streams.send_line(self._updating("agent_message_chunk", content=content), size)

    def _stream(self, update: str, texts: Iterable[str]) -> Play:
        for text in texts:
            self._update(update, content={"type": "text", "text": text})
            if update == "agent_message_chunk" and len(self.said) < sessions.REMEMBERED:
                self.said += text
            yield time.monotonic() + self._pace if self._pace else NOW

    def _ask(self, ask: actions.Ask) -> Play:
        call: Fields = {
            "toolCallId": f"call-{next(CALL_NUMBERS)}",
            "title": ask.title,
            "kind": ask.kind,
            "status": "pending",
        }
        if ask.paths:
            call["locations"] = [{"path": self._absolute(path)} for path in ask.paths]
        options = [
            {"optionId": choice, "name": choice, "kind": choice} for choice in ("allow_once", "reject_once")
        ]
        self.asked = f"permission-{call['toolCallId']}"
        params = {"sessionId": self.session.name, "toolCall": call, "options": options}
        send({"id": self.asked, "method": "session/request_permission", "params": params})
        yield NEVER
        yield from self._cues(ask.allowed if self.answer == "allowed" else ask.denied)

    def _tell(self, action: actions.Tool | actions.Context | actions.Plan | actions.Mode) -> None:
        match action:
            case actions.Tool():
                self._call(action)
            case actions.Context(used, size, cost, currency):
                fields: Fields = {"used": used, "size": size or max(used, WINDOW)}
                if cost is not None:
                    fields["cost"] = {"amount": cost, "currency": currency}
                self._update("usage_update", **fields)
            case actions.Plan(entries):
                steps = [{"content": text, "priority": "medium", "status": state} for text, state in entries]
                self._update("plan", entries=steps)
            case actions.Mode(name):
                self.session.mode = self._values["mode"] = name
                self._update("current_mode_update", currentModeId=name)

    def _call(self, tool: actions.Tool) -> None:
        places = [{"path": self._absolute(path)} for path in tool.paths]
        call = self._announce(tool.name, tool.kind, rawInput=dict(tool.input), locations=places)
        content = (
            [{"type": "content", "content": {"type": "text", "text": tool.output}}] if tool.output else []
        )
        if tool.status not in ("pending", "in_progress"):
            self._conclude(call, tool.status, content=content)

    def _disturb(self, action: actions.Raw | actions.Bytes | actions.Slow) -> None:
        match action:
            case actions.Raw(descriptor, text):
                streams.put(descriptor, text.encode(errors="replace"))
            case actions.Bytes(data):
                streams.put(1, data)
            case actions.Slow(seconds):
                self._pace = seconds

    def _end(self, action: actions.Ending) -> None:
        match action:
            case actions.Stop(reason):
                self._stop = reason
            case actions.Usage(tokens):
                for name, number in tokens:
                    self._usage[name] = self._usage.get(name, 0) + number
            case actions.Quota(tokens_in, tokens_out):
                self._quota = {"input_tokens": tokens_in, "output_tokens": tokens_out}
            case actions.Leave() | actions.Twice() | actions.Truncate():
                self.ending = action
            case actions.Error() | actions.Http():
                self._fail(action)
            case actions.Exit() | actions.Drop() | actions.Deaf() | actions.Die():
                vanish(action)

    def _fail(self, action: actions.Error | actions.Http) -> None:
        if not sessions.is_due(action.times, f"{self.prompt}\0{action!r}"):
            return
        if isinstance(action, actions.Error):
            raise Refusal(action.code, action.message, action.data)
        data: Fields = {"status": action.status}
        if action.reset is not None:
            data["resetsAt"] = action.resets_at(time.time())
        if action.status == 401:
            raise Refusal(AUTH_REQUIRED, action.message or "Authentication required", data)
        raise Refusal(INTERNAL_ERROR, action.message or f"the model's server answered {action.status}", data)

    def _touch(self, action: tools.Touching) -> None:
        kind, path = tools.kind_of(action), self._absolute(action.path)
        call = self._announce(f"{kind} {action.path}", kind, locations=[{"path": path}])
        try:
            if kind != "read":
                self._check_mode()
            tools.touch(action, path)
        except (OSError, ValueError) as error:
            self._conclude(call, "failed", rawOutput={"error": str(error)})
        else:
            self._conclude(call, "completed", locations=[{"path": path}])

    def _run(self, argv: tuple[str, ...], *, detached: bool = False) -> Play:
        from subprocess import DEVNULL, Popen

        call = self._announce(" ".join(argv), "execute")
        try:
            self._check_mode()
            child = Popen(
                argv,
                cwd=self.session.cwd,
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                start_new_session=detached,
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

    def _check_mode(self) -> None:
        if self.session.mode in self._script.manners.read_only:
            raise PermissionError(f"mode `{self.session.mode}` changes nothing")

    def _absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self.session.cwd, path))  # noqa: PTH118

    def _announce(self, title: str, kind: str, **fields: object) -> str:
        call = f"call-{next(CALL_NUMBERS)}"
        self._update("tool_call", toolCallId=call, title=title, kind=kind, status="in_progress", **fields)
        return call

    def _conclude(self, call: str, status: str, **fields: object) -> None:
        self._update("tool_call_update", toolCallId=call, status=status, **fields)

    def _update(self, session_update: str, /, **fields: object) -> None:
        send(self._updating(session_update, **fields))

    def _updating(self, session_update: str, /, **fields: object) -> Fields:
        params = {"sessionId": self.session.name, "update": {"sessionUpdate": session_update, **fields}}
        return {"method": "session/update", "params": params}


def vanish(action: actions.Exit | actions.Drop | actions.Deaf | actions.Die) -> None:
    """Be gone, without an answer."""
    match action:
        case actions.Exit(code):
            os._exit(code)
        case actions.Drop():
            os._exit(0)
        case actions.Deaf():
            streams.be_deaf()
        case actions.Die(number):
            streams.die(number)


def flood(size: float) -> Iterable[str]:
    """So much text, of which only a piece exists at any time."""
    while size > 0:
        yield "x" * int(min(size, CHUNK))
        size -= CHUNK


def pieces(text: str) -> Iterable[str]:
    """A text cut for streaming."""
    return (text[at : at + CHUNK] for at in range(0, len(text), CHUNK))
