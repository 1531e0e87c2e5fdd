"""
Decides a recorded run again and compares.

The flow gets the recorded outcomes and nothing is performed or written. Every
effect it asks for must be the one on record under that key, every fact it notes
(and with it every score, which the flow computes anew) must be the recorded
fact, and the end must be the recorded end. What is on record although the flow
never asked for it is a difference too. The first difference ends the replay and
is given with both sides in full.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from planforge.errors import CannotPerform, LedgerUnreadable, PlanforgeError, RefusedByGate
from planforge.kernel.effects import Effect, Flow, Note, Together, close
from planforge.kernel.events import RunEnded, StepCompleted
from planforge.kernel.objects import address, encode
from planforge.kernel.replay.differences import (
    REDACTED,
    Difference,
    differing,
    same_but_redacted,
    value_of,
)
from planforge.kernel.replay.tape import Asked, Entry, RecordingEnds, Tape, drive, path_of
from planforge.kernel.wording import CANCELLED

Result = TypeVar("Result")

DECISIONS = frozenset(
    {"AuditRecorded", "PlanForged", "PlanStarted", "VerifyOk", "VerifyFailed", "AttemptRejected"}
    | {"AttemptInspected", "StepCompleted", "StepFailed", "PlanEnded", "RunEnded"}
    | {"PlanLanded", "LandingConflicted", "LandingBroken", "PlanHeldBack", "StepReopened"}
    | {"LandingRestarted", "LandingCaughtUp"}
    | {"StageEnded", "ItemMoved", "TaskEnded"}
)
"""The facts that say what was decided, and not only what was asked or answered."""


class Counts(msgspec.Struct, kw_only=True):
    """How much was compared."""

    effects: int = 0
    notes: int = 0
    decisions: int = 0
    scores: int = 0


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What came of deciding a run again."""

    run: str
    flow: str
    ended: bool
    """Whether the recording has an end. One that has none was replayed up to where it stops."""
    reason: str
    counts: Counts
    difference: Difference | None

    @property
    def agrees(self) -> bool:
        """Whether nothing differs."""
        return self.difference is None


class Differs(Exception):
    """The replay need not go on."""

    def __init__(self, difference: Difference) -> None:
        super().__init__(difference.problem)
        self.difference = difference


def replay(tape: Tape, flow: Flow[Result], judge: Callable[[Result], RunEnded]) -> Replay:
    """Drive `flow` from `tape`; `judge` says how a run with that result ends."""
    comparing = _Comparing(tape)
    ended, reason, difference = tape.ended is not None, "", None
    try:
        comparing.require_nothing_odd()
        reason = comparing.run(flow, judge)
    except Differs as error:
        difference, reason = error.difference, error.difference.problem
    finally:
        close(flow)
    return Replay(
        run=tape.run,
        flow=tape.started.flow,
        ended=ended,
        reason=reason,
        counts=comparing.counts,
        difference=difference,
    )


class _Comparing:
    """Answers a flow from a tape and compares on the way."""

    def __init__(self, tape: Tape) -> None:
        self.counts = Counts()
        self._tape = tape
        self._seen: set[str] = set()
        self._latest: dict[str, int] = {}
        """For each path of the flow, the newest version of the stream that belongs to it."""
        self._waits: dict[str, tuple[str, ...]] = {}
        """For each path that waits for others, theirs."""

    def require_nothing_odd(self) -> None:
        for recorded in self._tape.odd:
            problem = f"event {recorded.seq} (`{recorded.kind}`) has no place in the run"
            raise Differs(differing(recorded.key, problem, value_of(recorded.event), None))

    def run(self, flow: Flow[Result], judge: Callable[[Result], RunEnded]) -> str:
        """Compare the whole run; how it ended, in words."""
        end: RunEnded | None = None
        stopped: RecordingEnds | PlanforgeError | None = None
        try:
            end = judge(drive(flow, self.answer, self._tape.order))
        except (CannotPerform, RefusedByGate) as error:
            reason, code = error.message, error.exit_code
            end = RunEnded(run=self._tape.run, succeeded=False, reason=reason, exit_code=code)
        except (Differs, LedgerUnreadable):
            raise
        except (RecordingEnds, PlanforgeError) as error:
            stopped = error
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise Differs(differing("", f"the flow failed with {said}", None, {"error": said})) from error
        self._require_all_seen()
        if end is not None:
            return self._compared_end(end)
        assert stopped is not None
        return self._stopped(stopped)

    def answer(self, asked: Asked) -> object:
        entry = self._tape.entries.get(asked.key)
        if entry is None:
            raise RecordingEnds(asked)
        self._seen.add(asked.key)
        self._require_order(asked, entry)
        require_same(self._tape, asked, entry)
        self._count(asked)
        if not isinstance(asked.what, Effect):
            return None
        if entry.outcome is None:
            raise RecordingEnds(asked)
        return self._tape.outcome(asked.what, entry.outcome)

    def _count(self, asked: Asked) -> None:
        if not isinstance(asked.what, Note):
            self.counts.effects += 1
            return
        event = asked.what.event
        self.counts.notes += 1
        self.counts.decisions += type(event).__name__ in DECISIONS
        self.counts.scores += isinstance(event, StepCompleted) and event.score is not None

    def _require_order(self, asked: Asked, entry: Entry) -> None:
        """In one path, whatever is asked for later is recorded later."""
        path = asked.key.rpartition("/")[0]
        before = (path, *self._waits.get(path, ()))
        if entry.first <= max(self._latest.get(earlier, 0) for earlier in before):
            problem = f"`{asked.key}` is recorded before what the flow asks for first"
            raise Differs(differing(asked.key, problem, recorded_of(self._tape, entry), asked_of(asked)))
        if isinstance(asked.what, Together):
            self._latest |= {path_of(asked.key, name): entry.first for name in asked.what.flows}
            self._waits |= {
                path_of(asked.key, name): tuple(path_of(asked.key, other) for other in others)
                for name, others in asked.what.after.items()
            }
        while True:
            self._latest[path] = max(self._latest.get(path, 0), entry.last)
            if not path:
                return
            path = path.rpartition("/")[0].rpartition("/")[0]

    def _require_all_seen(self) -> None:
        entries = self._tape.entries
        left = [key for key in entries if key not in self._seen]
        if left:
            key = min(left, key=lambda key: entries[key].first)
            problem = f"`{key}` is on record, but the flow never asks for it"
            raise Differs(differing(key, problem, recorded_of(self._tape, entries[key]), None))

    def _compared_end(self, end: RunEnded) -> str:
        recorded = self._tape.ended
        if recorded is None:
            return f"the flow ends here ({end.reason}); the recording does not say so yet"
        if difference := differing_ends(recorded, end):
            raise Differs(difference)
        self.counts.decisions += 1
        return recorded.reason

    def _stopped(self, error: RecordingEnds | PlanforgeError) -> str:
        recorded = self._tape.ended
        if recorded is not None and self._from_outside(error, recorded):
            return recorded.reason
        if isinstance(error, PlanforgeError):
            if recorded is None:
                return f"the flow cannot go on: {error.message}"
            said = {"error": error.message}
            problem = "the flow cannot go on, but the recording has an end"
            raise Differs(differing("", problem, value_of(recorded), said))
        asked = error.asked
        if recorded is None:
            return f"the recording ends at `{asked.key}`: {words_of(asked)}"
        raise Differs(beyond_the_end(recorded, asked))

    def _from_outside(self, error: RecordingEnds | PlanforgeError, end: RunEnded) -> bool:
        """Whether a person, or a gate that an effect met, ended the run and not its flow."""
        if end.succeeded:
            return False
        if end.reason.startswith(CANCELLED):
            return True
        begun = isinstance(error, RecordingEnds) and error.asked.key in self._tape.entries
        return begun and end.exit_code == RefusedByGate.exit_code


def beyond_the_end(recorded: RunEnded, asked: Asked) -> Difference:
    """The flow asks for something after the recorded end."""
    problem = f"`{asked.key}` is asked for, but the recording ends without it"
    return differing(asked.key, problem, value_of(recorded), asked_of(asked))


def differing_ends(recorded: RunEnded, end: RunEnded) -> Difference | None:
    """Where the recorded end and the flow's own differ; a person may end a run whatever its flow says."""
    if same_but_redacted(encode(recorded), encode(end)) or recorded.reason.startswith(CANCELLED):
        return None
    problem = "the flow ends otherwise than the recording says"
    return differing("", problem, value_of(recorded), value_of(end))


def require_same(tape: Tape, asked: Asked, entry: Entry) -> None:
    """Raise `Differs` unless `asked` is what is on record."""
    match asked.what:
        case Note(event=event):
            same = entry.fact == event
            what = "fact"
        case _:
            intent = entry.intent
            found = (intent.effect, intent.fingerprint) if intent else None
            same = found == (asked.name, asked.fingerprint)
            if intent and same:
                require_own_body(tape, asked, intent.fingerprint, entry)
            what = "effect"
    if not same:
        problem = f"another {what} is on record under `{asked.key}`"
        raise Differs(differing(asked.key, problem, recorded_of(tape, entry), asked_of(asked)))


def require_own_body(tape: Tape, asked: Asked, fingerprint: str, entry: Entry) -> None:
    """A fingerprint that is right beside a body that is not is no record of the effect."""
    assert entry.intent is not None
    body = tape.body(entry.intent.body)
    if address(body) != fingerprint and not (REDACTED.search(body) and same_but_redacted(body, asked.body)):
        problem = f"the body on record under `{asked.key}` is not what its fingerprint says"
        raise Differs(differing(asked.key, problem, recorded_of(tape, entry), asked_of(asked)))


def recorded_of(tape: Tape, entry: Entry) -> object:
    """What is on record under a key, as JSON values."""
    if entry.intent is not None:
        body = tape.body(entry.intent.body)
        try:
            return {"effect": entry.intent.effect, "body": msgspec.json.decode(body)}
        except msgspec.MsgspecError:
            return {"effect": entry.intent.effect, "body": body.decode("utf-8", "replace")}
    return value_of(entry.fact) if entry.fact is not None else None


def asked_of(asked: Asked) -> object:
    """What a flow asks for or notes, as JSON values."""
    if isinstance(asked.what, Note):
        return value_of(asked.what.event)
    return {"effect": asked.name, "body": msgspec.json.decode(asked.body)}


def words_of(asked: Asked) -> str:
    """What a flow asks for, in a phrase."""
    if isinstance(asked.what, Note):
        return f"`{type(asked.what.event).__name__}` is not on record"
    about = f" ({asked.about})" if asked.about else ""
    return f"`{asked.name}`{about} has no recorded outcome"
