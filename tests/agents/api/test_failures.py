"""What the program says when a model's service fails, and what our classification makes of it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import acp
import pytest

from model_apis import PROVIDERS, Program, command, environment
from planforge.agents import faults
from planforge.errors import AgentFailed, AgentLimited, AgentTimedOut, AgentUnauthenticated, AgentUnavailable
from planforge.testing.model_server import ModelServer

SCENES: dict[str, list[dict[str, Any]]] = {
    "no login": [{"http": {"status": 401, "message": "invalid x-api-key"}}],
    "limited": [{"http": {"status": 429, "message": "the limit is reached", "reset": 3600}}],
    "limited without a time": [{"http": {"status": 429, "message": "slow down"}}],
    "server error": [{"http": {"status": 500, "message": "something broke"}}],
    "passing": [{"http": {"status": 503, "message": "not now", "times": 1}}, {"say": "Here I am."}],
    "at once": [{"say": "Here I am."}],
    "hang": [{"hang": True}],
    "garbage": [{"garbage": "<html>this is no answer</html>"}],
    "truncated": [{"truncate": True}, {"say": "This will be cut off in the middle of it."}],
    "dropped": [{"drop": True}],
    "nothing": [],
    "cut": [{"say": "and so"}, {"stop": "max_tokens"}],
}
SCRIPT = {"name": "failures", "scenes": [{"when": [f"{when}!"], "do": do} for when, do in SCENES.items()]}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(SCRIPT) as server:
        yield server


def program(
    url: str, home: Path, provider: str, *arguments: str, extra: dict[str, str] | None = None
) -> Program:
    argv = command(provider, url, "--retries", "0", *arguments)
    return Program(argv, environment(provider, home, extra), home, fresh=extra is not None)


def failing(it: Program, *prompts: str) -> list[acp.RequestError]:
    """The errors that some prompts end with."""

    async def talk() -> list[acp.RequestError]:
        errors = []
        async with it:
            await it.begin("read")
            for prompt in prompts:
                with pytest.raises(acp.RequestError) as failed:
                    await it.ask(prompt)
                errors.append(failed.value)
        return errors

    return asyncio.run(talk())


def meant(error: acp.RequestError, now: float | None = None) -> faults.Fault:
    return faults.classify(str(error), code=error.code, data=error.data, now=now or time.time())


def kind(error: acp.RequestError) -> str:
    assert isinstance(error.data, dict)
    return str(error.data["kind"])


@pytest.mark.dear
@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_way_to_fail_is_told_apart(server: ModelServer, tmp_path: Path, provider: str) -> None:
    asked = len(server.requests)
    it = program(server.url, tmp_path, provider, "--request-seconds", "10")
    prompts = ("no login!", "limited!", "limited without a time!", "server error!", "garbage!", "dropped!")
    now = time.time()
    *errors, cut, hung = failing(it, *prompts, "truncated!", "hang!")
    assert len(server.requests) - asked == len(prompts) + 2  # nobody tried again behind our back
    login, limited, unlimited, broken, garbage, dropped = errors

    assert (kind(login), login.code, meant(login).error) == ("unauthenticated", -32000, AgentUnauthenticated)
    assert "invalid x-api-key" in str(login)
    assert (kind(limited), meant(limited).error) == ("limited", AgentLimited)
    assert isinstance(limited.data, dict)
    assert limited.data["status"] == 429
    assert _seconds_from(now, meant(limited, now).until) == pytest.approx(3600, abs=120)
    assert (meant(unlimited).error, meant(unlimited).until) == (AgentLimited, "")
    assert (kind(broken), meant(broken).error) == ("failed", AgentFailed)
    assert "something broke" in str(broken)
    assert (kind(garbage), meant(garbage).error) == ("malformed", AgentFailed)
    assert (kind(dropped), meant(dropped).error) == ("failed", AgentFailed)
    assert (kind(cut) in ("failed", "malformed"), meant(cut).error) == (True, AgentFailed)
    assert (kind(hung), meant(hung).error) == ("timed_out", AgentTimedOut)


def _seconds_from(now: float, until: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(until).timestamp() - now


@pytest.mark.parametrize("provider", ["anthropic", "google"])
def test_a_service_that_is_not_there_is_unavailable(tmp_path: Path, provider: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    [error] = failing(program(f"http://127.0.0.1:{port}", tmp_path, provider), "hello!")
    assert (kind(error), meant(error).error) == ("unavailable", AgentUnavailable)


@pytest.mark.parametrize("provider", ["openai", "google"])
def test_what_passes_is_tried_again_a_few_times(server: ModelServer, tmp_path: Path, provider: str) -> None:
    async def talk() -> Program:
        async with program(server.url, tmp_path, provider, "--retries", "1") as it:
            await it.begin("read")
            await it.ask(f"passing! {provider}")
            return it

    assert asyncio.run(talk()).client.text == "Here I am."


def test_a_missing_key_is_a_missing_login_and_names_the_variable(server: ModelServer, tmp_path: Path) -> None:
    it = program(server.url, tmp_path, "google", extra={"GOOGLE_API_KEY": ""})
    [error] = failing(it, "hello!")
    assert (kind(error), meant(error).error) == ("unauthenticated", AgentUnauthenticated)
    assert str(error) == "no key: set `GOOGLE_API_KEY` or `GEMINI_API_KEY`"


@pytest.mark.dear
def test_a_local_server_needs_no_key_and_gets_none_of_another_service(
    server: ModelServer, tmp_path: Path
) -> None:
    keys = {"PLANFORGE_API_KEY": "", "OPENAI_API_KEY": "sk-of-another-service"}

    async def talk() -> Program:
        async with program(server.url, tmp_path, "openai-compatible", extra=keys) as it:
            await it.begin("read")
            await it.ask("at once! without a key")
            return it

    assert asyncio.run(talk()).client.text == "Here I am."


def test_an_answer_of_nothing_is_one_and_an_answer_that_was_cut_says_so(
    server: ModelServer, tmp_path: Path
) -> None:
    async def talk() -> tuple[acp.PromptResponse, acp.PromptResponse]:
        async with program(server.url, tmp_path, "anthropic") as it:
            await it.begin("read")
            nothing = await it.ask("nothing!")
            assert it.client.text == ""
            return nothing, await it.ask("cut!")

    asked = len(server.requests)
    nothing, cut = asyncio.run(talk())
    assert (nothing.stop_reason, cut.stop_reason) == ("end_turn", "max_tokens")
    assert len(server.requests) - asked == 2
