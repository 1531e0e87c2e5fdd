"""Every action that the code offers is a command that can be typed, with items and options that it takes."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import msgspec
import pytest

import planforge
from planforge.actions import TEXT, Action, Advice, Blank, Hint, Verb, pieced, pieces
from planforge.errors import GitFailed
from planforge.interfaces.cli.commands import planforge as root
from planforge.interfaces.cli.commands.forge import START
from planforge.interfaces.cli.streams import as_document
from planforge.interfaces.cli.typed import command, line, text
from planforge.kernel.events import EffectFailed
from planforge.kernel.hints import failed, failure

SOURCE = Path(planforge.__file__).parent


def commands(found: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its name; the words after `forge` go to its hidden command."""
    if not isinstance(found, click.Group):
        yield path, found
        return
    context = click.Context(found)
    for name in found.list_commands(context):
        below = found.get_command(context, name)
        assert below is not None
        yield from commands(below, f"{path} {name}".strip())
    if START in getattr(found, "commands", {}):
        yield path, found.commands[START]


COMMANDS = dict(commands(root))


def offered() -> Iterator[tuple[str, ast.Call]]:
    """Every call of `Action`, and of `see`, which makes one, with the place where it stands."""
    makers = ("Action", "see")
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in makers
                and node.args
            ):
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node


def problem(call: ast.Call) -> str:
    """Why the command line would not take the action; empty if it would, or if the verb is elsewhere."""
    verbs = call.args[:1]
    if isinstance(verbs[0], ast.IfExp):
        verbs = [verbs[0].body, verbs[0].orelse]
    named = [each.value for each in verbs if isinstance(each, ast.Constant)]
    return "; ".join(filter(None, (_problem(COMMANDS[str(each)], call) for each in named)))


def _problem(found: click.Command, call: ast.Call) -> str:
    options = {name for each in found.params for name in each.opts if isinstance(each, click.Option)}
    options |= {"--help"}
    given = {f"--{each.arg.rstrip('_').replace('_', '-')}" for each in call.keywords if each.arg}
    if given - options:
        return f"there is no option {given - options}"
    needed = {each.opts[0] for each in found.params if isinstance(each, click.Option) and each.required}
    everything = all(each.arg for each in call.keywords)
    if everything and needed - given:
        return f"it needs {needed - given}"
    if any(isinstance(each, ast.Starred) for each in call.args):
        return ""
    arguments = [each for each in found.params if isinstance(each, click.Argument)]
    least = sum(each.required for each in arguments)
    most = 99 if any(each.nargs < 0 for each in arguments) else sum(each.nargs for each in arguments)
    return "" if least <= len(call.args) - 1 <= most else f"it takes {least} to {most} items"


def test_the_verbs_are_the_commands() -> None:
    assert sorted(get_args(Verb)) == sorted(COMMANDS)


def test_every_action_in_the_source_is_taken_by_its_command() -> None:
    assert [f"{place}: {said}" for place, call in offered() if (said := problem(call))] == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("Action('plan show', plan)", ""),
        ("Action('plan show', plan, loudly=True)", "there is no option {'--loudly'}"),
        ("Action('plan show')", "it takes 1 to 1 items"),
        ("Action('plan skip', plan, phase)", "it needs {'--reason'}"),
        ("Action('plan skip', plan, phase, reason=TEXT)", ""),
        ("Action('forge', REQUEST)", ""),
        (
            "Action('land' if small else 'plan show', plan, unheard=True)",
            "; ".join(["there is no option {'--unheard'}"] * 2),
        ),
    ],
)
def test_an_action_that_cannot_be_typed_is_noticed(source: str, said: str) -> None:
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    assert problem(call) == said


@pytest.mark.parametrize(
    ("action", "typed"),
    [
        (Action("status"), "planforge status"),
        (Action("plan approve", "plan-001"), "planforge plan approve plan-001"),
        (Action("plan skip", "17", "phase-2", reason=TEXT), "planforge plan skip 17 phase-2 --reason TEXT"),
        (Action("forge", "it's old"), """planforge forge 'it'"'"'s old'"""),
        (Action("forge", Blank("what you want")), 'planforge forge "what you want"'),
        (
            Action("plan phases", "17", regenerate=True, keep_done=True),
            "planforge plan phases 17 --regenerate --keep-done",
        ),
        (Action("plan phases", "17", regenerate=False), "planforge plan phases 17"),
        (Action("cleanup", archived=True, older_than=90), "planforge cleanup --archived --older-than 90"),
        (Action("forge", from_="specs/one"), "planforge forge --from specs/one"),
    ],
)
def test_an_action_is_typed_as_a_shell_takes_it(action: Action, typed: str) -> None:
    assert command(action) == line(action) == typed
    assert text(action) == f"`{typed}`"


def test_advice_has_its_actions_in_their_places_and_leaves_other_texts_alone() -> None:
    advice = Advice("edit {}, then run {}", "`odd {} name`", Action("plan approve", "plan-001"))
    assert text(advice) == "edit `odd {} name`, then run `planforge plan approve plan-001`"
    assert str(advice) == "edit `odd {} name`, then run `plan approve plan-001`"
    more = Advice("{}; or {}", advice, Action("forge", "plan-001"))
    assert text(more) == f"{text(advice)}; or `planforge forge plan-001`"
    assert text(None) == ""


def test_advice_without_a_place_for_each_action_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="zip"):
        Advice("run it", Action("status"))


HINTS: list[Hint | None] = [
    None,
    "do it yourself",
    Action("forge", Blank("what you want"), cap=2, implement=True),
    Advice("wait, or run {}", Action("lease release", "3", reason=TEXT)),
]


@pytest.mark.parametrize("hint", HINTS, ids=repr)
def test_a_hint_is_the_same_after_it_was_recorded(hint: Hint | None) -> None:
    assert pieced(pieces(hint)) == hint
    fact = failed("Commit", GitFailed("no", hint))
    again = failure(msgspec.json.decode(msgspec.json.encode(fact), type=EffectFailed))
    assert (again.error, again.message, again.hint) == ("GitFailed", "no", hint)
    assert text(again.hint) == text(hint)


def test_a_document_has_actions_as_they_are_typed() -> None:
    said = {"next": [Action("land")], "hint": Advice("run {}", Action("status")), "odd": "\udcff"}
    assert json.loads(as_document(said)) == {
        "next": ["planforge land"],
        "hint": "run `planforge status`",
        "odd": "\\xff",
    }
    with pytest.raises(NotImplementedError, match="`object` has no place in a document"):
        as_document({"odd": object()})


# No command line stands as text below the interfaces

DOCUMENTS = {
    "agents/api/options.py": "the name of the program, with its version",
    "app/upkeep/setup.py": "comments of planforge.toml",
    "app/demo/story.py": "the sample project's own files, and the name of its script",
    "documents/evidence_page.py": "how a reader of a pull request verifies it",
    "documents/lessons.py": "the head of the lessons file",
    "workspace/landing/updates.py": "the content of git's index.lock while it is held",
}
"""Files with texts that people read in a file, where nobody could render an action."""

WORDS = "|".join(sorted({verb.split()[0] for verb in get_args(Verb)}, key=len, reverse=True))
COMMAND_LINE = re.compile(rf"\bplanforge (?:(?:{WORDS})\b|$)")


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Every string of a module but its docstrings; those of an f-string by themselves."""
    tree = ast.parse(source)
    remarks = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in remarks:
            value = node.value
            yield node.lineno, value if isinstance(value, str) else value.decode("latin-1")


def command_lines(source: str) -> list[int]:
    """The lines of a module in which a command line stands as text."""
    return [line for line, text in texts(source) if COMMAND_LINE.search(text)]


def test_no_command_line_stands_as_text_below_the_interfaces() -> None:
    found = [
        f"{name}:{number}"
        for path in sorted(SOURCE.rglob("*.py"))
        if not (name := path.relative_to(SOURCE).as_posix()).startswith("interfaces/")
        if name not in DOCUMENTS
        for number in command_lines(path.read_text())
    ]
    assert found == []


def test_what_begins_with_a_dash_is_not_taken_for_an_option() -> None:
    assert (
        command(Action("plan create", "-h limits", new=True)) == "planforge plan create --new -- '-h limits'"
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_exception_is_one(name: str) -> None:
    assert command_lines((SOURCE / name).read_text())


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('hint = "run `planforge resume`"', [1]),
        ('hint = f"run `planforge resume {run}`"', [1]),
        ('hint = f"planforge {verb} {plan}"', [1]),
        ('note = b"planforge land"', [1]),
        ('"""Say what `planforge resume` does."""', []),
        ('def f():\n    """`planforge resume`."""\n    return "planforge resume"', [3]),
        ('hint = Advice("run {}", Action("resume"))', []),
        ('text = "planforge is resumed, see planforge.toml"', []),
    ],
)
def test_a_command_line_as_text_is_noticed(source: str, lines: list[int]) -> None:
    assert command_lines(source) == lines
