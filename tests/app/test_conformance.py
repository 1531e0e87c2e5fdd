"""What a conformance run says of agents that do as they should, of others, and where it cannot say."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from planforge.agents.profiles import Profile, Way
from planforge.app.agents.conformance import Conformance, conform
from planforge.app.agents.conformance.outcomes import Outcome
from planforge.app.settings import AgentSettings, Settings
from planforge.errors import InvalidInput
from programs import planforge
from repositories import repository

PROGRAM = Path(__file__).parents[1] / "agents" / "bad_agent.py"


def bad(tmp_path: Path, behaviour: str, **more: object) -> Settings:
    """Settings with an agent that says it can be pointed at a server, and then does as it likes."""
    work = tmp_path / "work.json"
    work.write_text("{}")
    profile = Profile(
        command=(sys.executable, str(PROGRAM), "acp", behaviour),
        env={"BAD_AGENT_WORK": str(work), "BAD_AGENT_MARK": "conformance"},
        reads=(str(PROGRAM), str(work)),
        version=(),
        endpoint=Way(env={"IGNORED": "${endpoint}"}),
        **more,  # type: ignore[arg-type]
    )
    return Settings(agents=AgentSettings(profiles={"bad": profile}))


def tried(name: str, settings: Settings, only: Sequence[str] = ()) -> Conformance:
    return asyncio.run(conform(name, settings, only=only))


def outcomes(found: Conformance) -> dict[str, str]:
    return {line.check: line.outcome.value for line in found.checks}


@pytest.mark.dear
def test_the_rehearsal_agent_passes_every_check() -> None:
    found = tried("rehearsal", Settings())
    assert outcomes(found) == dict.fromkeys(
        [
            *("write", "usage", "read-only", "resume", "cancel", "time-out"),
            *("error 401", "error 429", "error 500"),
        ],
        "passed",
    )
    assert found.conforms
    assert found.startup is not None
    assert 0 < found.startup < 60


def test_an_agent_that_only_says_that_it_did_it_is_found_out(tmp_path: Path) -> None:
    found = tried("bad", bad(tmp_path, "honest", usage="turn"), ["write", "usage", "error 401", "time-out"])
    seen = {line.check: line.seen for line in found.checks}
    assert set(outcomes(found).values()) == {"failed"}
    assert not found.conforms
    assert "the file is not there" in seen["write"]
    assert "did not" in seen["usage"]
    assert "as if nothing had happened" in seen["error 401"]
    assert "although it should not" in seen["time-out"]


def test_an_agent_that_writes_where_it_may_only_read_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "work.json").write_text("")
    settings = bad(tmp_path, "honest")
    (tmp_path / "work.json").write_text(json.dumps({"forbidden.txt": {"forbidden.txt": "x"}}))
    weak = Settings(agents=settings.agents, sandbox=type(settings.sandbox)(level="processes"))
    (line,) = tried("bad", weak, ["read-only"]).checks
    assert (line.outcome, line.seen) == (
        Outcome.FAILED,
        "although it may only read, it wrote `forbidden.txt`",
    )


def test_what_an_agent_does_not_offer_cannot_be_told(tmp_path: Path) -> None:
    found = tried("bad", bad(tmp_path, "honest"), ["resume", "usage"])
    assert outcomes(found) == {"usage": "cannot tell", "resume": "cannot tell"}
    assert not found.conforms


def test_an_agent_that_cannot_be_pointed_at_a_server_is_not_started(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    profile = Profile(command=("sh", "-c", f"touch {mark}"))
    found = tried("mine", Settings(agents=AgentSettings(profiles={"mine": profile})))
    assert set(outcomes(found).values()) == {"cannot tell"}
    assert "`endpoint`" in found.checks[0].seen
    assert not mark.exists()


def test_an_agent_that_is_ended_by_itself_fails_its_check_and_not_the_run(tmp_path: Path) -> None:
    found = tried("bad", bad(tmp_path, "nothing"), ["write", "cancel"])
    assert outcomes(found) == {"write": "failed", "cancel": "failed"}


def test_an_unknown_check_is_refused() -> None:
    with pytest.raises(InvalidInput, match="there is no check `bogus`"):
        tried("rehearsal", Settings(), ["bogus"])


def test_the_command_prints_a_table_and_remembers_how_fast_the_agent_starts(tmp_path: Path) -> None:
    root = repository(tmp_path / "here")
    assert planforge("init", cwd=root).returncode == 0
    shown = planforge("agent", "test", "rehearsal", "--only", "write", cwd=root)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[0].split() == ["check", "outcome", "seconds", "what", "was", "seen"]
    assert "`rehearsal` passed 1 of 1 check" in shown.stdout
    listed = json.loads(planforge("agent", "list", "--json", cwd=root).stdout)
    (row,) = [row for row in listed["agents"] if row["name"] == "rehearsal"]
    assert row["startup_seconds"] > 0


def test_the_command_fails_unless_every_check_passed(tmp_path: Path) -> None:
    root = repository(tmp_path / "here")
    (root / "planforge.toml").write_text('[agents.profiles.mine]\ncommand = ["sh"]\n')
    assert planforge("init", cwd=root).returncode == 0
    found = planforge("agent", "test", "mine", "--json", cwd=root)
    assert found.returncode == 1
    assert {line["outcome"] for line in json.loads(found.stdout)["checks"]} == {"cannot tell"}
