"""Whether an attempt at a step is taken."""

from __future__ import annotations

import pytest

from planforge.kernel.effects import Patch
from planforge.rules.attempts import fault_of_patch


def patch(*files: str) -> Patch:
    return Patch(commit="c", tree="t", parent="p", files=files, changed_lines=1)


def test_a_change_of_nothing_is_not_taken() -> None:
    assert fault_of_patch(patch(), ["src/a.py"]) == "the agent changed nothing"


@pytest.mark.parametrize(
    "allowed", [["src/a.py"], ["src"], ["src/*.py"], ["**/*.py"], ["./src/a.py"], ["docs/x.md", "src/"], []]
)
def test_a_file_that_the_step_names_may_change_by_path_directory_or_pattern(allowed: list[str]) -> None:
    assert fault_of_patch(patch("src/a.py"), allowed) is None


@pytest.mark.parametrize("allowed", [["src/b.py"], ["src/*.txt"], ["sr"], ["src/a"], ["tests"]])
def test_any_other_file_refuses_the_change_and_is_named(allowed: list[str]) -> None:
    fault = fault_of_patch(patch("src/a.py", "src/b\\c.py"), allowed)
    assert fault == "it changed `src/a.py`, `src/b\\c.py`, which the step does not name"
