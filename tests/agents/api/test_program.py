"""The program against the scripted model server, in the dialect of each provider: real HTTP, real files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.schema import ToolCallProgress

from model_apis import DIALECTS, KEY, PROVIDERS, Client, Program, command, environment
from planforge.testing.model_server import ModelServer

SHOWN = "env; tr '\\0' '\\n' < /proc/$PPID/environ; echo end of it"
LONG = "echo $$ > pid; setsid sleep 600 & echo $! > left; sleep 600"


def using(name: str, **given: object) -> dict[str, object]:
    """The model uses a tool."""
    return {"tool": name, "input": given}


SCENES: dict[str, list[dict[str, object]]] = {
    "make the files": [
        using("write", path="src/hello.py", content="print('hello')\n"),
        using("edit", path="notes.txt", old="two", new="2"),
        {"run": ["sh", "-c", "cat src/hello.py > copied.py; echo it said so"]},
        {"say": "All three are done."},
        {"usage": {"input": 1000, "output": 50, "cached": 300}},
    ],
    "just write": [using("write", path="new.txt", content="x"), {"say": "I tried."}],
    "just run": [using("shell", command="touch ran.txt"), {"say": "I tried."}],
    "look around": [
        using("list"),
        using("search", pattern="two"),
        using("read", path="notes.txt"),
        {"say": "I have seen it."},
    ],
    "show the environment": [using("shell", command=SHOWN), {"say": "Seen."}],
    "remember": [{"say": "I shall remember it."}],
    "what was it": [{"say": "It was ${history}."}],
    "wait long": [using("shell", command=LONG, seconds=600), {"say": "never"}],
    "as JSON": [{"say": '{"verdict": "approved", "count": 2}'}],
    "go on for ever": [using("list")] * 50,
    "regex": [using("search", pattern="(a+)+$", path="evil.txt", regex=True), {"say": "never"}],
    "say hello": [{"say": "Hello there."}],
}
SCRIPT = {"name": "model-apis", "scenes": [{"when": [when], "do": do} for when, do in SCENES.items()]}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(SCRIPT) as server:
        yield server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "worktree"
    root.mkdir()
    (root / "notes.txt").write_text("one\ntwo\nthree\n")
    (root / "way-out").symlink_to(tmp_path)
    return root


def program(
    server: ModelServer,
    root: Path,
    *arguments: str,
    provider: str = "anthropic",
    client: Client | None = None,
    extra: dict[str, str] | None = None,
    fresh: bool = False,
) -> Program:
    home = root.parent / "home"
    home.mkdir(exist_ok=True)
    argv = command(provider, server.url, *arguments)
    return Program(argv, environment(provider, home, extra), root, client, fresh=fresh)


def asked(server: ModelServer, before: int) -> Any:
    return server.requests[before:]


@pytest.mark.dear(but="anthropic")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_file_is_written_another_edited_a_command_run_and_the_usage_is_that_of_the_turn(
    server: ModelServer, root: Path, provider: str
) -> None:
    before = len(server.requests)

    async def talk() -> tuple[Program, acp.PromptResponse]:
        fresh = provider in ("google", "openai-compatible")  # the others are started by other tests
        async with program(server, root, provider=provider, fresh=fresh) as it:
            await it.begin()
            return it, await it.ask("make the files")

    it, response = asyncio.run(talk())
    assert (root / "src/hello.py").read_text() == "print('hello')\n"
    assert (root / "notes.txt").read_text() == "one\n2\nthree\n"
    assert (root / "copied.py").read_text() == "print('hello')\n"
    assert it.client.text.endswith("All three are done.")
    assert response.stop_reason == "end_turn"
    requests = asked(server, before)
    assert {request.dialect for request in requests} == {DIALECTS[provider]}
    assert {request.model for request in requests} == {"scripted-1"}
    assert it.client.tools[:2] == [("Write src/hello.py", "edit"), ("Edit notes.txt", "edit")]
    assert [kind for _, kind in it.client.tools] == ["edit", "edit", "execute"]
    assert it.client.ends[-1] == ("completed", "it said so\n(exit code 0)")
    assert response.usage is not None
    figures = (response.usage.input_tokens, response.usage.output_tokens, response.usage.cached_read_tokens)
    assert figures == (1300, 50, 300)
    assert it.client.contexts


def talk_to(it: Program, *prompts: str, mode: str = "write") -> list[acp.PromptResponse]:
    """Put some prompts, one after the other, in one conversation."""

    async def talk() -> list[acp.PromptResponse]:
        async with it:
            await it.begin(mode)
            return [await it.ask(prompt) for prompt in prompts]

    return asyncio.run(talk())


def test_no_path_leads_out_of_the_worktree(root: Path) -> None:
    outside = root.parent / "out.txt"
    ways = {"up": "../out.txt", "absolute": str(outside), "link": "way-out/out.txt", "git": ".git/config"}
    scenes = [
        {
            "when": [f"by {name}"],
            "do": [{"tool": "write", "input": {"path": path, "content": "x"}}, {"say": "ok"}],
        }
        for name, path in ways.items()
    ]
    with ModelServer({"name": "ways out", "scenes": scenes}) as server:
        it = program(server, root)
        talk_to(it, *(f"by {name}" for name in ways))
        told = server.requests[-1].history
    assert [status for status, _ in it.client.ends] == ["failed"] * 4
    assert not outside.exists()
    assert not (root / ".git").exists()
    assert sum("is outside the working directory" in text for text in told) == 2


def test_a_reader_is_offered_no_way_to_write_and_refused_if_it_tries(server: ModelServer, root: Path) -> None:
    before = len(server.requests)
    it = program(server, root)
    talk_to(it, "look around", "just write", "just run", mode="read")
    assert {request.tools for request in server.requests[before:]} == {("read", "list", "search")}
    assert [title for title, _ in it.client.tools] == ["List .", "Search two", "Read notes.txt"]
    assert [text for _, text in it.client.ends] == [
        "notes.txt\nway-out",
        "notes.txt:2:two",
        "one\ntwo\nthree\n",
    ]
    assert not (root / "new.txt").exists()
    assert not (root / "ran.txt").exists()


def test_what_the_program_was_started_with_is_the_most_that_a_session_gets(
    server: ModelServer, root: Path
) -> None:
    async def talk() -> None:
        async with program(server, root, "--tools", "read") as it:
            made = await it.connection.new_session(cwd=str(root), mcp_servers=[])
            assert made.modes is not None
            assert [mode.id for mode in made.modes.available_modes] == ["text", "read"]
            with pytest.raises(acp.RequestError, match="no mode `write`"):
                await it.connection.set_session_mode(mode_id="write", session_id=made.session_id)

    asyncio.run(talk())


def test_without_tools_it_is_text_alone(server: ModelServer, root: Path) -> None:
    before = len(server.requests)
    it = program(server, root, "--tools", "none")
    talk_to(it, "say hello", mode="text")
    assert it.client.text == "Hello there."
    assert server.requests[before].tools == ()


@pytest.mark.parametrize("permitted", [True, False])
def test_where_the_mode_says_so_it_asks_first(server: ModelServer, root: Path, permitted: bool) -> None:
    it = program(server, root, client=Client(permit=permitted))
    talk_to(it, "just write", "just run", "look around", mode="ask")
    assert [(asked.kind, asked.title) for asked in it.client.asked] == [
        ("edit", "Write new.txt"), ("execute", "touch ran.txt"),
    ]  # fmt: skip
    assert it.client.asked[0].locations is not None
    assert it.client.asked[0].locations[0].path == str(root / "new.txt")
    assert (root / "new.txt").exists() is permitted
    assert (root / "ran.txt").exists() is permitted


@pytest.mark.dear(but="anthropic")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_conversation_is_gone_on_with_in_another_process(
    server: ModelServer, root: Path, provider: str
) -> None:
    told_again = provider in ("openai", "google")

    async def talk() -> Program:
        async with program(server, root, provider=provider) as first:
            await first.begin()
            await first.ask("remember forty-two")
        async with program(server, root, provider=provider) as second:
            go_on = second.connection.load_session if told_again else second.connection.resume_session
            await go_on(cwd=str(root), session_id=first.session, mcp_servers=[])
            second.session = first.session
            heard = ("remember forty-two", "I shall remember it.") if told_again else ("", "")
            assert (second.client.user_text, second.client.text) == heard
            await second.ask("what was it?")
            return second

    second = asyncio.run(talk())
    assert server.requests[-1].history == ("remember forty-two", "I shall remember it.", "what was it?")
    assert second.client.text.endswith("It was remember forty-two\nI shall remember it..")
    kept = list((root.parent / "home").rglob("*.json"))
    assert len(kept) == 1
    assert kept[0].stat().st_mode & 0o777 == 0o600


def test_a_conversation_that_nobody_knows_is_not_there(server: ModelServer, root: Path) -> None:
    async def talk(session: str, it: Program) -> acp.RequestError:
        with pytest.raises(acp.RequestError) as refused:
            await it.connection.load_session(cwd=str(root), session_id=session, mcp_servers=[])
        return refused.value

    async def talks() -> None:
        async with program(server, root) as it:
            for session in ("api-" + "0" * 32, "../../etc/passwd", "", "api-nonsense"):
                error = await talk(session, it)
                assert (error.code, str(error)) == (-32002, f"there is no conversation `{session}`")

    asyncio.run(talks())


def test_a_cancelled_turn_leaves_no_process_and_is_remembered(server: ModelServer, root: Path) -> None:
    async def talk() -> tuple[Program, acp.PromptResponse]:
        async with program(server, root) as it:
            await it.begin()
            asking = asyncio.ensure_future(it.ask("wait long"))
            while not (root / "left").exists():
                await asyncio.sleep(0.05)
            await it.connection.cancel(session_id=it.session)
            response = await asyncio.wait_for(asking, 60)
            assert not alive(root / "pid", root / "left")
            await it.ask("what was it?")
            return it, response

    it, response = asyncio.run(talk())
    assert response.stop_reason == "cancelled"
    assert it.client.ends[0] == ("failed", "cancelled")
    assert "wait long" in it.client.text


def test_when_the_client_is_gone_nothing_is_left(server: ModelServer, root: Path) -> None:
    async def talk() -> None:
        async with program(server, root) as it:
            await it.begin()
            asking = asyncio.ensure_future(it.ask("wait long"))
            while not (root / "left").exists():
                await asyncio.sleep(0.05)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    asyncio.run(talk())
    assert not alive(root / "pid", root / "left")


def test_a_program_that_is_told_to_end_leaves_nothing(server: ModelServer, root: Path) -> None:
    async def talk() -> int:
        async with program(server, root) as it:
            await it.begin()
            asking = asyncio.ensure_future(it.ask("wait long"))
            while not (root / "left").exists():
                await asyncio.sleep(0.05)
            it.terminate()
            await asyncio.gather(asking, return_exceptions=True)
            return await it.ended()

    assert asyncio.run(talk()) == 143
    assert not alive(root / "pid", root / "left")


def alive(*files: Path) -> list[str]:
    """Those of the processes whose ids the files hold that still run."""

    def runs(pid: str) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    return [pid for file in files if runs(pid := file.read_text().strip())]


@pytest.mark.dear
def test_no_key_is_seen_by_a_command_nor_by_looking_at_its_parent(server: ModelServer, root: Path) -> None:
    it = program(server, root, extra={"GITHUB_TOKEN": "ghp_other", "PLAIN": "seen"}, fresh=True)
    talk_to(it, "show the environment")
    [(status, shown)] = it.client.ends
    assert status == "completed"
    assert shown.count("PLAIN=seen") == 2
    assert "end of it" in shown
    assert KEY not in shown
    assert "ghp_other" not in shown
    kept = [file.read_text() for file in (root.parent / "home").rglob("*") if file.is_file()]
    assert kept
    assert not any(KEY in text for text in kept)


@pytest.mark.dear
def test_a_key_in_a_file_is_taken_and_gone(server: ModelServer, root: Path) -> None:
    file = root.parent / "key"
    file.write_text(f"{KEY}\n")
    keys = {"ANTHROPIC_API_KEY": "", "PLANFORGE_API_KEY_FILE": str(file)}
    it = program(server, root, extra=keys, fresh=True)
    talk_to(it, "show the environment")
    assert it.client.text == "Seen."
    assert not file.exists()
    assert "KEY_FILE" not in it.client.ends[0][1]


SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["verdict", "count"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(("provider", "mode"), [*zip(PROVIDERS, ("read", "text") * 2, strict=True)])
def test_an_answer_is_held_to_a_schema_and_comes_as_json(
    server: ModelServer, root: Path, provider: str, mode: str
) -> None:
    async def talk() -> Program:
        async with program(server, root, provider=provider) as it:
            await it.begin(mode)
            response = await it.ask("as JSON", planforge={"schema": SCHEMA})
            assert response.stop_reason == "end_turn"
            return it

    it = asyncio.run(talk())
    assert json.loads(it.client.text) == {"verdict": "approved", "count": 2}


def test_a_schema_can_come_with_the_session_and_as_text(server: ModelServer, root: Path) -> None:
    async def talk() -> Program:
        async with program(server, root) as it:
            await it.begin(planforge={"schema": json.dumps(SCHEMA)})
            await it.ask("as JSON")
            with pytest.raises(acp.RequestError, match="is not JSON"):
                await it.ask("as JSON", planforge={"schema": "{"})
            return it

    assert json.loads(asyncio.run(talk()).client.text)["verdict"] == "approved"


def test_a_turn_makes_only_so_many_requests(server: ModelServer, root: Path) -> None:
    before = len(server.requests)
    [response] = talk_to(program(server, root, "--requests", "3"), "go on for ever")
    assert response.stop_reason == "max_turn_requests"
    assert len(server.requests) - before == 3


@pytest.mark.dear
def test_an_expression_that_never_ends_is_ended(server: ModelServer, root: Path) -> None:
    (root / "evil.txt").write_text("a" * 40 + "!\n")

    async def talk() -> Program:
        async with program(server, root) as it:
            await it.begin("read")
            asking = asyncio.ensure_future(it.ask("regex"))
            await it.client.until(lambda update: isinstance(update, ToolCallProgress))
            await asyncio.sleep(1)
            await it.connection.cancel(session_id=it.session)
            response = await asyncio.wait_for(asking, 60)
            assert response.stop_reason == "cancelled"
            return it

    asyncio.run(talk())


def test_a_session_without_a_model_says_so_and_takes_one(server: ModelServer, root: Path) -> None:
    async def talk() -> Program:
        async with program(server, root, "--model", "") as it:
            await it.begin()
            with pytest.raises(acp.RequestError, match="no model"):
                await it.ask("say hello")
            await it.connection.set_config_option(
                config_id="model", session_id=it.session, value="scripted-2"
            )
            await it.ask("say hello")
            return it

    assert asyncio.run(talk()).client.text == "Hello there."
    assert server.requests[-1].model == "scripted-2"
