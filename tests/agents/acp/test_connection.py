"""Requests and answers over an agent's streams: who asked what, in whichever order it is answered."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from planforge.agents.acp.connection import Connection
from planforge.agents.acp.parts import Part
from planforge.agents.acp.requests import Cancel, Method
from planforge.agents.acp.wire import Wire
from planforge.agents.rpc import METHOD_NOT_FOUND, Refusal
from rooms import PATIENCE, agent


class Words(Part, frozen=True, kw_only=True):
    """Whatever is asked and answered here."""

    words: str


SAY = Method("say", Words, Words)
HEARS = "import itertools\nheard = (json.loads(line) for line in sys.stdin)\n"


class Client:
    """Remembers what it was told, and answers one question."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, object]] = []
        self.asked = asyncio.Event()
        self.answering = asyncio.Event()

    def hear(self, method: str, params: object) -> None:
        """Remember it."""
        self.heard.append((method, params))
        if method == "bad":
            raise RuntimeError("nobody listens")

    async def answer(self, method: str, params: object) -> msgspec.Struct:
        """Answer what is known."""
        self.asked.set()
        await self.answering.wait()
        if method == "break":
            raise RuntimeError("broken")
        if method != "say":
            raise Refusal(METHOD_NOT_FOUND, "Method not found")
        return Words(words=f"answer to {params}")


def talk(body: str, talking: Callable[[Connection, Client], Awaitable[Any]]) -> Any:
    """What comes of talking to an agent of a few lines; nothing of it is left."""

    async def conversation() -> Any:
        unhandled: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, found: unhandled.append(found))
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*agent(HEARS + body), stdin=pipe, stdout=pipe)
        client = Client()
        connection = Connection(Wire(process), client)
        try:
            async with asyncio.timeout(PATIENCE):
                return await talking(connection, client)
        finally:
            await connection.close()
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert process.stdin is not None
            process.stdin.close()
            with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
                process.kill()
            await process.communicate()
            assert unhandled == []

    return asyncio.run(conversation())


def test_answers_may_come_in_another_order_than_the_questions() -> None:
    body = (
        "for one in reversed(list(itertools.islice(heard, 3))):\n"
        "    send(id=one['id'], result={'words': one['params']['words'] * 2})\n"
    )

    async def talking(connection: Connection, client: Client) -> list[str]:
        asked = (connection.ask(SAY, Words(words=words)) for words in "abc")
        return [answer.words for answer in await asyncio.gather(*asked)]

    assert talk(body, talking) == ["aa", "bb", "cc"]


def test_what_was_said_before_an_answer_is_heard_before_it_and_in_its_order() -> None:
    body = (
        "number = next(heard)['id']\n"
        "for n in range(100): send(method='bad' if n % 10 == 0 else 'news', params=n)\n"
        "send(id=number, result={'words': ''}); send(method='news', params='late')\n"
    )

    async def talking(connection: Connection, client: Client) -> list[object]:
        await connection.ask(SAY, Words(words=""))
        return [params for _, params in client.heard][:100]

    assert talk(body, talking) == list(range(100))


def test_an_agent_is_answered_while_it_is_asked() -> None:
    body = (
        "number = next(heard)['id']\n"
        "for name in ('say', 'what', 'break'): send(id=name, method=name, params=name)\n"
        "answers = sorted((next(heard) for _ in range(3)), key=lambda one: one['id'])\n"
        "send(id=number, result={'words': json.dumps(answers)})\n"
    )

    async def talking(connection: Connection, client: Client) -> Any:
        asking = asyncio.ensure_future(connection.ask(SAY, Words(words="")))
        await client.asked.wait()
        client.answering.set()
        return json.loads((await asking).words)

    broken, say, what = talk(body, talking)
    assert say == {"jsonrpc": "2.0", "id": "say", "result": {"words": "answer to say"}}
    assert what["error"]["code"] == -32601
    assert broken["error"] == {"code": -32603, "message": "Internal error", "data": {"details": "broken"}}


def test_a_refusal_says_why() -> None:
    body = "send(id=next(heard)['id'], error={'code': -5, 'message': 'no', 'data': {'why': 1}})\n"

    async def talking(connection: Connection, client: Client) -> Refusal:
        with pytest.raises(Refusal) as caught:
            await connection.ask(SAY, Words(words=""))
        return caught.value

    refusal = talk(body, talking)
    assert (refusal.code, str(refusal), refusal.data) == (-5, "no", {"why": 1})


def test_an_answer_that_cannot_be_read_says_to_what() -> None:
    async def talking(connection: Connection, client: Client) -> None:
        with pytest.raises(ValueError, match="what it answered to `say` is no answer: Object missing"):
            await connection.ask(SAY, Words(words=""))

    talk("send(id=next(heard)['id'], result={})\n", talking)


@pytest.mark.parametrize("ending", ["os.close(1); time.sleep(600)", "sys.exit(0)", "os.kill(os.getpid(), 9)"])
def test_whoever_waits_for_an_agent_that_is_gone_is_told(ending: str) -> None:
    async def talking(connection: Connection, client: Client) -> None:
        for _ in range(2):
            with pytest.raises(ConnectionError):
                await connection.ask(SAY, Words(words=""))
        with pytest.raises(ConnectionError):
            await connection.tell("cancel", Cancel(session_id="s"))

    talk(f"next(heard); {ending}\n", talking)


def test_nobody_waits_any_more_once_a_connection_is_closed() -> None:
    async def talking(connection: Connection, client: Client) -> None:
        asking = asyncio.ensure_future(connection.ask(SAY, Words(words="")))
        await client.asked.wait()  # and what it asked is being answered
        await connection.close()
        with pytest.raises(ConnectionError):
            await asking
        with pytest.raises(ConnectionError):
            await connection.ask(SAY, Words(words=""))

    talk("next(heard); send(id=1, method='say'); time.sleep(600)\n", talking)


def test_an_answer_to_what_was_called_off_is_passed_over() -> None:
    body = (
        "first, second = next(heard)['id'], next(heard)['id']\n"
        "send(id=first, error={'code': 1, 'message': 'late'}); send(id=first, result={'words': 'late'})\n"
        "send(id=999, result={}); send(id=second, result={'words': 'second'})\n"
    )

    async def talking(connection: Connection, client: Client) -> str:
        first = asyncio.ensure_future(connection.ask(SAY, Words(words="")))
        await asyncio.sleep(0.05)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return (await connection.ask(SAY, Words(words=""))).words

    assert talk(body, talking) == "second"
