"""`planforge.toml`: every mistake is refused in one line that names the key, and the one that was meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import msgspec
import pytest

from planforge.app.agents import settings_file
from planforge.app.project import Project
from planforge.app.settings import LEAST, MOST, WORKTREES, Settings, parse, read
from planforge.documents.toml import ANY_NAME, Key, convert, dotted, known_keys
from planforge.errors import InvalidInput
from planforge.interfaces.cli.typed import text
from planforge.workflows import chat, forge
from repositories import repository

KEYS = dict(known_keys(Settings))


def refusal(text: str | bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as refused:
        parse(text.encode() if isinstance(text, str) else text)
    assert "\n" not in refused.value.message
    return refused.value


def said(key: Key, value: object) -> Any:
    """Tables in which only `key` is set."""
    for part in reversed(key):
        value = [value] if part == "[0]" else {part: value}
    return value


def named(key: Key) -> Key:
    return tuple("claude" if part == ANY_NAME else part for part in key)


def refused(key: Key, value: object) -> str:
    with pytest.raises(InvalidInput) as error:
        convert(said(key, value), Settings, "planforge.toml")
    return error.value.message


def slips(word: str) -> Iterator[str]:
    yield word[1:] if len(word) > 3 else f"{word}{word[-1]}"
    yield f"{word[0]}{word}"
    if not word.endswith("s"):  # `reasd` may be `read` or `reads`
        yield f"{word[:-2]}{word[-1]}{word[-2]}"


PATHS = (
    "lessons.file",
    "forge.plans",
    "forge.constraints",
    "run.tasks",
    "agents.roles_directory",
    "pipelines.own.gates",
)


@pytest.mark.parametrize("key", PATHS)
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (".git/config", "is in `.git`, which belongs to git"),
        ("docs/.GIT/x", "is in `.git`, which belongs to git"),
        ("./.planforge/x", "is in `.planforge`, which belongs to Planforge"),
        ("/etc/x", "is an absolute path"),
        ("a/../b", "leads out of the repository or back"),
        ("a\\nb", "is no path that can be shown"),
    ],
)
def test_a_path_of_the_settings_is_one_of_the_work_tree(key: str, path: str, problem: str) -> None:
    stages = "pipelines.own.stages = []\n" if "own" in key else ""
    said = refusal(f'{stages}{key} = "{path}"\n')
    assert said.message.startswith(f"`planforge.toml`: `{key}`: ")
    assert problem in said.message


@pytest.mark.parametrize("key", PATHS)
def test_only_what_can_be_left_out_may_be_empty(key: str) -> None:
    stages = "pipelines.own.stages = []\n" if "own" in key else ""
    if key in ("forge.constraints", "pipelines.own.gates"):
        parse(f'{stages}{key} = ""\n'.encode())
    else:
        assert f"`{key}`: '' is empty" in refusal(f'{key} = ""\n').message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (r'forge.plans = "a\u0000b"', r"`forge.plans` has the control character '\x00' in it"),
        (
            'check.command = ["a"]\ncheck.env = {"A=B" = "c"}',
            "`A=B` is not the name of an environment variable",
        ),
        ('agents.profiles.odd = {command = ["true"], env = {"" = "c"}}', "`` is not the name of an"),
        ("check.command = []", "`check.command` names no program"),
        ('checks.lint.command = [" "]', "`checks.lint.command` names no program"),
        ('land.branch = "a b"', "`land.branch`: `a b` is not the name of a branch"),
        ('land.branch = "-x"', "`land.branch`: `-x` is not the name of a branch"),
        ('land.branch = "a..b"', "`land.branch`: `a..b` is not the name of a branch"),
        (r'check.command = ["a\u001b[2J"]', r"`check.command[0]` has the control character '\x1b' in it"),
        (r'land.branch = "\u009b"', r"`land.branch` has the control character '\x9b' in it"),
        (r'checks."a\u001bb".command = ["a"]', r"'a\x1bb' is not a name"),
        (r'checks."a\nb".command = ["a"]', r"'a\nb' is not a name"),
    ],
)
def test_no_setting_has_characters_that_no_program_takes(text: str, problem: str) -> None:
    assert problem in refusal(text).message


def test_a_command_may_be_a_script_of_lines() -> None:
    parse(rb'check.command = ["sh", "-c", "a\n\tb\r\n"]')


def test_every_key_is_suggested_where_it_is_misspelt() -> None:
    for key in KEYS:
        table = {each[-1] for each in KEYS if each[:-1] == key[:-1]}
        for slip in set(slips(key[-1])) - table:
            wrong, meant = dotted((*named(key[:-1]), slip)), dotted(named(key))
            problem = f"`planforge.toml`: there is no setting `{wrong}`; did you mean `{meant}`?"
            assert refused((*named(key[:-1]), slip), 1) == problem


def wrong_value(kind: Any) -> object:
    """A value that no setting of this type can have."""
    parts = [part for part in get_args(kind) if part is not NoneType]
    choices = any(isinstance(part, str) for part in parts)
    return 7 if kind is str or choices else "seven"


def test_every_key_is_named_where_its_value_is_of_the_wrong_type() -> None:
    for key, kind in KEYS.items():
        value = wrong_value(kind)
        problem = refused(named(key), value)
        assert problem.startswith(f"`planforge.toml`: `{dotted(named(key))}` must be ")
        assert problem.endswith(("not 7", 'not "seven"'))


def test_every_number_has_a_least_and_a_most() -> None:
    numbers = [key for key, kind in KEYS.items() if {int, float} & {kind, *get_args(kind)}]
    assert len(numbers) > 60
    required: dict[str, dict[str, Any]] = {
        "check": {"command": ["x"]},
        "checks": {"command": ["x"]},
        "prices": {"input": 1, "output": 1},
    }
    for key in numbers:
        if key[0] == "pipelines":
            continue  # `planforge pipeline check` looks at those
        table = required.get(key[0], required.get(key[1], {}))
        for value, limit in ((-1, "at least"), (MOST + 1, "at most")):
            problem = refusal(toml_text(named(key[:-1]), table | {key[-1]: value})).message
            assert f"`{dotted(named(key))}` must be " in problem
            assert limit in problem or key[0] == "workspace"


def toml_text(table: Key, said: dict[str, Any]) -> str:
    lines = [f"{key} = {msgspec.json.encode(value).decode()}" for key, value in said.items()]
    return "\n".join([f"[{dotted(table)}]", *lines, ""])


def test_the_least_values_are_of_settings_that_there_are() -> None:
    assert {dotted(key) for key in KEYS} >= LEAST.keys()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[run]\njobs = \n", "`planforge.toml` line 2, column 8: invalid value"),
        (
            "[agents]\ndefault = claude\n",
            '`planforge.toml` line 2, column 11: a text needs quotes: `"claude"`',
        ),
        ("[forge]\nplans = [~/my-plans]\n", 'line 2, column 10: a text needs quotes: `"~/my-plans"`'),
        ("[forge]\nauto_implement = True\n", "`planforge.toml` line 2, column 18: invalid value"),
        ("[run]\njobs = 1\njobs = 2\n", "`planforge.toml` line 3, column 9: `run.jobs` is there twice"),
        ("[run]\njobs = 1\n[run]\n", "`planforge.toml` line 3, column 5: `run` is there twice"),
        (b"[run]\n# caf\xe9\n", "`planforge.toml` line 2, column 6: not UTF-8"),
        ("jobs = 3\n", "`planforge.toml`: there is no setting `jobs`; did you mean `run.jobs`?"),
        ('jobs = """', "`planforge.toml` is not TOML: Unterminated string"),
        ("a = " + "[" * 5000 + "]" * 5000, "`planforge.toml` is nested too deeply to be read"),
        ("[workspace]\nports = 99\n", "`planforge.toml`: `workspace.ports` must be 0 to 19, not 99"),
        ('[workspace]\ncaches = [".."]\n', "`planforge.toml`: `workspace.caches` has `..`, which is no"),
        (
            '[agents.limits]\npolicy = "prak"\n',
            '`agents.limits.policy` must be one of "park", "switch", not "prak"; did you mean `park`?',
        ),
        ("[[pipelines.mine.stages]]\nname = 'a'\n", "`pipelines.mine.stages[0].role` is missing"),
        (
            "[[pipelines.mine.stages]]\nname = 'a'\nrole = 'b'\npolcy = 'c'",
            "no setting `pipelines.mine.stages[0].polcy`; did you mean `pipelines.mine.stages[0].policy`?",
        ),
        ("[run]\njobs = 'a'\n", '`run.jobs` must be a whole number, not "a"'),
        ("[run]\njobs = [1]\n", "`run.jobs` must be a whole number, not a list"),
        ("run = 3\n", "`run` must be a table, not 3"),
        ('["a b"]\n', 'there is no setting `"a b"`'),
        (
            '[agents]\ndefault = "cluade"\n',
            "`agents.default` is `cluade`, which is no agent; did you mean `claude`?",
        ),
        (
            '[agents.roles]\nauditor = "codx"\n',
            "`agents.roles.auditor` is `codx`, which is no agent; did you mean",
        ),
        (
            '[agents.limits]\nswitch_to = ["geminy"]\n',
            "`agents.limits.switch_to` is `geminy`, which is no agent; did you mean `gemini`?",
        ),
        (
            '[agents.tiers.cluade]\nheavy = "x"\n',
            "`agents.tiers.cluade` names no agent; did you mean `agents.tiers.claude`?",
        ),
        (
            '[agents.tiers.claude]\nhevy = "x"\n',
            "`agents.tiers.claude.hevy` names no tier; did you mean `agents.tiers.claude.heavy`?",
        ),
        (
            '[agents.profiles.claude.tiers]\nlihgt = "x"\n',
            "`agents.profiles.claude.tiers.lihgt` names no tier; did you mean `agents.profiles.claude.tiers",
        ),
    ],
)
def test_a_mistake_is_one_line_with_its_place(text: str | bytes, problem: str) -> None:
    assert problem in refusal(text).message


def test_a_key_that_is_near_nothing_gets_the_list_of_its_table() -> None:
    refused = refusal("[land]\nzzzzz = 1\n")
    assert refused.message == "`planforge.toml`: there is no setting `land.zzzzz`"
    assert text(refused.hint) == "`[land]` may have `branch`, `tries`"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[agents.models]\ndraftr = "x"\n', "`agents.models.draftr` names no role or stage; did you mean"),
        (
            '[agents.roles]\nauditr = "claude"\n',
            "`agents.roles.auditr` names no role; did you mean `agents.roles.auditor`?",
        ),
        (
            "[budget.roles.auditr]\ntokens = 1000\n",
            "`budget.roles.auditr` names no role; did you mean `budget.roles.auditor`?",
        ),
    ],
)
def test_roles_are_those_of_the_project(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "planforge.toml").write_text(text)
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path)
    assert refused.value.message.startswith(f"`planforge.toml`: {problem}")


def test_roles_and_stages_that_there_are_may_have_models(tmp_path: Path) -> None:
    roles = tmp_path / "planforge" / "roles"
    roles.mkdir(parents=True)
    (roles / "roles.toml").write_text('[poet]\npersona = "drafter"\naccess = "read"\ntier = "light"\n')
    names = ("drafter", "poet", "forge", "chat", "plan-fix", "mine")
    (tmp_path / "planforge.toml").write_text(
        "[agents.models]\n"
        + "".join(f'{name} = "x"\n' for name in names)
        + '[[pipelines.own.stages]]\nname = "mine"\nrole = "poet"\n'
    )
    assert tuple(read(tmp_path).agents.models) == names


def test_the_worktrees_of_flows_are_stages() -> None:
    assert WORKTREES == (forge.WORKTREE, chat.WORKTREE)


def test_a_role_table_is_explained_too(tmp_path: Path) -> None:
    roles = tmp_path / "planforge" / "roles"
    roles.mkdir(parents=True)
    (roles / "roles.toml").write_text('[auditor]\ntir = "light"\n')
    (tmp_path / "planforge.toml").write_text('[agents.models]\nauditor = "x"\n')
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path)
    assert refused.value.message == (
        "`planforge/roles/roles.toml`: there is no setting `auditor.tir`; did you mean `auditor.tier`?"
    )


def test_a_byte_order_mark_is_no_mistake_and_stays_where_it_is(tmp_path: Path) -> None:
    assert parse(b"\xef\xbb\xbf[run]\njobs = 3\n").run.jobs == 3
    project = Project.create(repository(tmp_path / "here"))
    path = project.root / "planforge.toml"
    path.write_bytes(b"\xef\xbb\xbf[run]\njobs = 3\n")
    settings_file.add(project, ("agents", "profiles", "mine"), {"command": ["x"]})
    assert path.read_bytes().startswith(b"\xef\xbb\xbf[run]")
    assert read(project.root).agents.profiles["mine"].command == ("x",)


def test_a_directory_and_a_link_to_nothing_are_no_settings(tmp_path: Path) -> None:
    path = tmp_path / "planforge.toml"
    path.mkdir()
    with pytest.raises(InvalidInput, match=r"cannot read `.*planforge\.toml`: Is a directory"):
        read(tmp_path)
    path.rmdir()
    path.symlink_to("elsewhere.toml")
    with pytest.raises(InvalidInput, match=r"planforge\.toml` is a link to a file that is not there"):
        read(tmp_path)
