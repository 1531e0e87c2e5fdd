"""
Python projects: pytest, tox, nox, hatch or unittest; mypy, pyright; ruff, flake8.

pytest is asked directly wherever there is a sign of it, for it can say in a report what
it did; tox, nox and hatch start it in environments that they would have to fill from the
network. The interpreter is that of the project's virtual environment. Where the code is
in `src`, that of the checkout comes first on the path: an editable install would lead to
the person's own checkout, and the evidence would be about another tree.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from planforge.workspace.checks import Check, Report
from planforge.workspace.detection.places import Finds, Found, Passed, Place, table, words

FILES = (
    *("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile"),
    *("tox.ini", "noxfile.py", "pytest.ini", "conftest.py"),
)
VENVS = (".venv", "venv", "env")
REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
SYSTEM = (Path("/usr"), Path("/bin"), Path("/opt"), Path("/lib"))
JUNIT = "${reports}/junit.xml"
COVERAGE = "${reports}/coverage.json"


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """How Python is started for a project."""

    command: tuple[str, ...]
    env: dict[str, str] = {}
    visible: tuple[str, ...] = ()
    why: str = ""


class VirtualEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """A virtual environment that is there."""

    path: str
    """With `${root}` for the person's checkout, if it is in there."""
    where: Path
    visible: tuple[str, ...] = ()

    def has_program(self, name: str) -> bool:
        """Whether a program is installed in it."""
        return (self.where / "bin" / name).is_file()


def is_project(place: Place) -> bool:
    """Whether there is Python to speak of."""
    return bool(place.has(*FILES))


def look(place: Place) -> Finds:
    """How a Python project is checked."""
    if not is_project(place) and not _test_files(place):
        return
    python = interpreter(place)
    document = place.toml("pyproject.toml")
    yield from _tests(place, python, document)
    yield from _types(place, python, document)
    yield from _lint(place, python, document)


# The interpreter


def virtual_environment(place: Place) -> VirtualEnvironment | None:
    """The project's virtual environment: in the person's checkout, or the one that is active."""
    named = [(place.home / name, f"${{root}}/{name}") for name in VENVS]
    if active := os.environ.get("VIRTUAL_ENV"):
        named.append((Path(active), active))
    for where, path in named:
        if (where / "pyvenv.cfg").is_file() and (where / "bin" / "python").exists():
            return VirtualEnvironment(path=path, where=where, visible=(path, *_base(where)))
    return None


def _base(venv: Path) -> Iterator[str]:
    """Where the interpreter itself lies, if that is not where programs of the system do."""
    try:
        target = (venv / "bin" / "python").resolve()
    except (OSError, RuntimeError):
        return
    if not any(target.is_relative_to(system) for system in SYSTEM):
        yield str(target.parent.parent)


def interpreter(place: Place) -> Interpreter:
    """How Python is started: in the project's environment, by uv, or as it is found on the path."""
    sources = ":".join(f"${{checkout}}/{name}" for name in source_directories(place))
    env = {"PYTHONPATH": sources} if sources else {}
    if venv := virtual_environment(place):
        return Interpreter(
            command=(f"{venv.path}/bin/python",),
            env=env,
            visible=venv.visible,
            why=f"with `{venv.where.name}`",
        )
    if place.has("uv.lock") and shutil.which("uv"):
        return Interpreter(command=("uv", "run", "--frozen", "python"), env=env, why="with `uv`, by uv.lock")
    return Interpreter(command=("python3",), env=env)


def source_directories(place: Place) -> list[str]:
    """The directories that packages are in, where that is not the top."""
    document = place.toml("pyproject.toml")
    setuptools = table(document, "tool", "setuptools")
    found = words(table(setuptools, "packages", "find").get("where"))
    found += words(table(setuptools, "package-dir").get(""))
    for package in table(document, "tool", "poetry").get("packages", ()) or ():
        found += words(package.get("from")) if isinstance(package, dict) else []
    found += words(place.ini("setup.cfg").get("options.packages.find", "where", fallback=""))
    found.append("src")
    names = (name.strip().strip("/") for name in found)
    return [name for name in dict.fromkeys(names) if name and name != "." and (place.root / name).is_dir()]


# Tests


def _tests(place: Place, python: Interpreter, document: dict[str, Any]) -> Finds:
    if why := _pytest_sign(place, document):
        yield _pytest(place, python, why, document)
        for tool in ("tox", "nox", "hatch"):
            if _uses(place, tool, document):
                yield Passed(what=f"tests: `{tool}`, for pytest can be asked directly")
        return
    if place.has("manage.py"):
        command = (*python.command, "manage.py", "test")
        yield _found("tests", command, python, "manage.py of Django", report=Report.UNITTEST)
    elif command := _nox(place):
        yield _found("tests", command, python, "noxfile.py")
    elif place.has("tox.ini") or table(document, "tool", "tox"):
        yield _found("tests", ("tox",), python, "tox.ini")
    elif "test" in table(document, "tool", "hatch", "envs", "default", "scripts"):
        yield _found("tests", ("hatch", "run", "test"), python, "script `test` of hatch in pyproject.toml")
    elif files := _test_files(place):
        yield _by_style(place, python, files, document)


def _pytest(place: Place, python: Interpreter, why: str, document: dict[str, Any]) -> Found:
    command = (*python.command, "-m", "pytest", f"--junitxml={JUNIT}")
    options = table(document, "tool", "pytest", "ini_options").get("addopts", "")
    options = [*words(options), place.ini("setup.cfg").get("tool:pytest", "addopts", fallback="")]
    options += [place.ini(name).get("pytest", "addopts", fallback="") for name in ("pytest.ini", "tox.ini")]
    if any("--cov" in (option or "") for option in options):
        command = (*command, f"--cov-report=json:{COVERAGE}")
        return _found("tests", command, python, why, report=Report.JUNIT, junit=JUNIT, coverage=COVERAGE)
    return _found("tests", command, python, why, report=Report.JUNIT, junit=JUNIT)


def _pytest_sign(place: Place, document: dict[str, Any]) -> str:
    """Why it is thought that pytest runs the tests, or nothing."""
    tool = table(document, "tool")
    if "pytest" in tool:
        return "`[tool.pytest]` in pyproject.toml"
    if name := place.has("pytest.ini", ".pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"):
        return name
    for name, section in (("setup.cfg", "tool:pytest"), ("tox.ini", "pytest")):
        if place.ini(name).has_section(section):
            return f"`[{section}]` in {name}"
    return next((where for where, name in _requirements(place, document) if _is(name, "pytest")), "")


def _is(requirement: str, name: str) -> bool:
    found = REQUIREMENT.match(requirement)
    return found is not None and found[1].lower().replace("_", "-") == name


def _requirements(place: Place, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every requirement that is written down, and where."""
    project = table(document, "project")
    lists = [project.get("dependencies"), *table(project, "optional-dependencies").values()]
    lists += [*table(document, "dependency-groups").values()]
    lists += [table(document, "tool", "uv").get("dev-dependencies")]
    lists += [table(env).get("dependencies") for env in table(document, "tool", "hatch", "envs").values()]
    lists += [
        table(env).get("extra-dependencies") for env in table(document, "tool", "hatch", "envs").values()
    ]
    for found in lists:
        yield from (("a requirement in pyproject.toml", name) for name in words(found))
    poetry = table(document, "tool", "poetry")
    groups = [poetry, *table(poetry, "group").values()]
    for group in groups:
        for key in ("dependencies", "dev-dependencies"):
            yield from (("a requirement in pyproject.toml", name) for name in table(group, key))
    for path in place.files("*requirements*.txt", 20) + place.files("requirements/*.txt", 20):
        name = str(path.relative_to(place.root))
        yield from ((f"a requirement in {name}", line) for line in (place.text(name) or "").splitlines())
    yield from _older_requirements(place)


def _older_requirements(place: Place) -> Iterator[tuple[str, str]]:
    """Those in tox.ini, setup.cfg, noxfile.py and setup.py."""
    for name in ("tox.ini", "setup.cfg"):
        parser = place.ini(name)
        for section in parser.sections():
            for key in (
                "deps",
                "commands",
                "install_requires",
                "tests_require",
                "test",
                "tests",
                "dev",
                "testing",
            ):
                value = parser.get(section, key, fallback="") or ""
                yield from ((f"`[{section}]` in {name}", line) for line in value.splitlines())
    for name in ("noxfile.py", "setup.py"):
        yield from ((name, text) for text in _texts(place.text(name) or ""))


def _texts(source: str) -> list[str]:
    """The text constants of some Python."""
    nodes = ast.walk(_parsed(source))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def _parsed(source: str) -> ast.Module:
    """Some Python; an empty module if it is none."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _uses(place: Place, tool: str, document: dict[str, Any]) -> bool:
    files = {"tox": "tox.ini", "nox": "noxfile.py", "hatch": "hatch.toml"}
    return bool(place.has(files[tool])) or tool in table(document, "tool")


def _nox(place: Place) -> tuple[str, ...]:
    """How nox runs the tests, if there is a session for them."""
    nodes = _parsed(place.text("noxfile.py") or "").body
    sessions = [node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.decorator_list]
    chosen = next((name for name in ("tests", "test", "unit") if name in sessions), "")
    return ("nox", "-s", chosen) if chosen else ()


def _test_files(place: Place) -> list[Path]:
    patterns = ("tests/**/test*.py", "test/**/test*.py", "tests/**/*_test.py", "test*.py", "*_test.py")
    return [path for pattern in patterns for path in place.files(pattern, 50)]


IMPORTS_PYTEST = re.compile(r"^\s*(?:import pytest|from pytest\b)|^def test_|^async def test_", re.MULTILINE)
IMPORTS_UNITTEST = re.compile(r"^\s*(?:import unittest|from unittest\b)", re.MULTILINE)


def _by_style(place: Place, python: Interpreter, files: list[Path], document: dict[str, Any]) -> Found:
    """Tests without any word on who runs them: by the way they are written."""
    texts = [place.text(str(path.relative_to(place.root))) or "" for path in files]
    if any(IMPORTS_PYTEST.search(text) for text in texts) or not any(map(IMPORTS_UNITTEST.search, texts)):
        return _pytest(place, python, f"tests in {files[0].relative_to(place.root)}", document)
    top = files[0].relative_to(place.root).parts[0]
    command = (*python.command, "-m", "unittest", "discover")
    if (place.root / top).is_dir():
        command = (*command, "--start-directory", top)
        # Its modules are imported as parts of a package only if it is one.
        command = (*command, "--top-level-directory", ".") if place.has(f"{top}/__init__.py") else command
    why = f"unittest in {files[0].relative_to(place.root)}"
    return _found("tests", command, python, why, report=Report.UNITTEST)


# Types and lint


def _types(place: Place, python: Interpreter, document: dict[str, Any]) -> Finds:
    tool = table(document, "tool")
    mypy = tool.get("mypy") or _section(place, "mypy", ("mypy.ini", ".mypy.ini", "setup.cfg"))
    if mypy is not None:
        named = any(key in table(mypy) for key in ("files", "packages", "modules"))
        what = () if named else tuple(source_directories(place) or ["."])
        yield _found(
            "types", (*python.command, "-m", "mypy", *what), python, "settings of mypy", required=False
        )
    if "pyright" in tool or place.has("pyrightconfig.json"):
        yield _found("types", _program(place, "pyright"), python, "settings of pyright", required=False)


def _section(place: Place, section: str, names: tuple[str, ...]) -> dict[str, str | None] | None:
    for name in names:
        parser = place.ini(name)
        if parser.has_section(section):
            return dict(parser.items(section))
    return None


def _lint(place: Place, python: Interpreter, document: dict[str, Any]) -> Finds:
    if "ruff" in table(document, "tool") or place.has("ruff.toml", ".ruff.toml"):
        file = "${reports}/lint.sarif"
        words_ = (
            *_program(place, "ruff"),
            "check",
            "--no-cache",
            "--output-format=sarif",
            f"--output-file={file}",
        )
        yield _found("lint", words_, python, "settings of ruff", report=Report.SARIF, file=file)
    if _section(place, "flake8", (".flake8", "setup.cfg", "tox.ini")) is not None:
        yield _found("lint", (*python.command, "-m", "flake8"), python, "settings of flake8")


def _program(place: Place, name: str) -> tuple[str, ...]:
    venv = virtual_environment(place)
    return (f"{venv.path}/bin/{name}",) if venv and venv.has_program(name) else (name,)


def _found(name: str, command: tuple[str, ...], python: Interpreter, why: str, **options: Any) -> Found:
    check = Check(command=command, env=dict(python.env), visible=python.visible, **options)
    return Found(name=name, check=check, why=f"{why}, {python.why}" if python.why else why)
