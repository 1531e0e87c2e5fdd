"""The command language: one test for each documented row, and nothing that can be typed breaks it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planforge.kernel.work.lifecycle.tables import PLAN
from planforge.rules.commands import grammar, shapes
from planforge.rules.commands.grammar import Misused, NoCommand, Parsed, looks_like_a_plan, parse, written
from planforge.rules.commands.shapes import Command

ROWS: dict[str, tuple[str, Parsed]] = {
    "plan": ("!plan", Command(name="plan help")),
    "plan-help": ("!plan help", Command(name="plan help")),
    "plan-description": (
        "!plan Add rate limiting",
        Command(name="plan create", description="Add rate limiting"),
    ),
    "plan-description-of-several-lines": (
        "!plan Add rate limiting\nto the webhook",
        Command(name="plan create", description="Add rate limiting\nto the webhook"),
    ),
    "plan-list": ("!plan list", Command(name="plan list")),
    "plan-list-status": ("!plan list review", Command(name="plan list", status="REVIEW")),
    "plan-show": ("!plan show plan-017", Command(name="plan show", plan="plan-017")),
    "plan-show-short": ("!plan show plan-17", Command(name="plan show", plan="plan-017")),
    "plan-show-number": ("!plan show 17", Command(name="plan show", plan="plan-017")),
    "plan-show-task": ("!plan show ws-12", Command(name="plan show", plan="ws-12")),
    "plan-show-large": ("!plan show 1234", Command(name="plan show", plan="plan-1234")),
    "plan-approve": ("!plan approve 17", Command(name="plan approve", plan="plan-017")),
    "plan-close": ("!plan close 17", Command(name="plan close", plan="plan-017")),
    "plan-close-reason": (
        "!plan close 17 — it has landed",
        Command(name="plan close", plan="plan-017", reason="it has landed"),
    ),
    "plan-cancel": ("!plan cancel", Command(name="plan cancel")),
    "plan-cancel-plan": (
        "!plan cancel 17 nobody wants it",
        Command(name="plan cancel", plan="plan-017", reason="nobody wants it"),
    ),
    "plan-phases": ("!plan phases 17", Command(name="plan phases", plan="plan-017")),
    "plan-phases-regenerate": (
        "!plan phases --regenerate 17",
        Command(name="plan phases", plan="plan-017", regenerate=True),
    ),
    "plan-phases-keep-done": (
        "!plan phases --regenerate --keep-done 17",
        Command(name="plan phases", plan="plan-017", regenerate=True, keep_done=True),
    ),
    "plan-phases-flags-last": (
        "!plan phases 17 --keep-done --regenerate",
        Command(name="plan phases", plan="plan-017", regenerate=True, keep_done=True),
    ),
    "plan-phases-long-dash": (
        "!plan phases —regenerate —keep\u2013done 17",
        Command(name="plan phases", plan="plan-017", regenerate=True, keep_done=True),
    ),
    "plan-run": ("!plan run 17", Command(name="plan run", plan="plan-017")),
    "plan-run-one": ("!plan run-one 17", Command(name="plan run-one", plan="plan-017")),
    "plan-run-one-long-dash": (
        "!plan run\u2013one plan\u201317",
        Command(name="plan run-one", plan="plan-017"),
    ),
    "plan-run-phase": (
        "!plan run-phase 17 phase-2",
        Command(name="plan run-phase", plan="plan-017", phase="phase-2"),
    ),
    "plan-run-phase-number": (
        "!plan run-phase 17 2",
        Command(name="plan run-phase", plan="plan-017", phase="phase-2"),
    ),
    "plan-skip": ("!plan skip 17", Command(name="plan skip", plan="plan-017")),
    "plan-skip-phase": (
        "!plan skip 17 phase-2 it is done by hand",
        Command(name="plan skip", plan="plan-017", phase="phase-2", reason="it is done by hand"),
    ),
    "plan-skip-reason": (
        "!plan skip 17 2 files are generated",
        Command(name="plan skip", plan="plan-017", reason="2 files are generated"),
    ),
    "plan-skip-to": (
        "!plan skip-to 17 phase-3",
        Command(name="plan skip-to", plan="plan-017", phase="phase-3"),
    ),
    "plan-skip-to-reason": (
        "!plan skip-to 17 phase-3 the rest is there",
        Command(name="plan skip-to", plan="plan-017", phase="phase-3", reason="the rest is there"),
    ),
    "plan-audit": ("!plan audit 17", Command(name="plan audit", plan="plan-017")),
    "plan-retry": ("!plan retry 17", Command(name="plan retry", plan="plan-017")),
    "plan-retry-phase": (
        "!plan retry 17 phase-2",
        Command(name="plan retry", plan="plan-017", phase="phase-2"),
    ),
    "plan-land": ("!plan land 17", Command(name="plan land", plan="plan-017")),
    "plan-diff": ("!plan diff 17", Command(name="plan diff", plan="plan-017")),
    "plan-quoted": ('!plan "list all files"', Command(name="plan create", description="list all files")),
    "plan-quoted-curved": ("!plan “run the tests”", Command(name="plan create", description="run the tests")),
    "plan-quoted-id": ('!plan "17"', Command(name="plan create", description="17")),
    "forge": ("!forge", Command(name="forge help")),
    "forge-help": ("!forge help", Command(name="forge help")),
    "forge-description": ("!forge Add a cache", Command(name="forge create", description="Add a cache")),
    "forge-plan-id": ("!forge plan-017", Command(name="forge resume", plan="plan-017")),
    "forge-plan-number": ("!forge 17", Command(name="forge resume", plan="plan-017")),
    "forge-number-of-things": (
        "!forge 17 bugs are open",
        Command(name="forge create", description="17 bugs are open"),
    ),
    "forge-status": ("!forge status", Command(name="forge status")),
    "forge-cancel": ("!forge cancel", Command(name="forge cancel")),
    "forge-audit": ("!forge audit 17", Command(name="forge audit", plan="plan-017")),
    "forging": ("!forging is fun", NoCommand(text="!forging is fun", unknown="forging")),
    "forge-comma": ("!forge, please", NoCommand(text="!forge, please")),
    "stop": ("!stop", Command(name="stop")),
    "stop-in-a-hurry": ("!stop now!!", Command(name="stop")),
    "status": ("!status", Command(name="status")),
    "fix": ("!fix the typo in the help", Command(name="fix", description="the typo in the help")),
    "resume": ("!resume", Command(name="resume")),
    "retry-step": ("!plan retry 17 load", Command(name="plan retry", plan="plan-017", phase="load")),
    "resume-run": ("!resume 3", Command(name="resume", run="run-003")),
    "help": ("!help", Command(name="help")),
    "any-case": ("  !PLAN Run-One PLAN-17 ", Command(name="plan run-one", plan="plan-017")),
    "text": ("what is the plan?", NoCommand(text="what is the plan?")),
    "nothing": ("", NoCommand(text="")),
    "mark": ("!", NoCommand(text="!")),
    "in-the-middle": ("please !plan list", NoCommand(text="please !plan list")),
}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_row_of_the_table_is_read_as_it_says(row: str) -> None:
    text, meant = ROWS[row]
    assert parse(text) == meant


REFUSED: dict[str, tuple[str, str, str]] = {
    "show-nothing": ("!plan show", "plan show", "which plan"),
    "show-more": ("!plan show 17 18", "plan show", "`18` is more than it takes"),
    "show-words": ("!plan show me", "plan show", "`me` is not the id"),
    "show-zero": ("!plan show 0", "plan show", "`0` is not the id"),
    "list-words": ("!plan list everything", "plan list", "no status"),
    "approve-flag": ("!plan approve --force 17", "plan approve", "`--force`"),
    "close-flag": ("!plan close 17 --force", "plan close", "`--force`"),
    "cancel-flag": ("!plan cancel —all", "plan cancel", "`--all`"),
    "keep-done-alone": ("!plan phases --keep-done 17", "plan phases", "needs `--regenerate`"),
    "phases-flag": ("!plan phases --fast 17", "plan phases", "`--fast`"),
    "phases-one-dash": ("!plan phases -regenerate 17", "plan phases", "`-regenerate`"),
    "phases-nothing": ("!plan phases --regenerate", "plan phases", "which plan"),
    "run-flag": ("!plan run 17 --parallel", "plan run", "`--parallel`"),
    "run-phase-nothing": ("!plan run-phase 17", "plan run-phase", "which phase"),
    "skip-to-nothing": ("!plan skip-to 17", "plan skip-to", "which phase"),
    "plan-id-alone": ("!plan 17", "plan create", "is the id of a plan"),
    "plan-empty": ('!plan ""', "plan create", "says nothing"),
    "forge-empty": ('!forge " "', "forge create", "says nothing"),
    "forge-status-more": ("!forge status now", "forge status", "more than it takes"),
    "fix-nothing": ("!fix", "fix", "says nothing"),
    "status-more": ("!status all", "status", "more than it takes"),
    "resume-words": ("!resume it", "resume", "not the id of a run"),
}


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_a_misused_command_is_answered_with_its_usage(row: str) -> None:
    text, name, problem = REFUSED[row]
    found = parse(text)
    assert isinstance(found, Misused)
    assert found.usage == shapes.FORMS[name].usage
    assert problem in found.problem


def test_who_meant_a_description_is_told_how_to_write_it() -> None:
    found = parse("!plan run the tests on every push")
    assert isinstance(found, Misused)
    assert found.hint.endswith('`!plan "..."`')


@pytest.mark.parametrize(
    "text", ["!fix --again fix-003", "!forge --cap 2 Some texts", "!plan —new Some texts"]
)
def test_a_flag_is_no_description_unless_it_is_quoted(text: str) -> None:
    found = parse(text)
    assert isinstance(found, Misused)
    assert found.problem.startswith("there is no `--")
    assert "quotation marks" in found.hint
    assert parse('!fix "--verbose prints nothing"') == Command(
        name="fix", description="--verbose prints nothing"
    )
    assert parse("!fix -1 is not a count") == Command(name="fix", description="-1 is not a count")


def test_the_reserved_words_are_those_of_the_document_and_three_of_ours() -> None:
    documented = "list show approve close cancel help phases run run-one run-phase skip skip-to audit"
    assert set(grammar.RESERVED["plan"]) == {*documented.split(), "retry", "land", "diff"}
    assert set(grammar.RESERVED["forge"]) == {"status", "cancel", "help", "audit"}


def test_a_text_that_is_far_too_long_is_refused_and_not_cut() -> None:
    assert isinstance(parse("!plan " + "x" * grammar.LONGEST), Misused)
    assert isinstance(parse("x" * grammar.LONGEST * 2), NoCommand)


@pytest.mark.parametrize("text", ["17", "plan-17", "plan-017", "PLAN-017", "plan\u201317"])
def test_digits_with_or_without_plan_look_like_a_plan(text: str) -> None:
    assert looks_like_a_plan(text)


@pytest.mark.parametrize("text", ["", "plan-", "plan-0", "17 bugs", "ws-17", "plan-x", "1" * 12])
def test_anything_else_does_not(text: str) -> None:
    assert not looks_like_a_plan(text)


def test_every_command_stands_in_the_table_once() -> None:
    assert len({form.usage for form in shapes.TABLE}) == len(shapes.TABLE) == len(shapes.FORMS)


def test_what_a_command_takes_and_may_take_are_fields_that_it_has() -> None:
    known = set(Command.__struct_fields__)
    for form in shapes.TABLE:
        assert known.issuperset([*form.takes, *form.flags.values()]), form


def test_only_commands_that_there_are_need_a_person() -> None:
    assert shapes.FORMS.keys() >= shapes.PERSONAL


PIECES = ["17", "plan-017", "ws-1", "phase-2", "--regenerate", "—keep-done", "--", "—", '"', "“", "”", "Add"]
PIECES += ["a cache", "\n", "\u00a0", "0", "run-3", "x" * 60]
pieces = st.sampled_from([*grammar.RESERVED["plan"], *grammar.RESERVED["forge"], *PLAN.states, *PIECES])
typed = st.builds(
    lambda word, rest, gap: f"!{word} {gap.join(rest)}",
    st.sampled_from([*grammar.WORDS, "PLAN", "Forge", "forging"]),
    st.lists(pieces | st.text(max_size=6), max_size=6),
    st.sampled_from([" ", "", "  ", "\n"]),
)


@given(st.text() | typed)
@example("!plan \x85list")
@example('!plan "" "')
@example("!forge ²")
@example("!plan \x1c17")
def test_nothing_that_can_be_typed_breaks_it_and_a_command_written_down_is_the_same_command(
    text: str,
) -> None:
    found = parse(text)
    assert parse(text) == found
    if not isinstance(found, NoCommand | Misused):
        assert parse(written(found)) == found
        assert msgspec.json.decode(msgspec.json.encode(found), type=Command) == found
