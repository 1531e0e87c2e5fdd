"""A proof that was tampered with does not hold, whichever part of it, even with all hashes made anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from forgeries import FIELDS, HISTORIES, Forgery, Row, body, forged, hidden
from planforge.app.history.proof_checks import check, checked
from planforge.errors import NotFound
from planforge.kernel.replay.proof import EVENTS
from planforge.workspace.git.bare_objects import name_of

RETRIED = "done-after-retries-and-rejections"
DEMO = "demo"


def test_a_proof_that_nobody_touched_holds() -> None:
    found = Forgery(RETRIED).checked()
    assert found.faults == ()
    assert found.replay is not None
    assert found.replay.agrees


def test_a_proof_put_together_again_is_the_same_proof() -> None:
    forgery = forged(RETRIED)
    assert forgery.problems() == []
    assert Forgery(RETRIED).manifest["head"] == forgery.manifest["head"]


def test_a_file_that_is_not_there_is_said() -> None:
    with pytest.raises(NotFound, match="cannot read `nowhere`"):
        check(Path("nowhere"))


# Parts of the file


def flipped(content: bytes) -> bytes:
    """The same with one bit turned over."""
    return content[:-1] + bytes([content[-1] ^ 1]) if content else b"?"


def some_parts(name: str) -> list[str]:
    """The events, every third file, and every object."""
    parts = list(Forgery(name).parts)
    files = [part for part in parts if part.startswith("git/")]
    return [EVENTS, *files[::3], *(part for part in parts if part.startswith("objects/"))]


@pytest.mark.parametrize("name", [RETRIED, DEMO])
def test_a_part_that_was_changed_removed_or_added_is_found(name: str) -> None:
    for part in some_parts(name):
        changed, removed = Forgery(name), Forgery(name)
        changed.parts[part] = flipped(changed.parts[part])
        assert any(f"`{part}` is not what the manifest says" in problem for problem in changed.problems())
        del removed.parts[part]
        assert any(f"`{part}` is missing" in problem for problem in removed.problems())
    added = Forgery(name)
    added.keep(b"new")
    assert any("is not in the manifest" in problem for problem in added.problems())


@pytest.mark.parametrize("name", [RETRIED, DEMO])
def test_a_part_that_was_changed_or_removed_is_found_even_with_a_new_manifest(name: str) -> None:
    for part in some_parts(name)[1:]:
        changed, removed = Forgery(name), Forgery(name)
        changed.parts[part] = flipped(changed.parts[part])
        changed.seal()
        assert any("is not what its name says" in problem for problem in changed.problems()), part
        del removed.parts[part]
        removed.seal()
        assert any("missing" in problem for problem in removed.problems()), part


def test_a_part_that_belongs_to_nothing_is_found() -> None:
    forgery = forged(RETRIED, lambda it: it.keep(b"new"))
    assert [problem for problem in forgery.problems() if "belongs to nothing" in problem]
    content = b"blob 3\0new"
    name = name_of(content, 40)
    forgery = forged(RETRIED, lambda it: it.parts.update({f"git/{name}": content}))
    assert [problem for problem in forgery.problems() if "belongs to nothing" in problem]


@pytest.mark.parametrize(
    "field",
    ["about.run", "about.flow", "about.flow_version", "about.plans", "before", "head", "summary", "files"],
)
def test_every_word_of_the_manifest_is_compared(field: str) -> None:
    other = {
        "about.run": "run-001",
        "about.flow": "forge",
        "about.flow_version": 1,
        "about.plans": ["plan-002"],
        "before": {"seq": 1, "hash": "0" * 64},
        "head": {"seq": 186, "hash": "0" * 64},
        "summary": {"approvals": [], "evidence": [], "landed": []},
        "files": "none",
    }

    def change(forgery: Forgery) -> None:
        outer, _, inner = field.partition(".")
        if inner:
            forgery.manifest[outer][inner] = other[field]
        else:
            forgery.manifest[outer] = other[field]

    assert forged(RETRIED, change, chain=False).problems()


# Events


def other_value(row: Row, field: str) -> object:
    value = row[field]
    if isinstance(value, int):
        return value + 1
    if field == "hash":
        return ("0" if value[0] != "0" else "1") + value[1:]
    if field == "body":
        return value[:-1] + " }"
    return value + "x" if field != "kind" else "RunParked"


@pytest.mark.parametrize("name", [RETRIED, DEMO])
@pytest.mark.parametrize("field", [*FIELDS, "body", "hash"])
def test_a_changed_field_of_any_event_is_found(name: str, field: str) -> None:
    events = [number for number, row in enumerate(Forgery(name).rows) if row["line"] == "event"]
    for number in events[::7]:
        forgery = Forgery(name)
        forgery.rows[number][field] = other_value(forgery.rows[number], field)
        forgery.seal()
        problems = forgery.problems()
        assert problems, (number, field)
        assert problems[0].split()[0] in (str(number + 1), str(forgery.rows[number]["seq"]))


def test_a_changed_event_with_a_hash_of_its_own_does_not_fit_the_next() -> None:
    def change(forgery: Forgery) -> None:
        row = forgery.find("AttemptRejected")
        forgery.change(row, reason="because")
        later = forgery.rows[forgery.rows.index(row) + 1 :]
        forgery.rows = [*forgery.rows[: -len(later)]]
        forgery.rehash()
        forgery.manifest["head"] = Forgery(RETRIED).manifest["head"]
        forgery.rows += later

    assert forged(RETRIED, change, chain=False).problems()


@pytest.mark.parametrize("name", [RETRIED, DEMO])
def test_events_that_were_removed_doubled_or_moved_are_found(name: str) -> None:
    count = len(Forgery(name).rows)
    for number in range(1, count - 1, 9):
        removed, doubled, moved = Forgery(name), Forgery(name), Forgery(name)
        del removed.rows[number]
        doubled.rows.insert(number, doubled.rows[number])
        moved.rows.insert(number - 1, moved.rows.pop(number))
        for forgery in (removed, doubled, moved):
            forgery.seal()
            assert forgery.problems(), number


def test_an_event_of_the_run_or_its_plan_cannot_hide_behind_its_hash() -> None:
    rows = Forgery(RETRIED).rows
    own = [n for n, row in enumerate(rows) if row.get("stream") in ("run-002", "plan-001")]
    for number in [*own[:-1:5], *own[-3:-1]]:
        forgery = Forgery(RETRIED)
        forgery.rows[number] = hidden(forgery.rows[number])
        forgery.rehash()
        forgery.seal()
        assert forgery.problems(), rows[number]


def test_a_run_whose_last_event_hides_behind_its_hash_is_one_that_has_not_ended() -> None:
    forgery = Forgery(RETRIED)
    end = forgery.find("RunEnded")
    forgery.rows[forgery.rows.index(end)] = hidden(end)
    forgery.seal()
    found = forgery.checked()
    assert found.holds
    assert found.replay is not None
    assert not found.replay.ended


# A whole new chain


def call_it_ok(forgery: Forgery) -> None:
    """Leave the evidence as it is and call it good."""
    forgery.find("VerifyFailed")["kind"] = "VerifyOk"


def flip_one_side(forgery: Forgery) -> None:
    """Say of a failed check that it passed."""
    row = forgery.find("VerifyFailed")
    forgery.change(row, evidence=body(row)["evidence"] | {"outcome": "pass"})
    row["kind"] = "VerifyOk"


def checks(forgery: Forgery) -> Iterator[tuple[Row, dict[str, Any]]]:
    """The checks that were run, each with its evidence as the outcome of the effect has it."""
    for row in forgery.rows:
        if row.get("kind") == "EffectCompleted" and body(row)["effect"] == "RunCheck":
            outcome = body(row)["outcome"]
            kept = forgery.parts.get(f"objects/{outcome['object']}", b"null")
            yield row, outcome["inline"] or json.loads(kept)


def flip_both_sides(forgery: Forgery) -> None:
    """Say so in the outcome of the effect as well."""
    failed = body(forgery.find("VerifyFailed"))["evidence"]
    flip_one_side(forgery)
    completed = next(row for row, seen in checks(forgery) if seen == failed)
    del forgery.parts[f"objects/{body(completed)['outcome']['object']}"]
    forgery.change(completed, outcome={"inline": failed | {"outcome": "pass"}, "object": None})


def flip_with_numbers(forgery: Forgery) -> None:
    """And make the numbers fit."""
    flip_both_sides(forgery)
    numbers = {"counts": {"total": 6, "passed": 6, "failed": 0, "skipped": 0}, "exit_code": 0, "failing": []}

    def fitting(seen: dict[str, Any]) -> dict[str, Any]:
        parts = [part | numbers | {"outcome": "pass"} for part in seen["parts"]]
        return seen | numbers | {"parts": parts}

    for row in forgery.rows:
        if row.get("kind") == "VerifyOk" and body(row)["evidence"]["exit_code"]:
            forgery.change(row, evidence=fitting(body(row)["evidence"]))
    for row, seen in checks(forgery):
        if seen["exit_code"]:
            forgery.change(row, outcome={"inline": fitting(seen), "object": None})


def flip_with_output(forgery: Forgery) -> None:
    """And what the check printed."""
    old = next(body(row)["evidence"]["output"] for row in forgery.rows if row.get("kind") == "VerifyFailed")
    flip_with_numbers(forgery)
    new = forgery.keep(b"Ran 6 tests in 0.001s\n\nOK\n")
    del forgery.parts[f"objects/{old}"]
    for row in forgery.rows:
        if row["line"] == "event":
            row["body"] = row["body"].replace(old, new)


def swap_the_tree_that_landed(forgery: Forgery) -> None:
    rejected = body(forgery.find("PatchProposed", step="phase-1", attempt=2))
    row = forgery.find("PatchApplied", step="phase-1")
    forgery.change(row, commit=rejected["commit"], tree=rejected["tree"])


def land_something_unchecked(forgery: Forgery) -> None:
    row = forgery.find("VerifyOk", step="phase-1")
    other = body(forgery.find("PatchProposed", step="phase-1", attempt=2))
    forgery.change(row, evidence=body(row)["evidence"] | {"tree": other["tree"], "commit": other["commit"]})


def name_another_tree(forgery: Forgery) -> None:
    """Say everywhere that what was checked and landed is a tree which its commit does not hold."""
    landed = body(forgery.find("PatchApplied", step="phase-1"))["tree"]
    forgery.replace_everywhere(landed, body(forgery.find("PatchProposed", attempt=2))["tree"])


def name_another_parent(forgery: Forgery) -> None:
    """Say everywhere that the work began at another commit."""
    base = body(forgery.find("PlanStarted"))["base"]
    forgery.replace_everywhere(base, body(forgery.find("PatchProposed", attempt=2))["commit"])


def land_under_another_plan(forgery: Forgery) -> None:
    forgery.change(forgery.find("PatchApplied", step="phase-1"), content="0" * 64)


def claim_other_files(forgery: Forgery) -> None:
    forgery.change(forgery.find("PatchProposed", step="phase-1", attempt=3), files=["wordcount/frequency.py"])


def approve_something_else(forgery: Forgery) -> None:
    forgery.change(forgery.find("DecisionMade"), content="0" * 64)


def ask_something_else(forgery: Forgery) -> None:
    forgery.change(forgery.find("DecisionAsked"), content="0" * 64)


def ask_nothing(forgery: Forgery) -> None:
    forgery.rows.remove(forgery.find("DecisionAsked"))
    forgery.renumber()


def use_something_else(forgery: Forgery) -> None:
    forgery.change(forgery.find("DecisionUsed"), content="0" * 64)


def use_it_for_another_run(forgery: Forgery) -> None:
    forgery.change(forgery.find("DecisionUsed"), run="run-001")


def use_it_twice(forgery: Forgery) -> None:
    forgery.insert(forgery.find("DecisionUsed"))
    forgery.renumber()


def approve_nothing(forgery: Forgery) -> None:
    forgery.rows.remove(forgery.find("DecisionMade"))
    forgery.renumber()


def raise_the_score(forgery: Forgery) -> None:
    row = forgery.find("StepCompleted", step="phase-1")
    forgery.change(row, score=body(row)["score"] | {"value": 1000})


def shorten_the_diff(forgery: Forgery) -> None:
    row = forgery.find("StepCompleted", step="phase-1")
    score = body(row)["score"]
    forgery.change(row, score=score | {"measures": score["measures"] | {"diff_size": 1}})


def say_it_failed(forgery: Forgery) -> None:
    forgery.change(forgery.find("RunEnded"), succeeded=False, reason="no", exit_code=1)


def change_a_reason(forgery: Forgery) -> None:
    forgery.change(forgery.find("AttemptRejected"), reason="I did not like it")


def drop_a_rejection(forgery: Forgery) -> None:
    forgery.rows.remove(forgery.find("AttemptRejected"))
    forgery.renumber()


def add_a_landing(forgery: Forgery) -> None:
    landed = forgery.find("PatchApplied", step="phase-2")
    forgery.insert(landed, key="")
    forgery.renumber()


def change_the_request(forgery: Forgery) -> None:
    row = forgery.find("RunStarted")
    request = body(row)["request"]
    forgery.change(row, request=request | {"inline": request["inline"] | {"attempts": 1}})


def change_a_prompt(forgery: Forgery) -> None:
    row = forgery.find("EffectIntended", effect="OpenBranch")
    forgery.change(row, body={"inline": {"branch": "main", "commit": "0"}, "object": None})


def change_an_answer(forgery: Forgery) -> None:
    row = next(
        row
        for row in forgery.rows
        if row.get("kind") == "EffectCompleted"
        and body(row)["effect"] == "RunAgent"
        and body(row)["outcome"]["object"] is None
    )
    answer = body(row)["outcome"]["inline"] | {"text": "I did nothing."}
    forgery.change(row, outcome={"inline": answer, "object": None})


def answer_with_nonsense(forgery: Forgery) -> None:
    row = forgery.find("EffectCompleted", effect="OpenBranch")
    forgery.change(row, outcome={"inline": {"commit": 7}, "object": None})


def swap_the_keys(forgery: Forgery) -> None:
    one, other = forgery.find("StepStarted", attempt=1), forgery.find("StepStarted", attempt=2)
    one["key"], other["key"] = other["key"], one["key"]


def forget_a_body(forgery: Forgery) -> None:
    row = forgery.find("EffectIntended", effect="RunAgent")
    gone = body(row)["body"]["object"]
    del forgery.parts[f"objects/{gone}"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (call_it_ok, "its evidence says fail"),
        (flip_one_side, "exit code and counts say fail"),
        (flip_both_sides, "exit code and counts say fail"),
        (flip_with_numbers, "not those that the check printed"),
        (flip_with_output, "decided again, it differs"),
        (swap_the_tree_that_landed, "no evidence before it is about tree"),
        (land_something_unchecked, "no evidence before it is about tree"),
        (name_another_tree, "does not hold tree"),
        (name_another_parent, "is not on top of"),
        (land_under_another_plan, "under another plan than the one that was started"),
        (claim_other_files, "changes other files than it says"),
        (approve_something_else, "nobody approved"),
        (ask_something_else, "nobody approved"),
        (ask_nothing, "nobody approved"),
        (use_something_else, "nobody approved"),
        (use_it_for_another_run, "for which it used no approval"),
        (use_it_twice, "or it was used before"),
        (approve_nothing, "nobody approved"),
        (raise_the_score, "decided again, it differs"),
        (shorten_the_diff, "decided again, it differs"),
        (say_it_failed, "the flow ends otherwise"),
        (change_a_reason, "decided again, it differs"),
        (drop_a_rejection, "decided again, it differs"),
        (add_a_landing, "decided again, it differs"),
        (change_the_request, "decided again, it differs"),
        (change_a_prompt, "not what its fingerprint says"),
        (change_an_answer, "decided again, it differs"),
        (answer_with_nonsense, "cannot be read"),
        (swap_the_keys, "decided again, it differs"),
        (forget_a_body, "is missing from the proof"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_does_not_follow_is_found_under_a_whole_new_chain(
    change: Callable[[Forgery], None], problem: str
) -> None:
    problems = forged(RETRIED, change).problems()
    assert any(problem in line for line in problems), problems


def test_a_fault_names_its_event() -> None:
    forgery = forged(RETRIED, raise_the_score)
    seq = forgery.find("StepCompleted", step="phase-1")["seq"]
    assert [problem.split(":")[0] for problem in forgery.problems()] == [f"{seq} StepCompleted"]


def test_a_proof_forged_as_a_whole_holds_and_only_its_head_tells() -> None:
    def later(forgery: Forgery) -> None:
        for row in forgery.rows:
            if row["line"] == "event":
                row["at"] = f"2101{row['at'][4:]}"

    forgery = forged(RETRIED, later)
    assert forgery.problems() == []
    assert forgery.checked().head != checked((HISTORIES / f"{RETRIED}.proof").read_bytes())[1].head


@pytest.mark.parametrize("body", ['{"a":' * 5000, "[" * 100_000, '"\\ud800"', "", "null", "7", "[]"])
def test_a_body_that_is_no_fact_is_a_fault_and_no_crash(body: str) -> None:
    def change(forgery: Forgery) -> None:
        forgery.find("AttemptRejected")["body"] = body
        summary = forgery.manifest["summary"]
        with pytest.raises(Exception, match=r".*"):
            forgery.rehash()
        forgery.manifest["summary"] = summary
        forgery.manifest["head"] = {
            "seq": forgery.rows[-1]["seq"],
            "hash": forgery.rows[-1]["hash"],
        }

    assert forged(RETRIED, change, chain=False).problems()


def test_numbers_out_of_all_bounds_are_faults() -> None:
    forgery = Forgery(RETRIED)
    forgery.rows[3]["version"] = 10**30
    forgery.seal()
    assert any("cannot be read" in problem for problem in forgery.problems())
