"""Conversations with agents: found again by a resumed run, and only where they can be gone on with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from planforge.app.agents.sessions import Sessions, stream, used
from planforge.kernel.effects import Usage
from planforge.kernel.events import SessionKept, SessionLost
from planforge.kernel.ledger import Ledger

NAME = "forge:plan-001:auditor"
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path, lambda: AT)


def conversation(session: str = "s1", **fields: Any) -> SessionKept:
    kept = SessionKept(
        run="run-001",
        conversation=NAME,
        agent="claude",
        model="opus",
        session=session,
        home="homes/run-001/x/claude",
        began_at=AT.isoformat(),
    )
    return msgspec.structs.replace(kept, **fields)


def test_a_conversation_is_found_again_by_another_process(ledger: Ledger) -> None:
    kept = conversation(input_tokens=100, output_tokens=10, cached_tokens=5)
    Sessions(ledger, "run-001").keep(kept)
    found = Sessions(ledger, "run-001").find(NAME, "claude", "opus")
    assert found == kept
    assert used(found) == Usage(input_tokens=100, output_tokens=10, cached_tokens=5)
    assert used(conversation()) is used(None) is None


@pytest.mark.parametrize(
    ("run", "name", "agent", "model"),
    [
        ("run-002", NAME, "claude", "opus"),
        ("run-001", "forge:plan-001:drafter", "claude", "opus"),
        ("run-001", NAME, "codex", "opus"),
        ("run-001", NAME, "claude", "sonnet"),
        ("run-001", NAME, "claude", ""),
    ],
)
def test_only_the_same_run_name_agent_and_model_go_on(
    ledger: Ledger, run: str, name: str, agent: str, model: str
) -> None:
    Sessions(ledger, "run-001").keep(conversation())
    assert Sessions(ledger, run).find(name, agent, model) is None


def test_one_that_is_lost_is_not_found_until_there_is_a_new_one(ledger: Ledger) -> None:
    sessions = Sessions(ledger, "run-001")
    sessions.keep(conversation())
    sessions.lose(NAME, "it said nonsense")
    assert sessions.find(NAME, "claude", "opus") is None
    sessions.keep(conversation("s2"))
    found = sessions.find(NAME, "claude", "opus")
    assert found is not None
    assert found.session == "s2"


def test_nothing_is_said_of_a_conversation_that_there_is_not(ledger: Ledger) -> None:
    sessions = Sessions(ledger, "run-001")
    sessions.lose(NAME, "why")
    sessions.keep(conversation())
    sessions.lose(NAME, "why")
    sessions.lose(NAME, "again")
    kinds = [type(item.event) for item in ledger.stream(stream("run-001"))]
    assert kinds == [SessionKept, SessionLost]


def test_a_conversation_has_an_age(ledger: Ledger) -> None:
    early = conversation(began_at=(AT - timedelta(seconds=90)).isoformat())
    assert Sessions(ledger, "run-001").age(early) == 90


def test_a_secret_in_the_reason_is_not_stored(ledger: Ledger) -> None:
    sessions = Sessions(ledger, "run-001")
    sessions.keep(conversation())
    sessions.lose(NAME, "it printed ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2)
    (lost,) = [item.event for item in ledger.stream(stream("run-001")) if isinstance(item.event, SessionLost)]
    assert lost.reason == "it printed [redacted:github-token]"
