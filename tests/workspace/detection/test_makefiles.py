"""Targets of Makefiles and justfiles: what is one, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planforge.workspace.detection import detect
from planforge.workspace.detection.makefiles import read_justfile, read_makefile
from repositories import write

MAKEFILE = """\
# test: this is a comment
include common.mk
-include $(DEPS) more.mk
BUILD = build
test := not a target
lint ?= neither
typecheck != echo nor this
export check = x
.PHONY: test lint clean
.DEFAULT_GOAL := help

all: build

build: main.o \\
       util.o
\tcc -o app $^

main.o: main.c; cc -c main.c
%.o: %.c
\tcc -c $<

test lint:: build
\techo "check: no target"
check: CFLAGS = -O0

define RECIPES
types:
\tnothing
endef

ifdef CI
deploy: test
endif
$(BUILD)/x: y
empty:
"""


def test_rules_are_told_from_everything_else() -> None:
    rules = read_makefile(MAKEFILE)
    assert set(rules.targets) == {"all", "build", "main.o", "test", "lint", "deploy", "empty"}
    assert {name for name, target in rules.targets.items() if target.does} == set(rules.targets) - {"empty"}
    assert rules.phony == {"test", "lint", "clean"}
    assert rules.included == ("common.mk", "$(DEPS)", "more.mk")
    assert rules.targets["build"].needs == ("main.o", "util.o")


JUSTFILE = """\
set shell := ["bash", "-c"]
import 'more.just'
mod tools
version := "1.0"
alias t := test
export X := "y"

# test: a comment
[private]
test *args: build
    cargo test {{args}}

build target="debug": && lint
    cargo build

lint path:
    lint: {{path}}
@check:
    true
deploy $host +rest:
    true
"""


def test_recipes_are_told_from_everything_else() -> None:
    rules = read_justfile(JUSTFILE)
    assert set(rules.targets) == {"test", "t", "build", "lint", "check", "deploy"}
    assert rules.targets["lint"].needs == ("path",)
    assert rules.targets["test"].needs == rules.targets["build"].needs == ()
    assert rules.targets["deploy"].needs == ("host", "+rest")
    assert rules.included == ("more.just", "tools")


def commands(root: Path) -> dict[str, tuple[str, ...]]:
    return {name: check.command for name, check in detect(root).checks.items()}


def test_targets_are_what_make_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, {"Makefile": "build:\n\tx\nlint:\n\tx\ntest:\n\tx\ncheck:\n\tx\ntypecheck:\n\tx\n"})
    assert commands(tmp_path) == {
        "build": ("make", "build"),
        "types": ("make", "typecheck"),
        "lint": ("make", "lint"),
        "tests": ("make", "test"),
    }


def test_check_runs_the_tests_only_where_nothing_else_does(tmp_path: Path) -> None:
    write(tmp_path, {"Makefile": "check:\n\tx\n"})
    assert commands(tmp_path) == {"tests": ("make", "check")}


def test_make_takes_its_files_in_its_own_order(tmp_path: Path) -> None:
    write(tmp_path, {"Makefile": "test:\n\tx\n", "GNUmakefile": "lint:\n\tx\n"})
    assert commands(tmp_path) == {"lint": ("make", "lint")}


def test_a_target_that_is_a_directory_and_not_phony_would_do_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"Makefile": "test:\n\tx\n", "test/a.txt": ""})
    found = detect(tmp_path)
    assert found.checks == {}
    assert any("`test` is there as a file and not `.PHONY`" in line for line in found.passed_over)
    write(tmp_path, {"Makefile": ".PHONY: test\ntest:\n\tx\n"})
    assert commands(tmp_path) == {"tests": ("make", "test")}


def test_a_target_without_a_recipe_and_a_recipe_that_needs_words_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, {"Makefile": "test:\n", "justfile": "lint path:\n    x\nbuild:\n    x\n"})
    found = detect(tmp_path)
    assert commands(tmp_path) == {"build": ("just", "build")}
    assert any(line == "tests: `make test`, for it has no recipe" for line in found.passed_over)
    assert any(line == "lint: `just lint`, for it needs path" for line in found.passed_over)


def test_what_is_included_is_not_looked_at_and_that_is_said(tmp_path: Path) -> None:
    write(tmp_path, {"Makefile": "include rules.mk\n", "rules.mk": "test:\n\tx\n"})
    found = detect(tmp_path)
    assert found.checks == {}
    assert "Makefile includes `rules.mk`, which is not looked at" in found.passed_over


def test_go_run_by_make_is_told_to_say_how_many_tests_there_are(tmp_path: Path) -> None:
    write(tmp_path, {"Makefile": "test:\n\tgo test ./...\n", "go.mod": "module m\n"})
    assert detect(tmp_path).checks["tests"].env == {"GOFLAGS": "-v"}


def test_make_finds_the_tools_of_the_projects_virtual_environment(tmp_path: Path) -> None:
    write(tmp_path, {"Makefile": "test:\n\tpytest\nbuild:\n\tx\n", "pyproject.toml": ""})
    write(tmp_path, {".venv/pyvenv.cfg": "", ".venv/bin/python": ""})
    found = detect(tmp_path).checks
    assert found["tests"].env == {"VIRTUAL_ENV": "${root}/.venv", "PATH": "${root}/.venv/bin:${PATH}"}
    assert found["build"].required is False  # a package, which no test needs


LINES = st.lists(st.text(st.sampled_from("\t :=;#$(%)\\ab.include\ndefine"), max_size=20), max_size=20)


@given(LINES.map("\n".join))
def test_no_file_makes_the_parsers_fail(text: str) -> None:
    for rules in (read_makefile(text), read_justfile(text)):
        assert all(name and name == target.name for name, target in rules.targets.items())


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x" * 5_000_000])
def test_what_is_no_makefile_has_no_targets(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, {"Makefile": content})
    assert detect(tmp_path).checks == {}
