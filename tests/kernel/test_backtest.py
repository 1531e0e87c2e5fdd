"""A recorded run under other settings: told as far as the recording carries, and no further."""

from __future__ import annotations

from typing import Any

from kernel.recordings import RUN, Said, Say, begin, choir, ending, fact, record, replayed, talk
from planforge.errors import CannotPerform, GitFailed, RefusedByGate
from planforge.kernel import effects
from planforge.kernel.effects import Effect, Flow, Note, Together
from planforge.kernel.events import EffectCompleted, EffectIntended, Event, RunEnded
from planforge.kernel.ledger import Ledger
from planforge.kernel.objects import address, encode
from planforge.kernel.payloads import pack
from planforge.kernel.replay.backtest import TOLD_BY_THE_BRANCH, Backtest, End, backtest, cost_of
from planforge.kernel.replay.tape import Tape

BRANCH = "planforge/plan-001"


def told(ledger: Ledger, flow: Flow[object]) -> Backtest:
    return backtest(Tape(ledger, RUN), flow, ending)


def by_hand(
    ledger: Ledger, *steps: tuple[str, Effect[Any] | Event, object], together: str | None = None
) -> None:
    """A recording of these effects with their outcomes, and facts, ended."""
    begin(ledger)
    if together is not None:
        body = encode(["a", "b"])
        intent = EffectIntended(effect="Together", fingerprint=address(body), body=pack(ledger, body))
        ledger.append(RUN, [intent], expected=None, key=together)
    for key, asked, outcome in steps:
        if isinstance(asked, Event):
            ledger.append(RUN, [asked], expected=None, key=key)
            continue
        body, name = encode(asked), type(asked).__name__
        intent = EffectIntended(effect=name, fingerprint=address(body), body=pack(ledger, body))
        completed = EffectCompleted(effect=name, outcome=pack(ledger, encode(outcome)))
        ledger.append(RUN, [intent, completed], expected=None, key=key)
    end = RunEnded(run=RUN, succeeded=True, reason="over", exit_code=0)
    ledger.append(RUN, [end], expected=None)


async def until(limit: int) -> str:
    """Say a number, and whether it goes on, until the limit."""
    said = ""
    for number in range(limit):
        said += (await Say(words=f"n{number}")).words
    await Note(fact(f"stopped at {limit}"))
    return said


def test_without_a_change_nothing_parts(ledger: Ledger) -> None:
    record(ledger, choir("a", "b"))
    found = told(ledger, choir("a", "b"))
    assert (found.parted, found.ended, found.stopped) == (None, True, "")
    assert found.end == found.recorded_end


def test_a_shorter_run_is_told_to_its_end(ledger: Ledger) -> None:
    record(ledger, until(3))
    found = told(ledger, until(2))
    assert found.parted is not None
    assert found.parted.key == "/2"
    assert found.end is not None
    assert found.end.reason == "N0N1"


def test_a_longer_run_stops_where_nobody_was_asked(ledger: Ledger) -> None:
    record(ledger, until(2))
    found = told(ledger, until(3))
    assert found.parted is not None
    assert (found.ended, found.end) == (False, None)
    assert found.stopped == "recording ends here: `Say` (n2) has no recorded outcome at `/2`"


def test_a_question_that_moved_is_answered_by_its_words(ledger: Ledger) -> None:
    async def moved() -> str:
        await Note(fact("first"))
        return (await Say(words="one")).words

    record(ledger, talk("one"))
    found = told(ledger, moved())
    assert found.parted is not None
    assert found.end is not None
    assert found.end.reason == "ONE"


def test_a_recorded_failure_fails_in_the_telling_too(ledger: Ledger) -> None:
    record(ledger, until(2), answer=lambda words: GitFailed("no") if words == "n1" else None)
    found = told(ledger, until(3))
    assert found.end is not None
    assert (found.end.succeeded, found.end.reason) == (False, "no")


def test_an_unfinished_recording_ends_without_parting(ledger: Ledger) -> None:
    begin(ledger)
    found = told(ledger, until(2))
    assert (found.parted, found.ended) == (None, False)
    assert "recording ends here" in found.stopped


def ask(words: str) -> effects.RunAgent:
    return effects.RunAgent(
        role="developer", access=effects.Access.WRITE, worktree="w", base="b", prompt=words
    )


def answer(text: str, tokens: int | None = 100) -> effects.AgentAnswer:
    usage = effects.Usage(input_tokens=tokens, output_tokens=1) if tokens is not None else None
    return effects.AgentAnswer(agent="a", text=text, stop_reason="end_turn", tool_calls=0, usage=usage)


def test_an_agent_gives_each_recorded_answer_once(ledger: Ledger) -> None:
    async def twice() -> str:
        await Note(fact("parted"))
        first, second = await ask("do"), await ask("do")
        third = await ask("do")
        return first.text + second.text + third.text

    by_hand(ledger, ("/0", ask("do"), answer("the same")), ("/1", ask("do"), answer("the same")))
    found = told(ledger, twice())
    assert "`RunAgent` (developer)" in found.stopped
    assert found.cost.agent_calls == 2


def test_tokens_that_nobody_reported_are_unknown_and_not_zero(ledger: Ledger) -> None:
    by_hand(ledger, ("/0", ask("a"), answer("x", 10)), ("/1", ask("b"), answer("y", None)))
    cost = cost_of(Tape(ledger, RUN))
    assert (cost.agent_calls, cost.tokens, cost.calls_without_tokens) == (2, 11, 1)


def test_what_has_no_outcome_is_taken_as_done_and_what_follows_from_the_question_is_known(
    ledger: Ledger,
) -> None:
    async def other() -> str:
        await Note(fact("parted"))
        await effects.MarkPlan(plan="plan-001", status="REVIEW")
        written = await effects.WritePlan(plan="plan-001", text="new", replaces=None)
        approval = await effects.GiveApproval(plan="plan-001", gate="plan", content="c", actor="ada")
        return f"{written.text} {written.object == address(b'new')} {approval.actor}"

    by_hand(ledger)
    found = told(ledger, other())
    assert found.end is not None
    assert found.end.reason == "new True ada"


def opened(commit: str) -> tuple[effects.OpenBranch, effects.Tip]:
    return effects.OpenBranch(branch=BRANCH, commit="base"), effects.Tip(commit=commit)


def landing(commit: str, expected: str) -> effects.Land:
    lease = effects.Leased(holder="run-001/phase-1", fence=1)
    return effects.Land(branch=BRANCH, commit=commit, expected=expected, lease=lease, files=())


def test_where_a_branch_points_follows_from_what_landed_in_the_telling(ledger: Ledger) -> None:
    async def without_the_first() -> str:
        await effects.OpenBranch(branch=BRANCH, commit="base")
        await Note(fact("the first is not landed"))
        tip = await effects.OpenBranch(branch=BRANCH, commit="base")
        late = await landing("c2", "c1")
        second = await landing("c2", "base")
        end = await effects.OpenBranch(branch=BRANCH, commit="base")
        return f"{tip.commit} {late.landed} {late.tip} {second.landed} {end.commit}"

    by_hand(
        ledger,
        ("/0", *opened("base")),
        ("/1", landing("c1", "base"), effects.Landing(landed=True, tip="c1")),
        ("/2", *opened("c1")),
        ("/3", landing("c2", "c1"), effects.Landing(landed=True, tip="c2")),
        ("/4", *opened("c2")),
    )
    found = told(ledger, without_the_first())
    assert found.end is not None
    assert found.end.reason == "base False base True c2"
    assert found.assumptions == (TOLD_BY_THE_BRANCH,)


async def lander(name: str, expected: str) -> bool:
    """Work on something, then land it."""
    await Say(words=name)
    return (await landing(f"c{name}", expected)).landed


async def both(limit: int | None = None, *, expected: str = "cb") -> str:
    """Two that land at once, and where the branch is then."""
    landed = await Together({"a": lander("a", expected), "b": lander("b", "base")}, limit)
    await Note(fact("parted"))
    tip = (await effects.OpenBranch(branch=BRANCH, commit="base")).commit
    return f"{landed['a']} {landed['b']} {tip}"


def at_once(ledger: Ledger) -> None:
    """Both were at work before either landed, and the second one landed first."""
    by_hand(
        ledger,
        ("/0/a/0", Say(words="a"), Said(words="A")),
        ("/0/b/0", Say(words="b"), Said(words="B")),
        ("/0/b/1", landing("cb", "base"), effects.Landing(landed=True, tip="cb")),
        ("/0/a/1", landing("ca", "cb"), effects.Landing(landed=True, tip="ca")),
        together="/0",
    )


def one_by_one(ledger: Ledger) -> None:
    """The second one began when the first one had landed."""
    by_hand(
        ledger,
        ("/0/a/0", Say(words="a"), Said(words="A")),
        ("/0/a/1", landing("ca", "base"), effects.Landing(landed=True, tip="ca")),
        ("/0/b/0", Say(words="b"), Said(words="B")),
        ("/0/b/1", landing("cb", "base"), effects.Landing(landed=False, tip="ca")),
        together="/0",
    )


def test_steps_that_ran_at_once_landed_in_the_order_of_the_recording(ledger: Ledger) -> None:
    at_once(ledger)
    found = told(ledger, both())
    assert found.end is not None
    assert found.end.reason == "True True ca"


def test_where_fewer_may_go_at_once_the_first_one_lands_first_whatever_is_on_record(ledger: Ledger) -> None:
    at_once(ledger)
    found = told(ledger, both(1))
    assert found.parted is not None
    assert found.parted.problem == "`/0/a/1` lands in another order than is on record"
    # Nothing is known of where the branch began, so what was answered in another order is no answer.
    assert found.unanswered == ("/0/a/1",)


def test_where_more_may_go_at_once_it_is_not_known_who_lands_first(ledger: Ledger) -> None:
    one_by_one(ledger)
    alone = told(ledger, both(1, expected="base"))
    assert alone.end is not None
    assert alone.end.reason == "True False ca"
    found = told(ledger, both(2, expected="base"))
    assert found.unanswered == ("/0/a/1", "/0/b/1")
    assert found.stopped == (
        "recording ends here: it is not on record which of the steps at work lands first at `/0/a/1`, "
        "and at 1 other place"
    )


def test_one_that_would_have_gone_on_might_have_landed_before_the_others(ledger: Ledger) -> None:
    async def longer() -> bool:
        await Say(words="a")
        await Say(words="nobody was asked this")
        return (await landing("ca", "base")).landed

    async def flow() -> str:
        await effects.OpenBranch(branch=BRANCH, commit="base")
        return str(await Together({"a": longer(), "b": lander("b", "base")}))

    by_hand(
        ledger,
        ("/0", *opened("base")),
        ("/1/a/0", Say(words="a"), Said(words="A")),
        ("/1/b/0", Say(words="b"), Said(words="B")),
        ("/1/a/1", Say(words="short"), Said(words="S")),
        ("/1/b/1", landing("cb", "base"), effects.Landing(landed=True, tip="cb")),
        together="/1",
    )
    assert told(ledger, flow()).unanswered == ("/1/a/1", "/1/b/1")


def test_a_flow_that_gives_up_by_itself_ends_as_the_run_would(ledger: Ledger) -> None:
    async def gives_up(limit: int) -> str:
        for number in range(limit):
            await Say(words=f"n{number}")
        raise CannotPerform(f"{limit} are enough")

    record(ledger, gives_up(2))
    found = told(ledger, gives_up(1))
    assert found.end == End(succeeded=False, reason="1 are enough", exit_code=1)
    assert told(ledger, gives_up(2)).parted is None
    assert replayed(ledger, gives_up(2)).agrees


def test_what_a_gate_refused_then_is_refused_again(ledger: Ledger) -> None:
    record(ledger, until(2), answer=lambda words: RefusedByGate("no entry") if words == "n1" else None)
    found = told(ledger, until(3))
    assert (found.end, found.unanswered) == (found.recorded_end, ())
    assert told(ledger, until(1)).end == End(succeeded=True, reason="N0", exit_code=0)


def test_a_plan_that_is_read_more_often_than_recorded_is_assumed_to_stay(ledger: Ledger) -> None:
    async def reads() -> str:
        await Note(fact("parted"))
        texts = [(await effects.ReadPlan(plan="plan-001")).text for _ in range(3)]
        return " ".join(texts)

    first, second = (effects.DocumentText(text=text, object="o") for text in ("one", "two"))
    question = effects.ReadPlan(plan="plan-001")
    by_hand(ledger, ("/0", question, first), ("/1", question, second))
    found = told(ledger, reads())
    assert found.end is not None
    assert found.end.reason == "one two two"
    assert len(found.assumptions) == 1
    assert "nobody edits the plan file" in found.assumptions[0]


def test_a_question_with_several_recorded_answers_is_not_answered_once_more(ledger: Ledger) -> None:
    async def thrice() -> None:
        await Note(fact("parted"))
        for _ in range(3):
            await Say(words="x")

    by_hand(ledger, ("/0", Say(words="x"), Said(words="1")), ("/1", Say(words="x"), Said(words="2")))
    assert "recording ends here" in told(ledger, thrice()).stopped


def test_a_question_that_always_had_one_answer_has_it_again(ledger: Ledger) -> None:
    async def thrice() -> str:
        await Note(fact("parted"))
        return "".join([(await Say(words="x")).words for _ in range(3)])

    by_hand(ledger, ("/0", Say(words="x"), Said(words="1")), ("/1", Say(words="x"), Said(words="1")))
    found = told(ledger, thrice())
    assert found.end is not None
    assert found.end.reason == "111"
