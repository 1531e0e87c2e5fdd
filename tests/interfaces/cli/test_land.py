"""`planforge land` as a process: finished plans onto a branch, and from there into the checkout."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from landings import Field
from planforge.app import landing
from planforge.kernel import events
from programs import document, planforge, python
from rehearsals import Rehearsal
from repositories import commit, fingerprint, git

BESIDE = "planforge/landed/main"
CHECK = {
    ".gitignore": "__pycache__/\n",
    "planforge.toml": '[check]\ncommand = ["python3", "-m", "unittest"]\nreport = "unittest"\n',
    "test_it.py": (
        "import pathlib, unittest\n\n\nclass ItTest(unittest.TestCase):\n    def test_it(self):\n"
        "        words = [path.read_text() for path in pathlib.Path('.').glob('*.txt')]\n"
        "        self.assertFalse('left\\n' in words and 'right\\n' in words)\n"
    ),
}


@pytest.fixture
def field(tmp_path: Path) -> Field:
    field = Field(tmp_path / "field")
    commit(field.root, CHECK, "a check")
    return field


@pytest.mark.dear
def test_finished_plans_land_beside_the_branch_and_then_come_into_the_checkout(field: Field) -> None:
    field.plan({"x.txt": "one\n"})
    field.plan({"y.txt": "two\n"})
    before = fingerprint(field.root)
    preview = planforge("land", "--dry-run", cwd=field.root)
    assert preview.stdout.splitlines()[:2] == [
        f"onto main, which is checked out in {field.root}",
        f"through {BESIDE} at {git(field.root, 'rev-parse', 'main')[:12]}",
    ]
    assert [line.split()[0] for line in preview.stdout.splitlines()[2:]] == ["plan-001", "plan-002"]
    told = document("land", cwd=field.root)
    assert [item["plan"] for item in told["landed"]] == ["plan-001", "plan-002"]
    assert told["landed"][1]["evidence"] == "1 of 1 test passed"
    assert (told["landing"], told["next"]) == (BESIDE, ["planforge land --update-checkout"])
    assert fingerprint(field.root) == before
    again = planforge("land", cwd=field.root)
    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, "next: planforge land --update-checkout")
    updated = document("land", "--update-checkout", cwd=field.root)
    assert updated["updated"] == str(field.root)
    assert git(field.root, "status", "--porcelain") == ""
    assert git(field.root, "rev-parse", "main") == git(field.root, "rev-parse", BESIDE)
    assert (field.root / "y.txt").read_text() == "two\n"


@pytest.mark.dear
def test_a_dirty_checkout_is_not_updated_and_what_is_in_the_way_is_named(field: Field) -> None:
    field.plan({"x.txt": "one\n"})
    assert planforge("land", cwd=field.root).returncode == 0
    (field.root / "x.txt").write_text("mine\n")
    before = fingerprint(field.root)
    refused = planforge("land", "--update-checkout", cwd=field.root)
    assert (refused.returncode, refused.stdout) == (5, "")
    assert "are in the way" in refused.stderr
    assert "`x.txt`" in refused.stderr
    assert fingerprint(field.root) == before
    (field.root / "x.txt").unlink()
    (field.root / ".git" / "index.lock").touch()
    locked = planforge("land", "--update-checkout", cwd=field.root)
    assert locked.returncode == 7
    assert "another git command is at work" in locked.stderr
    (field.root / ".git" / "index.lock").unlink()
    assert planforge("land", "--update-checkout", cwd=field.root).returncode == 0
    assert (field.root / "x.txt").read_text() == "one\n"


@pytest.mark.dear
def test_a_break_is_told_with_the_plan_that_it_comes_from(field: Field) -> None:
    for name, text in (("x", "fine\n"), ("y", "left\n"), ("z", "fine\n"), ("w", "right\n")):
        field.plan({f"{name}.txt": text})
    told = planforge("land", cwd=field.root)
    assert told.returncode == 1
    lines = told.stdout.splitlines()
    assert [line[:10] for line in lines[:4]] == ["✓ plan-001", "✓ plan-002", "✓ plan-003", "✗ plan-004"]
    assert "(Land plan-002: Change plan-002) of `plan-002`" in lines[3]
    assert lines[4:] == [
        "next: planforge plan show plan-004",
        "next: planforge plan approve plan-004",
        "next: planforge land --update-checkout",
    ]


def test_a_plan_that_may_not_land_is_refused_by_name(field: Field) -> None:
    plan = field.plan({"x.txt": "one\n"})
    strange = field.commit({"y.txt": "mine\n"}, field.tip(plan), "A quick fix")
    git(field.root, "update-ref", f"refs/heads/planforge/{plan}", strange)
    refused = planforge("land", "1", "--json", cwd=field.root)
    assert refused.returncode == 5
    (left,) = json.loads(refused.stdout)["left"]
    assert left == {
        "plan": plan,
        "why": "held",
        "reason": f"`planforge/{plan}` has `{strange[:12]}` (A quick fix), which Planforge did not make",
    }


def test_where_no_branch_is_checked_out_one_must_be_named(field: Field) -> None:
    field.plan({"x.txt": "one\n"})
    git(field.root, "checkout", "--quiet", "--detach")
    refused = planforge("land", cwd=field.root)
    assert refused.returncode == 2
    assert "is on no branch (HEAD is detached)" in refused.stderr
    assert "planforge land --onto BRANCH" in refused.stderr
    told = document("land", "--onto", "main", cwd=field.root)
    assert (told["landing"], told["next"]) == ("main", [])


def test_a_lander_at_work_is_named(field: Field) -> None:
    field.plan({"x.txt": "one\n"})
    with landing.only_lander(field.project, "refs/heads/main"):
        refused = planforge("land", cwd=field.root)
        assert refused.returncode == 7
        assert f"landing on `main` is under way in process {os.getpid()}" in refused.stderr


def test_an_interrupted_landing_is_resumed_before_another_begins(field: Field) -> None:
    field.plan({"x.txt": "one\n"})
    run = field.begin()
    refused = planforge("land", cwd=field.root)
    assert refused.returncode == 5
    assert f"run `planforge resume {run}`" in refused.stderr
    assert planforge("resume", run, cwd=field.root).returncode == 0
    assert len(field.recorded(events.PlanLanded)) == 1


def test_what_does_not_go_together_is_a_usage_error(field: Field) -> None:
    refused = planforge("land", "--dry-run", "--probe", cwd=field.root)
    assert (refused.returncode, refused.stdout) == (2, "")


def test_conflicts_between_plans_are_probed(field: Field) -> None:
    field.plan({"a.txt": "one\n"})
    field.plan({"a.txt": "two\n"})
    assert planforge("land", "--probe", cwd=field.root).stdout.splitlines() == [
        "plan-001  with  plan-002  a.txt",
        "2 not landed, 1 pairs that touch the same files merged",
    ]


# The whole story, with agents


@pytest.mark.dear
def test_a_plan_that_conflicts_is_opened_again_done_anew_and_lands(plan: Rehearsal) -> None:
    root = plan.root
    assert planforge("plan", "run", "1", cwd=root).returncode == 0
    commit(root, {"wordcount/reading.py": "def minutes(text):\n    return 1\n"}, "Mine")
    before = fingerprint(root)
    landed = planforge("land", "--json", cwd=root)
    assert landed.returncode == 1, landed.stderr
    told = json.loads(landed.stdout)
    assert [(item["plan"], item["why"]) for item in told["left"]] == [("plan-001", "conflict")]
    assert "`wordcount/reading.py`" in told["left"][0]["reason"]
    assert told["next"][:2] == ["planforge plan show plan-001", "planforge plan approve plan-001"]
    assert [event.step for event in plan.events(events.StepReopened)] == ["phase-2"]
    # The agents now begin with what the person has committed.
    assert planforge("plan", "approve", "1", cwd=root).returncode == 0
    ran = planforge("plan", "run", "1", cwd=root)
    assert ran.returncode == 0, ran.stderr
    assert [item["plan"] for item in document("land", cwd=root)["landed"]] == ["plan-001"]
    after = fingerprint(root)
    assert all(after[name] == before[name] for name in (".git/HEAD", ".git/index", "refs"))
    assert planforge("land", "--update-checkout", cwd=root).returncode == 0
    assert "WORDS_A_MINUTE" in (root / "wordcount" / "reading.py").read_text()
    assert planforge("replay", "run-005", cwd=root).returncode == 0


def test_status_of_what_is_done_reads_no_plan_and_stays_quick(field: Field) -> None:
    field.plan({"x.txt": "one\n"})
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))\n"
        "sys.argv = ['planforge', 'status']\n"
        "from planforge.interfaces.cli.main import run\n"
        "run()\n"
    )
    done = python(code, cwd=field.root)
    assert "planforge land" in done.stdout
    assert "planforge.documents.plan" not in done.stderr.split()
