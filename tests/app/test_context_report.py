"""A plan of ten steps, carried out for real: how much less agents are told than the whole history."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planforge.app.context.report import ContextReport, report
from planforge.app.history.replays import replayed
from planforge.app.project import Project
from planforge.errors import NotFound
from programs import planforge
from repositories import commit, repository
from workshops import workshop

STEPS = 10
CLAIM = (
    "I added `part_{n}` beside the other parts, with a test for a usual value, for zero and for a negative "
    "one. It follows the naming of the modules that were there. I ran the whole suite; all passed, and "
    "I left nothing else in the tree. One thing to know: it takes an integer and raises `TypeError` for "
    "anything else."
)


def plan() -> str:
    changes = "".join(
        f"- `wordcount/part_{n}.py` — `part_{n}(value)`: the value times {n}, or `TypeError`.\n"
        f"- `tests/test_part_{n}.py` — tests of it: usual, zero, negative, a text.\n"
        for n in range(1, STEPS + 1)
    )
    return (
        "# Plan: Ten parts\n\n## Objective\n\nTen parts that other modules can be made of.\n\n"
        f"## Scope\n\nNew modules and their tests.\n\n## Changes\n\n{changes}\n"
        "## Risks\n\nNone that is known.\n\n## Testing\n\n`python3 -m unittest` runs all tests.\n"
    )


def script() -> str:
    clean = '```json\n{"maxSeverity": "none", "summary": "Fine.", "concerns": []}\n```'
    scenes: list[dict[str, object]] = [
        {"when": ["Role: drafter"], "do": [{"say": plan()}]},
        {"when": ["Role: auditor"], "do": [{"say": clean}]},
    ]
    for n in range(1, STEPS + 1):
        code = f'"""Part {n}."""\n\n\ndef part_{n}(value):\n    """The value times {n}."""\n'
        code += (
            f"    if not isinstance(value, int):\n        raise TypeError(value)\n    return value * {n}\n"
        )
        test = (
            f"import unittest\n\nfrom wordcount.part_{n} import part_{n}\n\n\n"
            "class PartTest(unittest.TestCase):\n"
            f"    def test_a_value(self):\n        self.assertEqual(part_{n}(2), {2 * n})\n"
        )
        does: list[dict[str, object]] = [
            {"write": {"path": f"wordcount/part_{n}.py", "text": code}},
            {"write": {"path": f"tests/test_part_{n}.py", "text": test}},
            {"say": CLAIM.format(n=n)},
        ]
        scenes.append({"when": ["Role: developer", f"Step: phase-{n}\n"], "do": does})
    return json.dumps({"name": "ten", "scenes": scenes})


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Project:
    place = tmp_path_factory.mktemp("ten")
    root = workshop(place)
    commit(
        root, {"AGENTS.md": "# Standards\n\nOne module for each part. Tests beside `tests/`.\n"}, "standards"
    )
    (place / "rehearsal" / "script.json").write_text(script())
    for words in (("forge", "Ten parts"), ("plan", "approve", "1"), ("plan", "run", "1")):
        process = planforge(*words, cwd=root)
        assert process.returncode == 0, process.stderr
    return Project(root)


@pytest.fixture(scope="module")
def told(ten: Project) -> ContextReport:
    return report(ten, "run-002")


@pytest.mark.dear
def test_ten_steps_are_told_at_least_four_times_less_than_the_whole_history(told: ContextReport) -> None:
    assert [call.role for call in told.calls] == ["developer"] * STEPS + ["auditor"]
    assert told.ratio is not None
    assert told.ratio >= 4
    assert told.whole == sum(call.whole for call in told.calls)
    assert told.tokens == sum(call.tokens for call in told.calls)


@pytest.mark.dear
def test_each_call_would_have_had_all_that_was_said_before_it(told: ContextReport) -> None:
    before = 0
    for call in told.calls:
        assert call.whole == before + call.tokens
        assert call.answer > 0
        before = call.whole + call.answer


@pytest.mark.dear
def test_the_parts_of_each_call_are_on_record_and_the_last_step_knows_what_it_builds_on(
    told: ContextReport, ten: Project
) -> None:
    names = [[part.name for part in call.parts] for call in told.calls]
    assert names[0] == ["role", "standards", "overlay", "task"]
    assert names[-1] == ["role", "standards", "overlay", "closure", "task"]
    (standards,) = [part for part in told.calls[0].parts if part.name == "standards"]
    assert [source.path for source in standards.sources] == ["AGENTS.md"]
    closure = next(part for part in told.calls[-1].parts if part.name == "closure")
    assert closure.tokens <= 1510
    assert replayed(ten.ledger, "run-002").difference is None


@pytest.mark.dear
def test_without_a_name_the_newest_run_is_reported_in_which_somebody_was_asked(ten: Project) -> None:
    assert report(ten, None).run == "run-002"


def test_where_nobody_was_asked_there_is_nothing_to_report(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no agent has been asked"):
        report(Project.create(repository(tmp_path)), None)


@pytest.mark.dear
def test_the_command_says_it_to_people_and_to_programs(ten: Project, told: ContextReport) -> None:
    page = planforge("context", cwd=ten.root)
    assert page.returncode == 0
    assert "phase-10-1" in page.stdout
    assert f"{told.ratio} times as many" in page.stdout
    found = json.loads(planforge("context", "run-002", "--json", cwd=ten.root).stdout)
    assert found["ratio"] == told.ratio
    assert found["calls"][-1]["parts"][-1]["name"] == "task"
    assert planforge("context", "run-009", cwd=ten.root).returncode == 3
