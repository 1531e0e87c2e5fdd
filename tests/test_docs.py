"""The documents say what is so: a command, a setting or a file that they miss or invent fails the build."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest

from calls import every_command
from planforge import __version__
from planforge.agents.known import KNOWN
from planforge.app.settings import Settings
from planforge.app.upkeep.setup import TEMPLATE
from planforge.errors import PlanforgeError
from planforge.interfaces.cli.commands import COMMANDS, EPILOG

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def generated() -> str:
    spec = importlib.util.spec_from_file_location("help_pages", ROOT / "tools" / "help_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.page())


def test_the_help_pages_are_what_help_prints() -> None:
    assert (ROOT / "docs" / "commands.md").read_text() == generated(), "run `make docs`"


WITHOUT_JSON = {("plan", "help"), ("forge", "help"), ("gate", "check"), ("forge", "audit")}
"""Help, a word that is reserved, and a command that prints JSON whether it is asked to or not."""


def test_every_command_has_json() -> None:
    commands = every_command()
    without = {
        path
        for path, command in commands.items()
        if not isinstance(command, click.Group)
        and not any("--json" in param.opts for param in command.params)
    }
    assert without <= WITHOUT_JSON


def settings(table: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    """The dotted names of all settings."""
    for field in msgspec.structs.fields(table):
        nested = [kind for kind in _tables(field.type) if issubclass(kind, msgspec.Struct)]
        for kind in nested:
            yield from settings(kind, f"{prefix}{field.name}.")
        if not nested:
            yield f"{prefix}{field.name}"


def _tables(kind: object) -> Iterator[type]:
    parts = getattr(kind, "__args__", ())
    for part in parts or (kind,):
        if isinstance(part, type) and part not in (str, type(None)):
            yield part


def test_every_setting_is_documented_and_nothing_else() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    documented = {
        re.sub(r"\.(NAME|ROLE)\b", "", name).replace("WAY", way)
        for name in re.findall(r"^\| `([\w.]+)` \|", page, flags=re.MULTILINE)
        for way in ("read", "write", "confined", "model", "endpoint", "logged_in")
    }
    assert documented == set(settings(Settings))


def test_the_settings_that_init_writes_are_valid_with_every_default_in_them() -> None:
    assert msgspec.toml.decode(TEMPLATE, type=Settings) == Settings()
    live = re.sub(r"^# (?=[\w\[])", "", TEMPLATE.partition("\n\n")[2], flags=re.MULTILINE)
    live = re.sub(r"^#.*$", "", live, flags=re.MULTILINE)
    tables = tomllib.loads(live)
    assert tables["forge"] == msgspec.to_builtins(Settings().forge)
    assert tables["run"] == msgspec.to_builtins(Settings().run)
    assert tables["agents"]["default"] == Settings().agents.default
    assert tables["agents"]["seconds"] == Settings().agents.seconds


def test_the_comments_of_the_settings_that_init_writes_are_in_one_column() -> None:
    columns = [len(found[1]) for found in re.finditer(r"^(# \w+ = \S+ +)# ", TEMPLATE, flags=re.MULTILINE)]
    beside = [column for column in columns if column < 30]  # longer ones have their comment further right
    assert len(beside) > 20
    assert set(beside) == {27}


def test_the_known_agents_are_named_in_the_settings() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    assert all(f"`{name}`" in page for name in KNOWN if name != "rehearsal")


def tree(error: type[PlanforgeError]) -> Iterator[type[PlanforgeError]]:
    yield error
    for kind in error.__subclasses__():
        yield from tree(kind)


def test_every_error_stands_in_the_tree_with_its_exit_code() -> None:
    drawing = (ROOT / "src" / "planforge" / "errors.py").read_text().split('"""')[1]
    for error in tree(PlanforgeError):
        if error.__module__ != "planforge.errors":
            continue
        line = next(line for line in drawing.splitlines() if re.search(rf"\b{error.__name__}\b", line))
        if found := re.search(rf"{error.__name__}\s+(\d+)\s", line):
            assert int(found[1]) == error.exit_code


def test_exit_codes_are_told_where_people_look() -> None:
    codes = {error.exit_code for error in tree(PlanforgeError) if error.__module__ == "planforge.errors"}
    readme = " ".join((ROOT / "README.md").read_text().split())
    for code in codes:
        assert re.search(rf"\b{code} \w+", EPILOG)
        assert re.search(rf"\b{code} \w+", readme)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_readme_names_only_commands_that_exist_and_stays_short() -> None:
    text = (ROOT / "README.md").read_text()
    named = set(
        re.findall(
            r"\bplanforge ([a-z]+)\b", " ".join(re.findall(r"`planforge [a-z]+|\$ planforge [a-z]+", text))
        )
    )
    assert named
    assert named <= set(COMMANDS)
    assert len(text.splitlines()) < 150


def test_the_map_names_every_room_fits_on_a_screen_and_a_half_and_names_nothing_that_is_gone() -> None:
    text = (ROOT / "AGENTS.md").read_text()
    assert len(text.splitlines()) <= 75
    assert max(map(len, text.splitlines())) <= 130
    package = ROOT / "src" / "planforge"
    for room in (*package.glob("[a-z]*/"), *package.glob("[a-z]*/[a-z]*/")):
        assert not any(room.rglob("*.py")) or f"{room.name}/" in text, room.name  # some only hold a cache
    for module in (package / "app").glob("[a-z]*.py"):
        said = module.stem in text.split("  app/")[1].split("  interfaces/cli/")[0]
        assert said or module.stem in ("compose", "places"), module.name
    names = {path.name for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    assert set(re.findall(r"\b[a-z_]+\.py\b", text)) <= names


"""Modules of `app` that are found beside those that the map names."""


def test_the_lock_has_versions_and_hashes_and_no_addresses() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock
    assert "--index-url" not in lock
    requirements = re.split(r"\n(?=\S)", "\n" + lock.strip())
    named = [part for part in requirements if re.match(r"[a-z]", part.strip())]
    assert len(named) > 10
    for part in named:
        assert "==" in part.splitlines()[0]
        assert "--hash=sha256:" in part


def test_every_direct_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    page = (ROOT / "docs" / "dependencies.md").read_text()
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    for requirement in wanted:
        name = re.match(r"[A-Za-z0-9-]+", requirement)
        assert name is not None
        assert name[0] in page


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## Unreleased" in text or f"## {__version__}" in text
