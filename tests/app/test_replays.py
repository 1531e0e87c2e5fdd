"""Real recordings under other settings: which there are, and what they would have meant."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from forgeries import HISTORIES, Forgery, body, forged
from planforge.app.history.replays import SETTINGS, BacktestReport, backtested, replayed
from planforge.app.settings import Settings
from planforge.errors import InvalidInput, PlanforgeError
from planforge.kernel.replay.proof import Proof
from planforge.kernel.replay.proof_faults import unpack

RETRIED = "done-after-retries-and-rejections"
FAILED = "failed-after-three-lies"
REVISED = "forged-after-a-revision"
CAPPED = "forge-stopped-by-its-cap"


def history(name: str) -> Proof:
    return unpack((HISTORIES / f"{name}.proof").read_bytes())[0]


def told(name: str, *settings: str) -> BacktestReport:
    proof = history(name)
    return backtested(proof, proof.manifest.about.run, settings)


def test_a_lower_cap_ends_the_forge_sooner_for_less() -> None:
    found = told(REVISED, "forge.cap=1").backtest
    assert found.parted is not None
    assert [field.path for field in found.parted.fields] == ["decision", "decision_reason"]
    assert found.end is not None
    assert (found.end.succeeded, found.end.exit_code) == (False, 6)
    assert "CAP_REACHED" in found.end.reason
    assert (found.cost.agent_calls, found.recorded_cost.agent_calls) == (2, 4)
    assert (found.cost.rounds, found.recorded_cost.rounds) == (1, 2)
    assert 0 < found.cost.tokens < found.recorded_cost.tokens


def test_a_higher_cap_stops_at_the_revision_that_nobody_was_asked_for() -> None:
    found = told(CAPPED, "loop.cap=3").backtest
    assert not found.ended
    assert found.stopped.startswith("recording ends here: `RunAgent` (reviser)")
    assert found.cost.agent_calls == found.recorded_cost.agent_calls


def test_fewer_attempts_than_it_took_fail_the_run_for_less() -> None:
    for attempts in (1, 2):
        found = told(RETRIED, f"run.attempts={attempts}").backtest
        assert found.recorded_end is not None
        assert found.recorded_end.succeeded
        assert found.end is not None
        assert (found.end.succeeded, found.end.exit_code) == (False, 1)
        assert found.end.reason.startswith("phase-1: ")
        assert found.cost.attempts == attempts
        assert found.cost.agent_calls == attempts
        assert found.cost.check_seconds < found.recorded_cost.check_seconds


def test_as_many_attempts_as_it_took_change_nothing() -> None:
    found = told(RETRIED, "run.attempts=4").backtest
    assert (found.parted, found.cost) == (None, found.recorded_cost)


def test_one_attempt_more_than_a_failed_run_had_is_where_its_recording_ends() -> None:
    found = told(FAILED, "run.attempts=4").backtest
    assert found.parted is not None
    assert not found.ended
    assert "recording ends here" in found.stopped


def test_how_many_steps_go_at_once_decides_nothing() -> None:
    report = told(RETRIED, "run.jobs=1")
    assert [(change.setting, change.recorded, change.value) for change in report.changed] == [
        ("run.jobs", 2, 1)
    ]
    assert report.backtest.parted is None


@pytest.mark.parametrize("setting", ["run.parallel=true", "run.max_files=1"])
def test_another_decomposition_parts_at_the_start_and_stops_honestly(setting: str) -> None:
    found = told(RETRIED, setting).backtest
    assert found.parted is not None
    assert found.parted.key == "/1"
    assert not found.ended


@pytest.mark.parametrize(
    ("name", "setting", "says"),
    [
        (RETRIED, "run.speed=3", "`run.speed` cannot be set for a back-test"),
        (
            RETRIED,
            "run.attemps=3",
            "`run.attemps` cannot be set for a back-test; did you mean `run.attempts`?",
        ),
        (RETRIED, "nonsense", "`nonsense` cannot be set"),
        (RETRIED, "forge.cap=3", "`forge.cap` is no setting of a `plan_run`; it has `run.attempts`"),
        (REVISED, "run.attempts=3", "`run.attempts` is no setting of a `forge`; it has `forge.cap`"),
        (RETRIED, "run.attempts=0", "`run.attempts` must be a whole number from 1 on, not `0`"),
        (RETRIED, "run.attempts=x", "`run.attempts` must be a whole number"),
        (RETRIED, "run.attempts=-1", "`run.attempts` must be a whole number"),
        (RETRIED, "run.attempts=" + "9" * 5000, "must be a whole number"),
        (RETRIED, "run.attempts", "`run.attempts` must be a whole number"),
        (RETRIED, "run.parallel=yes", "`run.parallel` must be `true` or `false`, not `yes`"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_and_the_known_ones_named(
    name: str, setting: str, says: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        told(name, setting)
    assert says in refused.value.message


def test_the_demo_has_no_settings() -> None:
    with pytest.raises(InvalidInput, match=r"`forge\.cap` is no setting of a `demo`"):
        told("demo", "forge.cap=1")


def test_settings_are_named_as_in_the_file() -> None:
    known = {
        f"{table}.{name}"
        for table in ("forge", "run")
        for name in getattr(Settings(), table).__struct_fields__
    }
    assert set(SETTINGS) - {"loop.cap", "run.parallel"} <= known


def as_proof(forgery: Forgery, path: Path) -> Proof:
    path.write_bytes(forgery.data())
    return unpack(path.read_bytes())[0]


def test_a_run_of_another_version_of_its_flow_is_said_in_one_line(tmp_path: Path) -> None:
    def older(forgery: Forgery) -> None:
        forgery.change(forgery.find("RunStarted"), flow_version=99)

    proof = as_proof(forged(RETRIED, older), tmp_path / "p")
    with pytest.raises(
        PlanforgeError, match="was recorded by version 99 of `plan_run`, this Planforge has"
    ) as no:
        replayed(proof, "run-002")
    assert no.value.exit_code == 1


def test_a_flow_that_is_gone_and_a_request_that_does_not_fit_are_said_in_one_line(tmp_path: Path) -> None:
    def gone(forgery: Forgery) -> None:
        forgery.change(forgery.find("RunStarted"), flow="dance")

    def unfit(forgery: Forgery) -> None:
        row = forgery.find("RunStarted")
        request = body(row)["request"]
        inline = {name: value for name, value in request["inline"].items() if name != "base"}
        forgery.change(row, request=request | {"inline": inline})

    with pytest.raises(PlanforgeError, match="is a `dance`, which this Planforge does not know"):
        replayed(as_proof(forged(RETRIED, gone), tmp_path / "p"), "run-002")
    with pytest.raises(PlanforgeError, match=r"does not fit `plan_run` as it is now: .*base"):
        replayed(as_proof(forged(RETRIED, unfit), tmp_path / "p"), "run-002")


def test_a_backtest_can_be_kept_as_json() -> None:
    report = told(RETRIED, "run.attempts=1")
    again = msgspec.json.decode(msgspec.json.encode(report))
    assert again["backtest"]["end"]["exit_code"] == 1
    assert again["backtest"]["parted"]["key"]
