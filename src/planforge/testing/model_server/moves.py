"""
What the model does next: which scene it is in, and how far.

Both are read off the request: the scene fits the latest prompt, and each result
since that prompt stands for one call that was made. Nothing is remembered, so any
number of programs can be served at once, and a conversation can be taken up by
another process. The one exception is a fault that is to come only so many times.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from planforge.testing.model_server import tools
from planforge.testing.model_server.conversation import Asked, Call, Piece, Reply, Tokens
from planforge.testing.script import Script, ScriptError, actions

UNREAD = re.compile(
    r"has not been read|read (?:it|the file) first|must read (?:the )?file|before overwriting", re.I
)
RUNNING = re.compile(r"Process running with session ID (\d+)")
SUGGESTION = "[SUGGESTION MODE"
TITLE = re.compile(
    r"title generator|naming a coding session|generate a (?:very |short |brief |concise )*title|next speaker",
    re.IGNORECASE,
)
POLLS = 40

Playing = Generator[Call, Piece, None]
Fault = actions.Http | actions.Truncate | actions.Drop | actions.Raw | actions.Error | actions.Bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """What the server does with a request: wait, then reply, well or badly."""

    scene: int | None
    reply: Reply = field(default_factory=Reply)
    wait: float = 0.0
    pace: float = 0.0
    fault: Fault | None = None


class Times:
    """How often each fault that comes only a few times has come, for every prompt on its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen = Counter[tuple[str, actions.Http]]()

    def due(self, prompt: str, fault: actions.Http) -> bool:
        """Whether the fault is to come now."""
        if not fault.times:
            return True
        key = (sha256(prompt.encode(errors="surrogatepass")).hexdigest(), fault)
        with self._lock:
            self._seen[key] += 1
            return self._seen[key] <= fault.times


def is_aside(asked: Asked) -> bool:
    """Whether a program asks for something by the way, such as a title for the conversation."""
    if asked.prompt.startswith(SUGGESTION):
        return True
    return not asked.tools and bool(TITLE.search(asked.system[:5000]) or TITLE.search(asked.prompt[:2000]))


def next_move(script: Script, asked: Asked, times: Times) -> Move:
    """The model's next move."""
    if is_aside(asked):
        return Move(scene=None, reply=Reply(text="Scripted conversation", tokens=Tokens()))
    prompt = asked.prompt
    number = script.choose(prompt)
    given = {"cwd": asked.cwd or ".", "mode": "", "model": asked.model, "history": "\n".join(asked.earlier)}
    try:
        scene, values = script.begin(number, prompt, given)
    except ScriptError as error:
        return Move(scene=number, fault=actions.Http(400, str(error), None, None, 0))
    return Part(asked=asked, values=values, times=times).move(number, scene.cues)


@dataclass(slots=True)
class Part:
    """A scene being played for one request: what was said so far, and what goes with the next move."""

    asked: Asked
    values: Mapping[str, str]
    times: Times
    answer: str = "allowed"
    said: list[str] = field(default_factory=list)
    pending: list[actions.Action] = field(default_factory=list)
    stop: str = "end_turn"

    def move(self, number: int | None, cues: Iterable[actions.Cue]) -> Move:
        """Go through the scene with the results there are; the move is what has no result yet."""
        results = iter(self.asked.results)
        playing = self._play(cues)
        try:
            call = next(playing)
            for result in results:
                self.pending.clear()
                call = playing.send(result)
        except StopIteration:
            return self._dressed(number, Reply(text="".join(self.said), stop=self.stop))
        return self._dressed(number, Reply(call=call))

    def _play(self, cues: Iterable[actions.Cue]) -> Playing:
        yield from self._scene(cues)
        try:
            answer = json.loads("".join(self.said))
        except ValueError:
            return
        call = tools.handing_in(answer, self.asked.tools) if isinstance(answer, dict) else None
        if call:
            yield call

    def _scene(self, cues: Iterable[actions.Cue]) -> Playing:
        for cue in cues:
            if cue.only_if not in (None, self.answer):
                continue
            action = actions.filled(cue.action, self.values)
            match action:
                case actions.Ask(_, _, _, allowed, denied):
                    yield from self._ask(allowed, denied)
                case actions.Say("agent_message_chunk", text):
                    self.said.append(text)
                case actions.Flood(size) | actions.Line(size):
                    self.said.append("x" * int(min(size, 1 << 26)))
                case actions.Stop(reason):
                    self.stop = reason
                case actions.Write() | actions.Edit() | actions.Delete() | actions.Read():
                    yield from self._file(action)
                case actions.Run() | actions.Detach() | actions.Tool():
                    yield from self._use(tools.call_for(action, self.asked.tools, self.asked.cwd))
                case _:
                    self.pending.append(action)

    def _ask(self, allowed: Iterable[actions.Cue], denied: Iterable[actions.Cue]) -> Playing:
        """The program asks by itself: go on as if allowed, until it refuses."""
        self.answer = "allowed"
        for cue in allowed:
            yield from self._scene([cue])
            if self.answer == "denied":
                yield from self._scene(denied)
                return

    def _file(self, action: actions.Change | actions.Read) -> Playing:
        call = tools.call_for(action, self.asked.tools, self.asked.cwd)
        result = yield from self._use(call)
        if result and result.failed and UNREAD.search(result.text):
            look = tools.read_first(action.path, self.asked.tools, self.asked.cwd)
            if look:
                yield from self._use(look)
                yield from self._use(call)

    def _use(self, call: Call | None) -> Generator[Call, Piece, Piece | None]:
        """Make a call, wait until what it began is over, and note whether that went well."""
        if call is None:
            return None
        result = yield call
        for _ in range(POLLS):
            running = RUNNING.search(result.text)
            waiting = running and tools.wait_for(int(running[1]), self.asked.tools)
            if not waiting:
                break
            result = yield waiting
        self.answer = "denied" if result.failed else "allowed"
        return result

    def _dressed(self, number: int | None, reply: Reply) -> Move:
        """The move with what the script says goes with it."""
        move = Move(scene=number, reply=reply)
        for action in self.pending:
            fault = self._fault(action)
            if fault is not None:
                return replace(move, fault=fault)
            move = _dressed_with(move, action)
        remarks = "".join(action.text for action in self.pending if isinstance(action, actions.Remark))
        return _with(move, text=remarks + reply.text)

    def _fault(self, action: actions.Action) -> Fault | None:
        match action:
            case actions.Http():
                return action if self.times.due(self.asked.prompt, action) else None
            case actions.Raw(1) | actions.Truncate() | actions.Drop() | actions.Error() | actions.Bytes():
                return action
            case actions.Exit() | actions.Die():
                return actions.Drop()
        return None


def _dressed_with(move: Move, action: actions.Action) -> Move:
    match action:
        case actions.Sleep(seconds):
            return replace(move, wait=move.wait + seconds)
        case actions.Deaf():
            return replace(move, wait=math.inf)
        case actions.Slow(seconds):
            return replace(move, pace=seconds)
        case actions.Say(_, thought):
            return _with(move, thought=move.reply.thought + thought)
        case actions.Usage(figures):
            return _with(move, tokens=_added(move.reply.tokens, dict(figures)))
    return move


def _with(move: Move, **changes: object) -> Move:
    return replace(move, reply=replace(move.reply, **changes))  # type: ignore[arg-type]


def _added(tokens: Tokens, figures: Mapping[str, int]) -> Tokens:
    return Tokens(
        input=tokens.input + figures.get("inputTokens", 0),
        output=tokens.output + figures.get("outputTokens", 0),
        thought=tokens.thought + figures.get("thoughtTokens", 0),
        cached_read=tokens.cached_read + figures.get("cachedReadTokens", 0),
        cached_write=tokens.cached_write + figures.get("cachedWriteTokens", 0),
    )
