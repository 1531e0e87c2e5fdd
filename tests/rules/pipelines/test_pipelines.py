"""Pipelines: what cannot be meant, and what could happen."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planforge.errors import InvalidInput
from planforge.rules.pipelines import InvalidPipeline, Pipeline, Stage
from planforge.rules.pipelines.builtin import BUILTIN, DEFAULT, named
from planforge.rules.pipelines.faults import faults
from planforge.rules.pipelines.proof import prove
from tries import tries

ROLES = {
    *("planner", "reviewer", "developer", "fixer", "tester", "validator", "approver", "collator"),
    *("drafter", "auditor", "reviser"),
}


def write(name: str, **more: object) -> Stage:
    return msgspec.structs.replace(Stage(name=name, role="developer", writes=("code",)), **more)


def review(name: str, **more: object) -> Stage:
    stage = Stage(name=name, role="reviewer", verdict="review", judges=("code",))
    return msgspec.structs.replace(stage, **more)


def land(gate: str = "") -> Stage:
    return Stage(name="commit", role="collator", gate=gate, lands=True)


def pipeline(*stages: Stage, requires: tuple[str, ...] = ("review",)) -> Pipeline:
    return Pipeline(name="own", stages=stages, requires=requires)


@pytest.mark.parametrize("name", BUILTIN)
def test_what_comes_with_planforge_is_clean(name: str) -> None:
    proof = prove(BUILTIN[name])
    assert list(faults(BUILTIN[name], ROLES)) == []
    assert (proof.bypasses, proof.unreachable, proof.complete) == ((), (), True)
    assert proof.lands == any(stage.lands for stage in BUILTIN[name].stages)


def test_all_of_it_is_proved_in_less_than_a_second() -> None:
    started = time.process_time()
    for each in BUILTIN.values():
        prove(each)
    assert time.process_time() - started < 1


def road(found: Pipeline) -> list[str]:
    return [str(bypass) for bypass in prove(found).bypasses]


def test_work_that_changes_after_its_review_is_found_with_the_way_there() -> None:
    own = pipeline(
        write("implement"),
        review("review"),
        write("polish"),
        land("after review = approved"),
    )
    assert road(own) == [
        "lands without the approval of `review`: implement → review (approved) → polish → commit"
    ]


def test_a_second_review_that_sends_back_behind_the_first_is_found() -> None:
    own = pipeline(
        write("implement"),
        review("review"),
        write("harden", on_revision=""),
        review("validate", on_revision="harden"),
        land("after review = approved\nafter validate = approved"),
        requires=("review", "validate"),
    )
    assert [bypass.missing for bypass in prove(own).bypasses] == [("review",)]


def test_a_landing_without_a_gate_is_no_bypass_if_the_order_alone_keeps_it() -> None:
    assert road(pipeline(write("implement"), review("review"), land())) == []


def test_a_review_that_comes_after_landing_is_a_bypass() -> None:
    found = road(pipeline(write("implement"), land(), review("review")))
    assert found == ["lands without the approval of `review`: implement → commit"]


@pytest.mark.parametrize("stage", ["review-plan", "review-code", "validate", "approve"])
def test_each_review_that_is_taken_out_of_the_default_pipeline_is_missed(stage: str) -> None:
    stages = tuple(each for each in DEFAULT.stages if each.name != stage)
    gates = tuple(
        msgspec.structs.replace(
            each, gate="\n".join(line for line in each.gate.splitlines() if stage not in line)
        )
        for each in stages
    )
    proof = prove(msgspec.structs.replace(DEFAULT, stages=gates))
    assert proof.bypasses
    assert all(stage in bypass.missing for bypass in proof.bypasses)


def test_a_review_of_the_plan_survives_a_change_of_the_code_and_not_one_of_the_plan() -> None:
    stages = (
        Stage(name="plan", role="planner", writes=("plan",)),
        review("review", judges=("plan",)),
        write("implement"),
        land(),
    )
    assert road(pipeline(*stages)) == []
    again = Stage(name="replan", role="planner", writes=("plan",))
    assert road(pipeline(*stages[:3], again, stages[3])) == [
        "lands without the approval of `review`: plan → review (approved) → implement → replan → commit"
    ]


def test_a_stage_whose_gate_never_opens_is_out_of_reach() -> None:
    own = pipeline(write("implement", gate="after review = approved"), review("review"), land())
    proof = prove(own)
    assert proof.unreachable == ("implement", "review", "commit")
    assert not proof.lands
    stuck = pipeline(write("implement"), review("review"), land("after review = revision"))
    assert prove(stuck).unreachable == ("commit",)


def test_a_proof_that_went_on_for_too_long_says_that_it_shows_nothing() -> None:
    assert not prove(DEFAULT, most=5).complete


@pytest.mark.parametrize(
    ("own", "fault"),
    [
        (pipeline(requires=()), "it has no stages"),
        (pipeline(write("a"), write("a"), requires=()), "there are two stages `a`"),
        (pipeline(write("A"), requires=()), "its name has other characters"),
        (pipeline(write("a", role="wizard"), requires=()), "there is no role `wizard`"),
        (pipeline(write("a", revised_by="wizard"), requires=()), "there is no role `wizard`"),
        (pipeline(write("a", role=""), requires=()), "it has no role"),
        (pipeline(write("a", tier="huge"), requires=()), "`huge` is not a tier"),
        (pipeline(write("a", gate="after b = approved"), requires=()), "`b`, which is no stage"),
        (pipeline(write("a"), write("b", gate="after a = approved"), requires=()), "which writes none"),
        (pipeline(write("a", gate="nonsense"), requires=()), "`nonsense` is not a directive"),
        (pipeline(write("a", outputs="after a = approved"), requires=()), "says nothing about outputs"),
        (pipeline(write("a"), review("b", max_iterations=0)), "its loop has no bound"),
        (pipeline(write("a"), review("b", on_revision="c"), write("c")), "`c`, which comes later"),
        (pipeline(write("a"), review("b", on_revision="b")), "`b`, which comes later"),
        (pipeline(write("a"), review("b", on_revision="z")), "has no stage `z`"),
        (pipeline(review("b")), "has nothing to go back to"),
        (pipeline(write("a", on_revision="a"), requires=()), "so nothing ever goes back"),
        (pipeline(write("a"), review("b", judges=())), "does not say what it judges"),
        (pipeline(write("a", judges=("code",)), requires=()), "but has no verdict"),
        (pipeline(write("a"), review("b", judges=("plan",))), "nothing from there on changes what it judges"),
        (pipeline(write("a"), requires=("z",)), "it requires `z`, which is no stage"),
        (pipeline(write("a"), requires=("a",)), "it requires the verdict of `a`"),
        (pipeline(write("a"), land(), requires=()), "requires nothing to have approved it"),
    ],
)
def test_what_cannot_be_meant_is_told(own: Pipeline, fault: str) -> None:
    assert any(fault in found for found in faults(own, ROLES)), list(faults(own, ROLES))


def test_unknown_names_and_fields_fail_loudly() -> None:
    with pytest.raises(InvalidInput, match="there is no pipeline `fast`"):
        named("fast", {})
    with pytest.raises(InvalidPipeline, match="has no stage `lunch`"):
        DEFAULT.index("lunch")
    with pytest.raises(msgspec.ValidationError, match="unknown field `retries`"):
        msgspec.convert({"name": "a", "role": "b", "retries": 3}, Stage)


STAGES = st.lists(
    st.one_of(
        st.builds(
            lambda kind: Stage(name="", role="developer", writes=(kind,)), st.sampled_from(["plan", "code"])
        ),
        st.builds(
            lambda kind, most: Stage(
                name="", role="reviewer", verdict="review", judges=(kind,), max_iterations=most
            ),
            st.sampled_from(["plan", "code"]),
            st.integers(1, 3),
        ),
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=tries(800), deadline=None)
@given(middle=STAGES)
def test_a_pipeline_that_is_proved_clean_lands_nothing_unapproved_however_it_is_walked(
    middle: list[Stage],
) -> None:
    """Walks at random, with a memory of its own, must agree with the proof."""
    first = (Stage(name="start", role="developer", writes=("plan", "code")),)
    numbered = tuple(msgspec.structs.replace(stage, name=f"s{number}") for number, stage in enumerate(middle))
    reviews = tuple(stage.name for stage in numbered if stage.verdict)
    own = pipeline(*first, *numbered, land(), requires=reviews)
    missed = {bypass.missing for bypass in prove(own).bypasses}
    assert missed == {seen for seen in _walks(own) if seen}


def _walks(own: Pipeline) -> set[tuple[str, ...]]:
    """What was missing at each landing, over every walk that writes a few times."""
    seen: set[tuple[str, ...]] = set()
    done: set[object] = set()
    waiting: list[tuple[int, dict[str, int], dict[str, int]]] = [(0, {}, {})]
    while waiting:
        index, written, approved = waiting.pop()
        stage = own.stages[index]
        state = (index, tuple(sorted(written.items())), tuple(sorted(approved.items())))
        if state in done or sum(written.values()) > 9:
            continue
        done.add(state)
        if stage.lands:
            judges = {each.name: each.judges for each in own.stages}
            missing = [
                name
                for name in own.requires
                if approved.get(name, -1) < sum(written.get(kind, 0) for kind in judges[name])
            ]
            seen.add(tuple(missing))
            continue
        if not stage.verdict:
            waiting.append(
                (index + 1, {**written, **{k: written.get(k, 0) + 1 for k in stage.writes}}, approved)
            )
            continue
        judged = sum(written.get(kind, 0) for kind in stage.judges)
        waiting.append((index + 1, written, {**approved, stage.name: judged}))
        if stage.max_iterations > 1:
            waiting.append(
                (own.back_to(index), written, {k: v for k, v in approved.items() if k != stage.name})
            )
    return seen
