"""How projects of each language are found to be checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planforge.workspace.checks import Check, Report
from planforge.workspace.detection import Detected, detect
from planforge.workspace.detection.javascript import runner_of
from repositories import write

JUNIT = "--junitxml=${reports}/junit.xml"


@pytest.fixture(autouse=True)
def _no_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)


def found(root: Path, files: dict[str, str]) -> Detected:
    write(root, files)
    return detect(root)


def check_of(root: Path, files: dict[str, str]) -> Check:
    return found(root, files).checks["tests"]


def venv(root: Path, *modules: str, name: str = ".venv") -> None:
    write(root / name, {"pyvenv.cfg": "home = /usr/bin\n", "bin/python": ""})
    for module in modules:
        write(root / name, {f"lib/python3.11/site-packages/{module}/__init__.py": "", f"bin/{module}": ""})


# Python


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "`[tool.pytest]` in pyproject.toml"),
        ({"pyproject.toml": "[tool.pytest]\n"}, "`[tool.pytest]` in pyproject.toml"),
        ({"setup.py": "", "pytest.ini": "[pytest]\n"}, "pytest.ini"),
        ({"setup.cfg": "[tool:pytest]\naddopts = -ra\n"}, "`[tool:pytest]` in setup.cfg"),
        ({"tox.ini": "[pytest]\n"}, "`[pytest]` in tox.ini"),
        ({"setup.py": "", "tests/conftest.py": ""}, "tests/conftest.py"),
        ({"pyproject.toml": "[dependency-groups]\ndev = ['pytest>=8']\n"}, "a requirement in pyproject.toml"),
        (
            {"pyproject.toml": "[project.optional-dependencies]\ntest = ['PyTest[x]']\n"},
            "a requirement in pyproject.toml",
        ),
        (
            {"pyproject.toml": "[tool.poetry.group.dev.dependencies]\npytest = '^8'\n"},
            "a requirement in pyproject.toml",
        ),
        (
            {"pyproject.toml": "[tool.hatch.envs.hatch-test]\nextra-dependencies = ['pytest']\n"},
            "a requirement in pyproject.toml",
        ),
        (
            {"requirements-dev.txt": "# x\npytest==8.0\n", "setup.py": ""},
            "a requirement in requirements-dev.txt",
        ),
        ({"tox.ini": "[testenv]\ndeps =\n    pytest\n"}, "`[testenv]` in tox.ini"),
        ({"tox.ini": "[testenv]\ncommands = pytest {posargs}\n"}, "`[testenv]` in tox.ini"),
        ({"noxfile.py": "def tests(session):\n    session.run('pytest')\n"}, "noxfile.py"),
        ({"setup.py": "setup(extras_require={'test': ['pytest']})\n"}, "setup.py"),
        ({"tests/test_a.py": "def test_a(): pass\n"}, "tests in tests/test_a.py"),
        ({"test_a.py": "import pytest\nclass T: pass\n"}, "tests in test_a.py"),
    ],
)
def test_signs_of_pytest(tmp_path: Path, files: dict[str, str], why: str) -> None:
    detected = found(tmp_path, files)
    check = detected.checks["tests"]
    assert check.command == ("python3", "-m", "pytest", JUNIT)
    assert (check.report, check.junit) == (Report.JUNIT, "${reports}/junit.xml")
    assert detected.found[-1].why == why


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": "[project]\nname = 'pytest-like'\ndependencies = ['pytest-mock']\n"},
        {"pyproject.toml": "# pytest is not used\n"},
        {"README.md": "run pytest\n"},
        {"setup.py": "# pytest\n"},
        {"pyproject.toml": "this is = no = TOML [tool.pytest]"},
    ],
)
def test_what_only_mentions_pytest_is_no_sign_of_it(tmp_path: Path, files: dict[str, str]) -> None:
    assert "tests" not in found(tmp_path, files).checks


@pytest.mark.parametrize(
    ("files", "command", "report"),
    [
        (
            {"tests/__init__.py": "", "tests/test_a.py": "import unittest\n"},
            ("-m", "unittest", "discover", "--start-directory", "tests", "--top-level-directory", "."),
            Report.UNITTEST,
        ),
        (
            {"tests/test_a.py": "from unittest import TestCase\n"},
            ("-m", "unittest", "discover", "--start-directory", "tests"),
            Report.UNITTEST,
        ),
        ({"test_a.py": "import unittest\n"}, ("-m", "unittest", "discover"), Report.UNITTEST),
        ({"setup.py": "", "manage.py": ""}, ("manage.py", "test"), Report.UNITTEST),
    ],
)
def test_tests_without_pytest(
    tmp_path: Path, files: dict[str, str], command: tuple[str, ...], report: Report
) -> None:
    check = check_of(tmp_path, files)
    assert (check.command, check.report) == (("python3", *command), report)


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"tox.ini": "[testenv]\ncommands = stestr run\n"}, ("tox",)),
        ({"noxfile.py": "@nox.session\ndef tests(session): pass\n"}, ("nox", "-s", "tests")),
        (
            {"pyproject.toml": "[tool.hatch.envs.default.scripts]\ntest = 'ward'\n"},
            ("hatch", "run", "test"),
        ),
    ],
)
def test_runners_that_make_their_own_environments(
    tmp_path: Path, files: dict[str, str], command: tuple[str, ...]
) -> None:
    assert check_of(tmp_path, files).command == command


def test_pytest_is_asked_directly_although_there_is_tox_and_that_is_said(tmp_path: Path) -> None:
    detected = found(tmp_path, {"tox.ini": "[tox]\n[testenv]\ndeps = pytest\n"})
    assert detected.checks["tests"].command[2] == "pytest"
    assert "tests: `tox`, for pytest can be asked directly" in detected.passed_over


def test_the_interpreter_is_that_of_the_virtual_environment_in_the_persons_checkout(tmp_path: Path) -> None:
    root, home = tmp_path / "fresh", tmp_path / "home"
    write(root, {"pytest.ini": "", "setup.py": ""})
    venv(home, "pytest")
    detected = detect(root, home)
    check = detected.checks["tests"]
    assert check.command[0] == "${root}/.venv/bin/python"
    assert "${root}/.venv" in check.visible
    assert detected.found[0].why == "pytest.ini, with `.venv`"


def test_the_active_environment_is_taken_where_the_project_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv(tmp_path, "pytest", name="elsewhere")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "elsewhere"))
    check = check_of(tmp_path / "project", {"pytest.ini": "", "setup.py": ""})
    assert check.command[0] == f"{tmp_path}/elsewhere/bin/python"


def test_uv_runs_python_where_there_is_its_lock_and_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "bin", {"uv": "#!/bin/sh\n"})
    (tmp_path / "bin" / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    check = check_of(tmp_path / "project", {"pytest.ini": "", "pyproject.toml": "", "uv.lock": ""})
    assert check.command[:5] == ("uv", "run", "--frozen", "python", "-m")


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"src/pkg/__init__.py": ""}, "${checkout}/src"),
        (
            {"lib/x.py": "", "pyproject.toml": "[tool.setuptools.packages.find]\nwhere = ['lib']\n"},
            "${checkout}/lib",
        ),
        ({"lib/x.py": "", "setup.cfg": "[options.packages.find]\nwhere = lib\n"}, "${checkout}/lib"),
        ({"pkg/__init__.py": ""}, None),
    ],
)
def test_the_checkouts_own_code_comes_before_an_editable_install(
    tmp_path: Path, files: dict[str, str], path: str | None
) -> None:
    assert check_of(tmp_path, {"pytest.ini": "", "setup.py": "", **files}).env.get("PYTHONPATH") == path


def test_coverage_is_asked_for_where_the_project_measures_it(tmp_path: Path) -> None:
    check = check_of(tmp_path, {"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--cov=x'\n"})
    assert check.command[-1] == "--cov-report=json:${reports}/coverage.json"
    assert check.coverage == "${reports}/coverage.json"


def test_types_and_lint_of_python(tmp_path: Path) -> None:
    venv(tmp_path, "ruff")
    files = {"pyproject.toml": "[tool.mypy]\nfiles = ['a']\n[tool.ruff]\nline-length = 99\n"}
    checks = found(tmp_path, files).checks
    assert checks["types"].command == ("${root}/.venv/bin/python", "-m", "mypy")
    assert checks["types"].required is False
    assert checks["lint"].command[:2] == ("${root}/.venv/bin/ruff", "check")
    assert checks["lint"].report is Report.SARIF
    assert not checks["lint"].must_pass("lint")


def test_mypy_is_told_what_to_look_at_where_its_settings_do_not_say(tmp_path: Path) -> None:
    files = {"setup.cfg": "[mypy]\nstrict = True\n[flake8]\n", "src/a.py": ""}
    checks = found(tmp_path, files).checks
    assert checks["types"].command == ("python3", "-m", "mypy", "src")
    assert checks["lint"].command == ("python3", "-m", "flake8")


# JavaScript


def package(**fields: object) -> dict[str, str]:
    return {"package.json": json.dumps(fields)}


@pytest.mark.parametrize(
    ("script", "lock", "command", "report"),
    [
        (
            "jest",
            "package-lock.json",
            ("npm", "test", "--", "--json", "--outputFile=${reports}/jest.json"),
            Report.JEST,
        ),
        (
            "NODE_ENV=test jest --ci",
            "pnpm-lock.yaml",
            ("pnpm", "run", "test", "--json", "--outputFile=${reports}/jest.json"),
            Report.JEST,
        ),
        (
            "cross-env A=1 nyc mocha test",
            "yarn.lock",
            ("yarn", "run", "test", "--reporter=json", "--reporter-option=output=${reports}/mocha.json"),
            Report.MOCHA,
        ),
        (
            "vitest run",
            "bun.lockb",
            (
                *("bun", "run", "test", "--reporter=default", "--reporter=json"),
                "--outputFile.json=${reports}/vitest.json",
            ),
            Report.JEST,
        ),
        ("ava", "", ("npm", "test", "--", "--tap"), Report.TAP),
        ("tape test/*.js", "", ("npm", "test"), Report.TAP),
        ("node --test", "", ("npm", "test"), Report.TEXT),
        ("npm run lint && jest", "", ("npm", "test"), Report.TEXT),
        ("jest | tee log", "", ("npm", "test"), Report.TEXT),
        ("jest -- a", "", ("npm", "test"), Report.TEXT),
        ("sh -c 'jest", "", ("npm", "test"), Report.TEXT),
    ],
)
def test_the_test_script_is_run_by_the_locks_tool_and_asked_for_a_report_if_it_can(
    tmp_path: Path, script: str, lock: str, command: tuple[str, ...], report: Report
) -> None:
    check = check_of(tmp_path, package(scripts={"test": script}) | ({lock: ""} if lock else {}))
    assert (check.command, check.report) == (command, report)
    assert check.env == {"CI": "true"}


def test_npms_own_answer_to_no_tests_is_no_test(tmp_path: Path) -> None:
    script = 'echo "Error: no test specified" && exit 1'
    detected = found(tmp_path, package(scripts={"test": script}))
    assert detected.checks == {}
    assert any("only says that there are none" in line for line in detected.passed_over)


def test_a_runner_that_is_installed_and_has_no_script_is_run_without_fetching_it(tmp_path: Path) -> None:
    check = check_of(tmp_path, package(devDependencies={"vitest": "^3"}))
    assert check.command[:4] == ("npx", "--no-install", "vitest", "run")


def test_nodes_own_runner_is_found_by_what_tests_import(tmp_path: Path) -> None:
    files = package(name="x") | {"test/a.test.mjs": "import { test } from 'node:test';\n"}
    assert check_of(tmp_path, files).command == ("node", "--test")


def test_scripts_for_build_lint_and_types(tmp_path: Path) -> None:
    scripts = {"build": "tsc -p .", "lint": "eslint .", "type-check": "tsc --noEmit"}
    checks = found(tmp_path, package(scripts=scripts, packageManager="pnpm@9.1.0")).checks
    assert checks["build"].command == ("pnpm", "run", "build")
    assert checks["types"].command == ("pnpm", "run", "type-check")
    assert checks["lint"].command[:3] == ("pnpm", "run", "lint")
    assert checks["lint"].report is Report.ESLINT
    assert [checks[name].must_pass(name) for name in ("build", "types", "lint")] == [True, False, False]


def test_typescript_is_checked_where_it_is_installed(tmp_path: Path) -> None:
    files = package(devDependencies={"typescript": "5"}) | {"tsconfig.json": "{}"}
    assert found(tmp_path, files).checks["types"].command == ("npx", "--no-install", "tsc", "--noEmit")


def test_several_locks_are_told(tmp_path: Path) -> None:
    detected = found(tmp_path, package(scripts={"test": "x"}) | {"yarn.lock": "", "package-lock.json": ""})
    assert "lock files of yarn, npm: `yarn` is taken" in detected.passed_over


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"scripts": []}', '{"scripts": {"test": 3}}', "[" * 9000]
)
def test_what_is_no_package_has_no_checks(tmp_path: Path, content: str) -> None:
    assert found(tmp_path, {"package.json": content}).checks == {}


@pytest.mark.parametrize(
    ("script", "runner"),
    [
        ("./node_modules/.bin/mocha -x", "mocha"),
        ("A=1 B=2 ava", "ava"),
        ("", ""),
        ("a; b", ""),
        ("(jest)", ""),
    ],
)
def test_the_runner_of_a_script(script: str, runner: str) -> None:
    assert runner_of(script) == runner


# Compiled languages and others


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        (
            {"Cargo.toml": "[package]\n", "Cargo.lock": ""},
            {
                "build": "cargo build --workspace --all-targets --locked",
                "tests": "cargo test --workspace --locked --no-fail-fast",
            },
        ),
        (
            {"Cargo.toml": "[workspace.lints.clippy]\nall = 'warn'\n"},
            {
                "build": "cargo build --workspace --all-targets",
                "lint": "cargo clippy --workspace --all-targets",
                "tests": "cargo test --workspace --no-fail-fast",
            },
        ),
        (
            {"go.mod": "module m\n"},
            {"build": "go build ./...", "lint": "go vet ./...", "tests": "go test -json ./..."},
        ),
        (
            {"pom.xml": "<project/>", "mvnw": ""},
            {
                "build": "./mvnw --batch-mode --quiet -DskipTests test-compile",
                "tests": "./mvnw --batch-mode test",
            },
        ),
        (
            {"build.gradle.kts": ""},
            {
                "build": "gradle --console=plain testClasses",
                "tests": "gradle --console=plain test --continue",
            },
        ),
        (
            {"CMakeLists.txt": "project(x)\nEnable_Testing ()\n"},
            {
                "build": "ctest --build-and-test . .planforge-build --build-generator Unix Makefiles",
                "tests": "ctest --test-dir .planforge-build --output-on-failure"
                " --output-junit ${reports}/ctest.xml",
            },
        ),
        (
            {"CMakeLists.txt": "# enable_testing()\n#[[ enable_testing() ]]\nproject(x)\n"},
            {"build": "ctest --build-and-test . .planforge-build --build-generator Unix Makefiles"},
        ),
        ({"Gemfile": "", "spec/a_spec.rb": ""}, {"tests": "bundle exec rspec"}),
        ({"Rakefile": "Rake::TestTask.new\n"}, {"tests": "rake test"}),
        ({"phpunit.xml.dist": ""}, {"tests": "vendor/bin/phpunit --log-junit=${reports}/junit.xml"}),
        ({"composer.json": '{"scripts": {"test": "x"}}'}, {"tests": "composer run-script test"}),
        ({"mix.exs": ""}, {"build": "mix compile", "tests": "mix test"}),
        ({"deno.json": "{}"}, {"lint": "deno lint", "tests": "deno test --junit-path=${reports}/junit.xml"}),
        ({"a.sln": ""}, {"build": "dotnet build", "tests": "dotnet test"}),
        ({"README.md": "no project\n"}, {}),
    ],
)
def test_other_languages(tmp_path: Path, files: dict[str, str], commands: dict[str, str]) -> None:
    checks = found(tmp_path, files).checks
    assert {name: " ".join(check.command) for name, check in checks.items()} == commands


# Altogether


def test_the_first_find_is_taken_and_the_rest_is_said(tmp_path: Path) -> None:
    files = {"Makefile": "test:\n\tx\n", "pytest.ini": "", "setup.py": ""} | package(scripts={"test": "jest"})
    detected = found(tmp_path, files)
    assert detected.checks["tests"].command == ("make", "test")
    assert detected.found[0].why == "target `test` in Makefile"
    assert len([line for line in detected.passed_over if line.startswith("tests: ")]) == 2
    assert detected.missing == ("build", "types", "lint")


def test_projects_below_the_top_are_named_and_not_taken(tmp_path: Path) -> None:
    files = {
        "package.json": json.dumps({"scripts": {"test": "jest"}}),
        "packages/a/package.json": "{}",
        "services/b/go.mod": "",
        "node_modules/c/package.json": "{}",
        ".hidden/package.json": "{}",
        "a/b/c/d/package.json": "{}",
    }
    detected = found(tmp_path, files)
    assert detected.elsewhere == ("packages/a (package.json)", "services/b (go.mod)")
    assert detected.checks["tests"].command[0] == "npm"
    assert "projects in directories below: the one at the top was taken" in detected.passed_over


def test_where_only_directories_below_have_projects_nothing_is_taken(tmp_path: Path) -> None:
    detected = found(tmp_path, {"backend/go.mod": "", "frontend/package.json": "{}"})
    assert (detected.checks, detected.missing) == ({}, ("build", "types", "lint", "tests"))
    assert len(detected.elsewhere) == 2
    assert "package.json" in detected.looked


def test_a_link_that_leads_out_of_the_tree_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "outside", {"Makefile": "test:\n\tx\n"})
    root = tmp_path / "root"
    root.mkdir()
    (root / "Makefile").symlink_to("../outside/Makefile")
    (root / "justfile").symlink_to("justfile")
    assert detect(root).checks == {}


def test_detecting_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "ran"
    tools = ("make", "just", "uv", "npm", "node", "cargo", "go", "python3", "tox", "nox")
    for name in tools:
        write(tmp_path / "bin", {name: f"#!/bin/sh\ntouch {mark}\n"})
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    code = f"open({str(mark)!r}, 'w')\n"
    files = {"Makefile": f"X := $(shell touch {mark})\ntest:\n\tx\n", "setup.py": code, "noxfile.py": code}
    found(tmp_path / "project", files | {"conftest.py": code, "uv.lock": ""} | package(scripts={"test": "x"}))
    assert not mark.exists()
