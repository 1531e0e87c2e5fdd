"""
Opens the session in which a task is put: a new one, or one that is gone on with.

An agent is kept from writing by its mode, or by what its session is begun with, so both are said again for a
session that is gone on with. An agent that has not the mode or the model it is to have is not asked at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from planforge.agents.acp.answers import Capabilities, Select, Session
from planforge.agents.acp.connection import Connection
from planforge.agents.acp.listener import Listener
from planforge.agents.acp.requests import (
    LOAD_SESSION,
    NEW_SESSION,
    RESUME_SESSION,
    SET_MODE,
    SET_OPTION,
    NewSession,
    SetMode,
    SetOption,
    TakeUp,
)
from planforge.agents.faults import classify, one_line
from planforge.agents.profiles import Profile
from planforge.agents.rpc import Refusal
from planforge.errors import AgentFailed, AgentUnavailable, SessionUnknown
from planforge.kernel.effects import Access

MODE, MODEL = "mode", "model"
"""Categories of session options, and their usual names."""


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A session in which the task can be put."""

    session: str
    lasting: bool
    """Whether another process can go on with it."""
    model: str
    """The model that the agent names; empty if it names none."""


async def open_session(
    connection: Connection, capabilities: Capabilities | None, listener: Listener
) -> Opened:
    """Open the session, in the mode of the task's access and with its model."""
    name, profile, task, place = listener.name, listener.profile, listener.task, listener.place
    method = _method(capabilities, profile)
    way = profile.way(reading=task.access is Access.READ)
    response: Session
    if session := task.session:
        response = await _taken_up(connection, listener, method, session, way.meta)
    else:
        response = begun = await connection.ask(
            NEW_SESSION, NewSession(cwd=str(place.cwd), mcp_servers=[], meta=way.meta)
        )
        session = begun.session_id
    listener.session = session
    if method:
        place.noted(session=session)
    if way.mode:
        await _set_mode(connection, name, response, session, way.mode)
        listener.mode = way.mode
    if profile.model.option and task.model:
        await _set_model(connection, name, response, session, profile.model.option, task.model)
    model = task.model or _current(response, MODEL)
    return Opened(session=session, lasting=bool(method), model=model)


def _method(capabilities: Capabilities | None, profile: Profile) -> str:
    """The method that resumes a session; empty if the agent or its profile has none."""
    if capabilities is None or profile.resume == "none":
        return ""
    further = capabilities.session_capabilities
    can = {"load": bool(capabilities.load_session), "resume": bool(further and further.resume is not None)}
    other = "load" if profile.resume == "resume" else "resume"
    return next((method for method in (profile.resume, other) if can[method]), "")


async def _taken_up(
    connection: Connection, listener: Listener, method: str, session: str, meta: dict[str, Any]
) -> Session:
    """Resume a session. What the agent replays of it is not part of the answer."""
    name, place = listener.name, listener.place
    if not method:
        raise SessionUnknown(f"agent `{name}` cannot go on with a conversation")
    listener.session = session
    asking = LOAD_SESSION if method == "load" else RESUME_SESSION
    try:
        response = await connection.ask(
            asking, TakeUp(cwd=str(place.cwd), session_id=session, mcp_servers=[], meta=meta)
        )
        if method == "load":
            await listener.settled()
    except Refusal as error:
        if classify(str(error), code=error.code, data=error.data, now=0.0).error is not AgentFailed:
            raise
        raise SessionUnknown(f"agent `{name}` does not know its conversation: {one_line(error)}") from error
    return response


async def _set_mode(connection: Connection, name: str, response: Session, session: str, mode: str) -> None:
    if response.modes is not None:
        offered = [available.id for available in response.modes.available_modes]
        if mode not in offered:
            raise _missing(name, "mode", mode, offered)
        await connection.ask(SET_MODE, SetMode(session_id=session, mode_id=mode))
        return
    option = _option(response, MODE)
    if option is None:
        raise _missing(name, "mode", mode, [])
    await _choose(connection, name, option, session, mode)


async def _set_model(
    connection: Connection, name: str, response: Session, session: str, wanted: str, model: str
) -> None:
    option = next((found for found in response.config_options or () if found.id == wanted), None)
    if option is None:
        raise _missing(name, "option", wanted, [found.id for found in response.config_options or ()])
    await _choose(connection, name, option, session, model)


async def _choose(connection: Connection, name: str, option: Select, session: str, value: str) -> None:
    offered = option.values
    if value not in offered:
        raise _missing(name, option.id, value, offered)
    if option.current_value != value:
        await connection.ask(SET_OPTION, SetOption(config_id=option.id, session_id=session, value=value))


def _missing(name: str, what: str, wanted: str, offered: Sequence[str]) -> AgentUnavailable:
    has = ", ".join(f"`{one_line(found)[:60]}`" for found in offered[:20]) or "none"
    return AgentUnavailable(
        f"agent `{name}` has no {one_line(what)[:60]} `{wanted}`; it has {has}",
        f"change it in `planforge.toml` under `[agents.profiles.{name}]`",
    )


def _option(response: Session, kind: str) -> Select | None:
    return next(
        (found for found in response.config_options or () if kind in (found.category, found.id)), None
    )


def _current(response: Session, kind: str) -> str:
    option = _option(response, kind)
    return one_line(option.current_value)[:200] if option else ""
