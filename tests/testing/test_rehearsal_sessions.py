"""Modes, models, logins and conversations of the rehearsal agent, by the real client library."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import acp
import pytest
from acp.schema import CurrentModeUpdate, SessionConfigOptionSelect, UserMessageChunk

from testing.listeners import Listener, connected, converse
from testing.wires import Message, Wire, scene

REMEMBERS = scene({"say": "I remember: ${history}"}, when="remember")


def said(answer: Message) -> str:
    return str(answer["result"])


def test_without_manners_it_offers_nothing(script: Callable[..., Path], room: Path) -> None:
    with Wire(str(script(scene()))) as wire:
        introduced = wire.answer("initialize", protocolVersion=1)["result"]
        assert introduced["agentCapabilities"] == {"loadSession": False}
        assert introduced["authMethods"] == []
        assert wire.answer("session/new", cwd=str(room), mcpServers=[])["result"] == {
            "sessionId": "rehearsal-1"
        }
        assert (
            wire.answer("session/resume", sessionId="rehearsal-1", cwd=str(room))["error"]["code"] == -32601
        )
        option = wire.answer(
            "session/set_config_option", sessionId="rehearsal-1", configId="model", value="x"
        )
        assert option["error"]["code"] == -32602


def test_a_mode_can_be_chosen_and_is_known_to_the_script(script: Callable[..., Path], room: Path) -> None:
    path = script(
        scene({"say": "in ${mode}"}, {"mode": "plan"}, {"say": ", then in ${mode}"}), modes=["ask", "plan"]
    )
    listener = Listener()

    async def conversation() -> None:
        async with connected(listener, path) as agent:
            session = await agent.new_session(cwd=str(room), mcp_servers=[])
            assert session.modes is not None
            assert session.modes.current_mode_id == "ask"
            assert [mode.id for mode in session.modes.available_modes] == ["ask", "plan"]
            with pytest.raises(acp.RequestError, match="unknown mode `odd`"):
                await agent.set_session_mode(session_id=session.session_id, mode_id="odd")
            await agent.set_session_mode(session_id=session.session_id, mode_id="ask")
            await agent.prompt(prompt=[acp.text_block("go")], session_id=session.session_id)

    asyncio.run(conversation())
    assert listener.said == "in ask, then in plan"
    [update] = [update for update in listener.updates if isinstance(update, CurrentModeUpdate)]
    assert update.current_mode_id == "plan"


def test_in_a_read_only_mode_every_change_fails_and_reading_does_not(
    script: Callable[..., Path], room: Path
) -> None:
    (room / "there").write_text("old")
    path = script(
        scene(
            {"read": "there"},
            {"write": {"path": "new", "text": ""}},
            {"edit": {"path": "there", "old": "old", "new": "new"}},
            {"delete": "there"},
            {"run": ["touch", "run"]},
            {"detach": 30},
        ),
        modes=["look", "work"],
        read_only=["look"],
    )
    listener = Listener()
    converse(path, room, listener)
    assert [end.status for end in listener.ended] == ["completed"] + ["failed"] * 5
    assert listener.ended[1].raw_output == {"error": "mode `look` changes nothing"}
    assert [item.name for item in room.iterdir()] == ["there"]


def test_a_model_can_be_chosen(script: Callable[..., Path], room: Path) -> None:
    path = script(scene({"say": "I am ${model}"}), models=["big", "small"])
    listener = Listener()

    async def conversation() -> None:
        async with connected(listener, path) as agent:
            session = await agent.new_session(cwd=str(room), mcp_servers=[])
            [option] = session.config_options or []
            assert isinstance(option, SessionConfigOptionSelect)
            assert (option.id, option.category, option.current_value) == ("model", "model", "big")
            name = session.session_id
            changed = await agent.set_config_option(config_id="model", session_id=name, value="small")
            [option] = changed.config_options
            assert isinstance(option, SessionConfigOptionSelect)
            assert option.current_value == "small"
            with pytest.raises(acp.RequestError, match="unknown model `odd`"):
                await agent.set_config_option(config_id="model", session_id=name, value="odd")
            await agent.prompt(prompt=[acp.text_block("go")], session_id=name)

    asyncio.run(conversation())
    assert listener.said == "I am small"


def test_a_login_can_be_asked_for(script: Callable[..., Path], room: Path) -> None:
    path = script(scene({"say": "welcome"}), auth=["key", "browser"], login=True)

    async def conversation() -> None:
        async with connected(Listener(), path) as agent:
            with pytest.raises(acp.RequestError, match="Authentication required") as caught:
                await agent.new_session(cwd=str(room), mcp_servers=[])
            assert caught.value.code == -32000
            with pytest.raises(acp.RequestError, match="unknown way to log in `guess`"):
                await agent.authenticate(method_id="guess")
            await agent.authenticate(method_id="key")
            await agent.new_session(cwd=str(room), mcp_servers=[])

    asyncio.run(conversation())
    with Wire(str(path)) as wire:
        methods = wire.answer("initialize", protocolVersion=1)["result"]["authMethods"]
        assert [method["id"] for method in methods] == ["key", "browser"]


@pytest.mark.parametrize("way", ["load", "resume"])
@pytest.mark.parametrize("where", ["HOME", "PLANFORGE_REHEARSAL_SESSIONS"])
def test_a_conversation_goes_on_in_another_process(
    script: Callable[..., Path], room: Path, tmp_path: Path, way: str, where: str
) -> None:
    path = script(REMEMBERS, scene({"say": "the word is plum"}), **{way: True})
    kept = {where: str(tmp_path / "kept")}
    first, second = Listener(), Listener()

    async def begin() -> str:
        async with connected(first, path, **kept) as agent:
            session = await agent.new_session(cwd=str(room), mcp_servers=[])
            await agent.prompt(prompt=[acp.text_block("go")], session_id=session.session_id)
            return session.session_id

    async def go_on(name: str) -> None:
        async with connected(second, path, **kept) as agent:
            if way == "load":
                await agent.load_session(cwd=str(room), session_id=name, mcp_servers=[])
            else:
                await agent.resume_session(cwd=str(room), session_id=name, mcp_servers=[])
            replayed.extend(second.updates)
            second.updates.clear()
            await agent.prompt(prompt=[acp.text_block("what do you remember?")], session_id=name)

    replayed: list[object] = []
    asyncio.run(go_on(asyncio.run(begin())))
    assert second.said == "I remember: go\nthe word is plum"
    assert any(isinstance(update, UserMessageChunk) for update in replayed) == (way == "load")


def test_an_unknown_conversation_is_not_taken_up(
    script: Callable[..., Path], room: Path, tmp_path: Path
) -> None:
    path = script(REMEMBERS, load=True)
    (tmp_path / "secret.jsonl").write_text("")
    (tmp_path / "kept").mkdir()
    with Wire(str(path), PLANFORGE_REHEARSAL_SESSIONS=str(tmp_path / "kept")) as wire:
        capabilities = wire.answer("initialize", protocolVersion=1)["result"]["agentCapabilities"]
        assert capabilities == {"loadSession": True}
        for name in ("rehearsal-1", "../secret", ""):
            refused = wire.answer("session/load", sessionId=name, cwd=str(room), mcpServers=[])
            assert refused["error"] == {"code": -32002, "message": f"unknown session `{name}`"}


def test_two_conversations_do_not_know_each_other(
    script: Callable[..., Path], room: Path, tmp_path: Path
) -> None:
    path = script(REMEMBERS, scene({"say": "noted"}), load=True)
    listener = Listener()

    async def conversation() -> None:
        async with connected(listener, path, PLANFORGE_REHEARSAL_SESSIONS=str(tmp_path / "kept")) as agent:
            one = await agent.new_session(cwd=str(room), mcp_servers=[])
            two = await agent.new_session(cwd=str(room), mcp_servers=[])
            assert one.session_id != two.session_id
            await agent.prompt(prompt=[acp.text_block("pear")], session_id=one.session_id)
            listener.updates.clear()
            await agent.prompt(prompt=[acp.text_block("remember?")], session_id=two.session_id)

    asyncio.run(conversation())
    assert listener.said == "I remember: "


def test_a_cancelled_prompt_may_still_do_something(script: Callable[..., Path], room: Path) -> None:
    path = script(
        {**scene({"hang": True}), "cancelled": [{"write": {"path": "late", "text": ""}}, {"say": "oh"}]}
    )
    with Wire(str(path)) as wire:
        wire.prompt(room)
        wire.notify("session/cancel", sessionId="rehearsal-1")
        updates = [wire.message() for _ in range(3)]
        assert updates[-1]["params"]["update"]["content"]["text"] == "oh"
        assert wire.message()["result"] == {"stopReason": "cancelled"}
    assert (room / "late").exists()


def test_a_cancelled_prompt_may_never_be_answered(script: Callable[..., Path], room: Path) -> None:
    path = script({**scene({"hang": True}), "cancelled": [{"say": "no"}, {"hang": True}]})
    with Wire(str(path)) as wire:
        wire.prompt(room)
        wire.notify("session/cancel", sessionId="rehearsal-1")
        assert wire.message()["params"]["update"]["content"]["text"] == "no"
        assert "result" in wire.answer("initialize", protocolVersion=1)
        assert wire.end() == (0, "")
