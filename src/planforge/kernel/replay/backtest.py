"""
Decides a recorded run again under other settings, as far as the recording carries.

Until the decisions part, every answer is the recorded one under the same key.
From then on an answer is taken only where it is known:

- an effect without an outcome is taken as done;
- what a plan file or an approval says after it was written follows from the effect;
- where a branch points follows from what has landed in this telling, as long as it is
  known which of several flows comes first (`company.py`);
- anything else must have been asked for, word for word, in the recorded run. An
  agent or a person gives each recorded answer once.

Where none of that holds, the recording ends, and the back-test says so. Flows that go
at once each go on as far as they can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

import msgspec

from planforge.errors import CannotPerform, LedgerUnreadable, PlanforgeError, RefusedByGate
from planforge.kernel import effects
from planforge.kernel.driver import outcome_type
from planforge.kernel.effects import Effect, Flow, Note
from planforge.kernel.events import AuditRecorded, EffectFailed, Event, PlanStarted, RunEnded, StepStarted
from planforge.kernel.evidence import Evidence
from planforge.kernel.objects import address
from planforge.kernel.replay import Differs, beyond_the_end, differing_ends, require_same, words_of
from planforge.kernel.replay.company import Company
from planforge.kernel.replay.differences import Difference, differing
from planforge.kernel.replay.tape import Asked, Entry, RecordingEnds, Tape, drive

Result = TypeVar("Result")

ONCE = (effects.RunAgent, effects.AskHuman, effects.TakeApproval, effects.ClaimLease)
"""Effects whose recorded answer is used once: asked again, the world could answer differently."""

UNCHANGED = {
    effects.ReadPlan: "nobody edits the plan file at a time when the recording does not look at it",
    effects.ReadPhases: "no other run lands anything meanwhile",
}
"""Effects that look at the world, and what is assumed where they look more often than was recorded."""

CUT = "the plan had no phases before the run"
TOLD_BY_THE_BRANCH = "nobody else moves the plan's branch"


class Cost(msgspec.Struct, kw_only=True):
    """What a run took."""

    agent_calls: int = 0
    tokens: int = 0
    """As far as agents said."""
    calls_without_tokens: int = 0
    """Calls of agents that did not say; unknown, not zero."""
    checks: int = 0
    check_seconds: float = 0.0
    attempts: int = 0
    rounds: int = 0


class End(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ends."""

    succeeded: bool
    reason: str
    exit_code: int


class Backtest(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run would have gone."""

    run: str
    flow: str
    parted: Difference | None
    """The first place where it decides otherwise than was recorded."""
    ended: bool
    """Whether it could be told to its end."""
    end: End | None
    stopped: str
    """Where the recording ends and why, if it could not be told to its end."""
    unanswered: tuple[str, ...]
    """The keys of the questions at which it ends; several where steps go at once."""
    recorded_end: End | None
    cost: Cost
    """Up to the end, or up to where the recording ends."""
    recorded_cost: Cost
    assumptions: tuple[str, ...]


def backtest(
    tape: Tape,
    flow: Flow[Result],
    judge: Callable[[Result], RunEnded],
    watch: Callable[[Asked], None] | None = None,
) -> Backtest:
    """Drive `flow`, made with other settings, from `tape`; `watch` gets to see everything it asks for."""
    telling = _Telling(tape, watch)
    end: RunEnded | None = None
    stopped = ""
    try:
        end = judge(drive(flow, telling.answer, tape.order, telling.company))
    except RecordingEnds as error:
        end = telling.refused(error.asked)
        stopped = "" if end else telling.why(error.asked)
    except (CannotPerform, RefusedByGate) as error:
        # What ends a run for good (`app/runs.py`), whether an effect or the flow itself came to it.
        end = RunEnded(run=tape.run, succeeded=False, reason=error.message, exit_code=error.exit_code)
    except LedgerUnreadable:
        raise
    except PlanforgeError as error:
        stopped = f"the flow cannot go on: {error.message}"
    telling.part_at_the_end(end)
    return Backtest(
        run=tape.run,
        flow=tape.started.flow,
        parted=telling.parted,
        ended=end is not None,
        end=_end(end),
        stopped=stopped,
        unanswered=() if end else tuple(telling.unanswered),
        recorded_end=_end(tape.ended),
        cost=telling.cost,
        recorded_cost=cost_of(tape),
        assumptions=tuple(telling.assumptions),
    )


def _end(ended: RunEnded | None) -> End | None:
    if ended is None:
        return None
    return End(succeeded=ended.succeeded, reason=ended.reason, exit_code=ended.exit_code)


class _Telling:
    """Answers a flow that may ask for something else than was recorded."""

    def __init__(self, tape: Tape, watch: Callable[[Asked], None] | None) -> None:
        self.parted: Difference | None = None
        self.company = Company(tape)
        self.unanswered: dict[str, str] = {}
        """Where the recording ends, and why where that is not just that nobody was asked."""
        self._watch = watch
        self._landed: set[str] = set()
        self._planned: tuple[str, ...] = ()
        facts = (entry.fact for entry in tape.entries.values() if entry.fact is not None)
        self._recorded_plan = next(filter(None, map(_planned, facts)), ())
        self.cost = Cost()
        self.assumptions: dict[str, None] = {}
        self._tape = tape
        self._tips: dict[str, str] = {}
        self._used: set[str] = set()
        self._known: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for key, entry in tape.entries.items():
            if entry.intent and entry.outcome:
                self._known[entry.intent.effect, entry.intent.fingerprint].append(key)

    def answer(self, asked: Asked) -> object:
        if self._watch is not None:
            self._watch(asked)
        try:
            return self._answered(asked)
        except RecordingEnds:
            self.unanswered.setdefault(asked.key, "")
            raise

    def _answered(self, asked: Asked) -> object:
        if self.parted is None:
            self._compare(asked)
        if isinstance(asked.what, Note):
            count_fact(self.cost, asked.what.event)
            self._planned = _planned(asked.what.event) or self._planned
            return None
        if not isinstance(asked.what, Effect):
            return None
        if isinstance(asked.what, effects.Land):
            self._require_turn(asked)
        if isinstance(asked.what, effects.OpenBranch):
            self._require_first(asked)
        if isinstance(asked.what, effects.GatherContext) and self._planned not in ((), self._recorded_plan):
            raise RecordingEnds(asked)  # agents are told what steps there are
        answer = self._answer(asked, asked.what)
        self._follow_branch(asked.what, answer)
        return answer

    def _require_turn(self, asked: Asked) -> None:
        """It must be known what has landed before; where that is not what had landed then, decisions part."""
        self._require_first(asked)
        before = {key for key in self._tape.entries if self._has_landed_before(key, asked.key)}
        if self.parted is None and before != self._landed:
            problem = f"`{asked.key}` lands in another order than is on record"
            self.parted = differing(asked.key, problem, sorted(before), sorted(self._landed))
        self._landed.add(asked.key)

    def _require_first(self, asked: Asked) -> None:
        """What is seen of the branch, or done to it, hangs on who was there before."""
        if not self.company.is_first(asked.key):
            self.unanswered[asked.key] = "it is not on record which of the steps at work lands first"
            raise RecordingEnds(asked)

    def _has_landed_before(self, key: str, other: str) -> bool:
        entry, later = self._tape.entries[key], self._tape.entries.get(other)
        is_landing = entry.intent is not None and entry.intent.effect == effects.Land.__name__
        return is_landing and later is not None and 0 < entry.last < later.last

    def why(self, asked: Asked) -> str:
        """Where the recording ends, and how many other questions it leaves open."""
        said = self.unanswered.get(asked.key) or words_of(asked)
        others = len(self.unanswered.keys() - {asked.key})
        more = f", and at {others} other place{'s' if others > 1 else ''}" if others else ""
        return f"recording ends here: {said} at `{asked.key}`{more}"

    def refused(self, asked: Asked) -> RunEnded | None:
        """How the run ended, if a gate refused exactly this and nothing was decided otherwise before."""
        recorded, entry = self._tape.ended, self._tape.entries.get(asked.key)
        begun = entry is not None and entry.intent is not None and entry.outcome is None
        if self.parted is None and begun and recorded and recorded.exit_code == RefusedByGate.exit_code:
            return recorded
        return None

    def _compare(self, asked: Asked) -> None:
        entry = self._tape.entries.get(asked.key)
        if entry is None and self._tape.ended is None:
            raise RecordingEnds(asked)
        if entry is None:
            assert self._tape.ended is not None
            self.parted = beyond_the_end(self._tape.ended, asked)
            return
        try:
            require_same(self._tape, asked, entry)
        except Differs as error:
            self.parted = error.difference

    def _answer(self, asked: Asked, effect: Effect[object]) -> object:
        if self.parted is not None:
            if outcome_type(effect) in (None, type(None)):
                return None
            if (told := self._told(effect)) is not None:
                return told
            if isinstance(effect, effects.Land):
                raise RecordingEnds(asked)
        entry = self._recorded(asked, effect)
        assert entry.outcome is not None
        count_outcome(self.cost, self._tape, entry)
        return self._tape.outcome(effect, entry.outcome)

    def _told(self, effect: Effect[object]) -> object:
        """An answer that follows from the question, or from what was answered before."""
        match effect:
            case effects.WritePlan():
                return effects.DocumentText(text=effect.text, object=address(effect.text.encode()))
            case effects.GiveApproval():
                return effects.Approval(actor=effect.actor, content=effect.content)
            case effects.ReadPhases():
                return self._cut_otherwise(effect)
            case effects.OpenBranch() if effect.branch in self._tips:
                self.assumptions[TOLD_BY_THE_BRANCH] = None
                return effects.Tip(commit=self._tips[effect.branch])
            case effects.Land() if effect.branch in self._tips:
                self.assumptions[TOLD_BY_THE_BRANCH] = None
                tip = self._tips[effect.branch]
                landed = tip == effect.expected
                return effects.Landing(landed=landed, tip=effect.commit if landed else tip)
        return None

    def _cut_otherwise(self, effect: effects.ReadPhases) -> effects.KnownPhases | None:
        """The phases of a plan that had none before, cut as is asked for now."""
        for entry in self._tape.entries.values():
            if entry.intent is None or entry.intent.effect != type(effect).__name__:
                continue
            if entry.outcome is None or isinstance(entry.outcome, EffectFailed):
                continue
            before = msgspec.json.decode(self._tape.body(entry.intent.body), type=effects.ReadPhases)
            known = msgspec.json.decode(self._tape.body(entry.outcome.outcome), type=effects.KnownPhases)
            as_asked = (known.parallel, known.max_files) == (before.parallel, before.max_files)
            if as_asked and not set(known.statuses.values()) - {"pending"}:
                self.assumptions[CUT] = None
                return effects.KnownPhases(
                    statuses={},
                    parallel=effect.parallel,
                    max_files=effect.max_files,
                    present=known.present,
                )
        return None

    def _follow_branch(self, effect: Effect[object], answer: object) -> None:
        match answer:
            case effects.Tip(commit=tip) if isinstance(effect, effects.OpenBranch):
                self._tips[effect.branch] = tip
            case effects.Landing(tip=tip) if isinstance(effect, effects.Land):
                self._tips[effect.branch] = tip

    def _recorded(self, asked: Asked, effect: Effect[object]) -> Entry:
        """What was recorded for this effect: under the same key, or later for the same question, in order."""
        known = self._known[asked.name, asked.fingerprint]
        if self.parted is None:
            known = [asked.key] if asked.key in known else []
        left = [key for key in known if key not in self._used]
        if left:
            self._used.add(left[0])
            return self._tape.entries[left[0]]
        if not known or isinstance(effect, ONCE):
            raise RecordingEnds(asked)
        last = self._tape.entries[known[-1]]
        if (assumed := UNCHANGED.get(type(effect))) is not None:
            self.assumptions[assumed] = None
        elif any(self._tape.entries[key].outcome != last.outcome for key in known):
            raise RecordingEnds(asked)
        return last

    def part_at_the_end(self, end: RunEnded | None) -> None:
        """Where everything asked for was on record, the ends may still differ."""
        recorded = self._tape.ended
        if self.parted is None and end is not None and recorded is not None:
            self.parted = differing_ends(recorded, end)


def _planned(event: Event) -> tuple[str, ...]:
    """The steps that a plan was started with, if that is what the event says."""
    return tuple(step.step for step in event.steps) if isinstance(event, PlanStarted) else ()


def cost_of(tape: Tape) -> Cost:
    """What the recorded run took."""
    cost = Cost()
    for entry in tape.entries.values():
        if entry.fact is not None:
            count_fact(cost, entry.fact)
        elif entry.outcome is not None:
            count_outcome(cost, tape, entry)
    return cost


def count_fact(cost: Cost, event: Event) -> None:
    """Add what a fact says of the cost."""
    cost.attempts += isinstance(event, StepStarted)
    cost.rounds += isinstance(event, AuditRecorded) and not event.step


def count_outcome(cost: Cost, tape: Tape, entry: Entry) -> None:
    """Add what a recorded outcome cost."""
    outcome = entry.outcome
    assert outcome is not None
    if outcome.effect == "RunAgent":
        cost.agent_calls += 1
        usage = None
        if not isinstance(outcome, EffectFailed):
            usage = msgspec.json.decode(tape.body(outcome.outcome), type=effects.AgentAnswer).usage
        if usage is None:
            cost.calls_without_tokens += 1
        else:
            cost.tokens += usage.input_tokens + usage.output_tokens
    elif outcome.effect in ("RunCheck", "RunFormerTests"):
        cost.checks += 1
        if not isinstance(outcome, EffectFailed):
            evidence = msgspec.json.decode(tape.body(outcome.outcome), type=Evidence)
            cost.check_seconds = round(cost.check_seconds + evidence.seconds, 3)
