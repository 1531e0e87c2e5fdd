"""
A recorded run decided again: as it was, or under other settings.

Whatever holds the recording will do, a ledger or a proof. Nothing is performed and
nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from planforge.errors import InvalidInput, did_you_mean
from planforge.kernel import replay as replays
from planforge.kernel.events import RunEnded
from planforge.kernel.replay import Replay
from planforge.kernel.replay import backtest as backtests
from planforge.kernel.replay.backtest import Backtest
from planforge.kernel.replay.tape import Asked, Recording, Tape
from planforge.workflows.flows import Declaration, asked

FLAGS = {"true": True, "false": False}


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a back-test."""

    setting: str
    recorded: object
    value: object


class BacktestReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was changed and what came of it."""

    schema_version: int = 1
    changed: tuple[Changed, ...]
    backtest: Backtest


def replayed(recording: Recording, run: str) -> Replay:
    """Decide a recorded run again and compare."""
    tape = Tape(recording, run)
    declared, request = asked(tape.started, tape.body(tape.started.request))
    return replays.replay(tape, declared.flow(request), _ending(declared, run))


def backtested(
    recording: Recording, run: str, settings: Sequence[str], watch: Callable[[Asked], None] | None = None
) -> BacktestReport:
    """Decide a recorded run again under `settings`, such as `run.attempts=2`; `watch` sees what is asked."""
    tape = Tape(recording, run)
    declared, request = asked(tape.started, tape.body(tape.started.request))
    changed = tuple(_changed(declared, request, setting) for setting in settings)
    values: Mapping[str, Any] = {SETTINGS[change.setting][0]: change.value for change in changed}
    flow = declared.flow(msgspec.structs.replace(request, **values))
    return BacktestReport(
        changed=changed, backtest=backtests.backtest(tape, flow, _ending(declared, run), watch)
    )


def _ending(declared: Declaration, run: str) -> Callable[[Any], RunEnded]:
    def ending(result: Any) -> RunEnded:
        found = declared.outcome(result)
        return RunEnded(run=run, succeeded=found.succeeded, reason=found.reason, exit_code=found.exit_code)

    return ending


def _changed(declared: Declaration, request: msgspec.Struct, setting: str) -> Changed:
    name, _, text = setting.partition("=")
    if name not in SETTINGS:
        raise InvalidInput(
            f"`{name}` cannot be set for a back-test{did_you_mean(name, SETTINGS)}",
            f"known are {_names(SETTINGS)}",
        )
    field, _ = SETTINGS[name]
    if field not in request.__struct_fields__:
        fitting = [name for name, (field, _) in SETTINGS.items() if field in request.__struct_fields__]
        has = f"; it has {_names(fitting)}" if fitting else ""
        raise InvalidInput(f"`{name}` is no setting of a `{declared.name}`{has}")
    return Changed(setting=name, recorded=getattr(request, field), value=_value(name, text))


def _names(names: Mapping[str, object] | Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _value(name: str, text: str) -> int | bool:
    least = SETTINGS[name][1]
    if least is None:
        if text not in FLAGS:
            raise InvalidInput(f"`{name}` must be `true` or `false`, not `{text}`")
        return FLAGS[text]
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least):
        raise InvalidInput(f"`{name}` must be a whole number from {least} on, not `{text}`")
    return int(text)


SETTINGS: dict[str, tuple[str, int | None]] = {
    "forge.cap": ("cap", 1),
    "loop.cap": ("cap", 1),
    "run.attempts": ("attempts", 1),
    "run.escalate_after": ("escalate_after", 0),
    "run.handoffs": ("handoffs", 0),
    "run.jobs": ("jobs", 1),
    "run.max_files": ("max_files", 1),
    "run.parallel": ("parallel", None),
}
"""
The settings that a back-test can change: which part of a request each is, and the least that it can be. None
is for one that is true or false.
"""
