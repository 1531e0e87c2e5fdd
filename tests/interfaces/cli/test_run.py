"""From a request to landed code in one's own repository, command by command, with the rehearsal agent."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from planforge.app.demo import story
from programs import document, planforge, started
from rehearsals import Rehearsal, copied
from repositories import commit, git, repository, write
from workshops import workshop

PLAN = "docs/plans/plan-001-common-words-and-reading-time.md"


def scenes(path: Path) -> list[dict[str, Any]]:
    script: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())
    return script["scenes"]


def rewrite(place: Path, *changes: tuple[str, list[dict[str, object]]]) -> None:
    """Put other actions in the place of the scenes whose first `when` matches."""
    path = place / "rehearsal" / "script.json"
    found = scenes(path)
    new = [{"when": [when], "do": do} for when, do in changes]
    path.write_text(json.dumps({"name": "changed", "scenes": [*new, *found]}))


@pytest.fixture(scope="module")
def forged_once(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    place = tmp_path_factory.mktemp("forged")
    root = workshop(place)
    process = planforge("forge", story.REQUEST, cwd=root)
    assert process.returncode == 0, process.stderr
    return Rehearsal(root, place / "rehearsal" / "script.json")


@pytest.fixture
def forged(forged_once: Rehearsal, tmp_path: Path) -> Path:
    """A project with a plan that nobody has approved."""
    return copied(forged_once, tmp_path).root


@pytest.fixture
def approved(one_plan: Rehearsal, tmp_path: Path) -> Path:
    """A project with an approved plan."""
    return copied(one_plan, tmp_path).root


def test_a_request_becomes_landed_code_step_by_step(tmp_path: Path) -> None:
    root = workshop(tmp_path)
    before = git(root, "rev-parse", "HEAD"), git(root, "diff", "HEAD")

    process = planforge("forge", "-", cwd=root, stdin=story.REQUEST)
    assert process.returncode == 0, process.stderr
    assert f"plan: {PLAN}" in process.stdout
    assert "next: planforge plan approve plan-001" in process.stdout
    assert [(row["plan"], row["status"]) for row in document("plan", "list", cwd=root)] == [
        ("plan-001", "REVIEW")
    ]
    assert "**Status:** REVIEW" in (root / PLAN).read_text()

    assert [phase["kind"] for phase in document("plan", "phases", "1", cwd=root)["phases"]] == [
        "implement",
        "implement",
        "audit",
    ]
    assert document("plan", "approve", "plan-1", cwd=root)["actor"] == "Ada Lovelace <ada@example.org>"
    assert document("plan", "show", "1", cwd=root)["approved_by"] == "Ada Lovelace <ada@example.org>"

    process = planforge("plan", "run", "1", "--json", cwd=root)
    assert process.returncode == 0, process.stderr
    report = json.loads(process.stdout)
    assert report["status"] == "done"
    assert [len(step["attempts"]) for step in report["phases"]] == [2, 1, 0]
    assert git(root, "rev-list", "--count", f"HEAD..{report['branch']}") == "2"
    assert (git(root, "rev-parse", "HEAD"), git(root, "diff", "HEAD")) == before
    assert git(root, "status", "--porcelain").splitlines() == ["?? docs/"]
    assert document("plan", "show", "1", cwd=root)["plan"]["status"] == "DONE"
    assert "**Status:** DONE" in (root / PLAN).read_text()

    git(root, "merge", "--quiet", "--ff-only", report["branch"])
    assert (root / "wordcount" / "frequency.py").exists()


def test_a_plan_that_nobody_approved_is_refused_by_its_gate(forged: Path) -> None:
    events = document("status", cwd=forged)["events"]
    process = planforge("plan", "run", "1", cwd=forged)
    assert process.returncode == 5
    assert "not approved" in process.stderr
    assert "planforge plan approve plan-001" in process.stderr
    assert document("status", cwd=forged)["events"] == events


def test_an_edit_voids_the_approval(approved: Path) -> None:
    (approved / PLAN).write_text((approved / PLAN).read_text().replace("alphabetical", "reverse"))
    assert document("plan", "show", "1", cwd=approved)["approved_by"] == ""
    assert document("plan", "show", "1", cwd=approved)["edited"]
    assert planforge("plan", "run", "1", cwd=approved).returncode == 5
    assert planforge("plan", "approve", "1", cwd=approved).returncode == 0
    assert planforge("plan", "run", "1", cwd=approved).returncode == 0


@pytest.mark.dear
def test_an_approval_is_good_for_one_run(approved: Path) -> None:
    assert planforge("plan", "run", "1", cwd=approved).returncode == 0
    process = planforge("plan", "run", "1", cwd=approved)
    assert process.returncode == 5


def test_an_edit_that_breaks_the_plan_cannot_be_approved(forged: Path) -> None:
    (forged / PLAN).write_text((forged / PLAN).read_text().replace("## Testing", "## Tasting"))
    process = planforge("plan", "approve", "1", cwd=forged)
    assert process.returncode == 5
    assert "Testing" in process.stderr


def test_a_plan_file_that_was_removed_can_be_had_again(forged: Path) -> None:
    (forged / PLAN).unlink()
    process = planforge("plan", "show", "1", cwd=forged)
    assert process.returncode == 3
    assert "--recorded" in process.stderr
    assert "# Plan: Common words" in planforge("plan", "show", "1", "--recorded", cwd=forged).stdout


def test_a_forge_that_stays_blocked_needs_a_person(tmp_path: Path) -> None:
    root = workshop(tmp_path)
    rewrite(
        tmp_path, ("Role: auditor", [{"say": story.FIRST_AUDIT}]), ("Role: reviser", [{"say": story.REVISED}])
    )
    process = planforge("forge", story.REQUEST, "--cap", "2", cwd=root)
    assert process.returncode == 6, process.stderr
    assert "CAP_REACHED" in process.stdout
    assert document("plan", "list", cwd=root)[0]["status"] == "REVIEW"


def test_a_drafter_that_never_gives_a_plan_waits_for_a_person_and_leaves_nothing_to_review(
    tmp_path: Path,
) -> None:
    root = workshop(tmp_path)
    rewrite(tmp_path, ("Role: drafter", [{"say": "Sure! What shall I do?"}]))
    process = planforge("forge", story.REQUEST, cwd=root)
    assert process.returncode == 6
    assert "the drafter of plan-001 gave nothing that could be used, twice" in process.stderr
    assert document("plan", "list", cwd=root)[0]["status"] == "DRAFT"
    assert planforge("cancel", "run-001", "--reason", "no use", cwd=root).returncode == 0
    assert document("status", cwd=root)["next"] == ['planforge forge "what you want"']


@pytest.mark.dear
def test_an_agent_that_keeps_lying_lands_nothing_and_the_exit_code_says_so(
    approved: Path, tmp_path: Path
) -> None:
    lie: list[dict[str, object]] = [
        {"write": {"path": "wordcount/frequency.py", "text": story.WRONG_FREQUENCY}},
        {"write": {"path": "tests/test_frequency.py", "text": story.FREQUENCY_TEST}},
        {"say": story.LIE},
    ]
    rewrite(tmp_path, ("Step: phase-1", lie))
    process = planforge("plan", "run", "1", "--json", cwd=approved)
    assert process.returncode == 1
    report = json.loads(process.stdout)
    assert report["status"] == "failed"
    assert [attempt["evidence"][0]["outcome"] for attempt in report["phases"][0]["attempts"]] == ["fail"] * 3
    assert git(approved, "rev-list", "--count", f"HEAD..{report['branch']}") == "0"
    assert len(git(approved, "for-each-ref", "refs/planforge/archive/").splitlines()) == 3
    assert document("plan", "list", cwd=approved)[0]["status"] == "IMPLEMENTING"


@pytest.mark.dear
def test_a_second_run_keeps_what_the_first_one_landed(approved: Path, tmp_path: Path) -> None:
    original = (tmp_path / "rehearsal" / "script.json").read_text()
    rewrite(tmp_path, ("Step: phase-2", [{"say": "I could not do it."}]))
    assert planforge("plan", "run", "1", cwd=approved).returncode == 1
    (tmp_path / "rehearsal" / "script.json").write_text(original)
    assert planforge("plan", "approve", "1", cwd=approved).returncode == 0
    process = planforge("plan", "run", "1", "--json", cwd=approved)
    assert process.returncode == 0, process.stderr
    report = json.loads(process.stdout)
    assert [(step["status"], len(step["attempts"])) for step in report["phases"]] == [
        ("done", 0),
        ("done", 1),
        ("done", 0),
    ]
    steps = git(
        approved,
        "log",
        "--format=%(trailers:key=Planforge-Step,valueonly,separator=)",
        f"HEAD..{report['branch']}",
    )
    assert steps.split() == ["plan-001/phase-2", "plan-001/phase-1"]


def without_sandbox(root: Path) -> None:
    with (root / "planforge.toml").open("a") as file:
        file.write('\n[sandbox]\nlevel = "processes"\n')


def test_an_agent_that_only_reads_cannot_write_in_a_sandbox(tmp_path: Path) -> None:
    root = workshop(tmp_path)
    rewrite(
        tmp_path, ("Role: drafter", [{"write": {"path": "planted.txt", "text": "x"}}, {"say": story.DRAFT}])
    )
    assert planforge("forge", story.REQUEST, cwd=root).returncode == 0
    assert "planted.txt" not in git(root, "log", "--all", "--name-only", "--format=")


def test_an_agent_that_writes_while_drafting_fails_the_forge_in_one_line(tmp_path: Path) -> None:
    root = workshop(tmp_path)
    without_sandbox(root)
    rewrite(
        tmp_path, ("Role: drafter", [{"write": {"path": "planted.txt", "text": "x"}}, {"say": story.DRAFT}])
    )
    process = planforge("forge", story.REQUEST, cwd=root)
    assert process.returncode == 1
    assert "only reads" in process.stdout
    assert "Traceback" not in process.stderr
    assert not (root / "planted.txt").exists()
    assert document("status", cwd=root)["runs"][0]["status"] == "failed"


@pytest.mark.parametrize(
    ("do", "words"),
    [
        ([{"exit": 3}], "ended without an answer"),
        ([{"say": ""}], "empty answer"),
        ([{"stop": "refusal"}, {"say": "no"}], "refus"),
        ([{"error": {"code": -32603, "message": "Internal error"}}], "Internal error"),
    ],
)
def test_an_agent_that_misbehaves_while_drafting_leaves_the_forge_to_a_person_in_one_line(
    tmp_path: Path, do: list[dict[str, object]], words: str
) -> None:
    root = workshop(tmp_path)
    rewrite(tmp_path, ("Role: drafter", do))
    process = planforge("forge", story.REQUEST, cwd=root)
    assert process.returncode == 6
    assert words in process.stderr
    assert "Traceback" not in process.stderr
    assert document("status", cwd=root)["runs"][0]["status"] == "waiting"


@pytest.mark.dear
def test_an_agent_that_is_not_logged_in_leaves_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    root = workshop(tmp_path)
    original = (tmp_path / "rehearsal" / "script.json").read_text()
    rewrite(tmp_path, ("Role: auditor", [{"error": {"code": -32000, "message": "Authentication required"}}]))
    process = planforge("forge", story.REQUEST, cwd=root)
    assert process.returncode == 4
    assert "is not logged in (Authentication required)" in process.stderr
    assert "planforge resume" in process.stderr
    assert document("status", cwd=root)["runs"][0]["status"] == "interrupted"
    (tmp_path / "rehearsal" / "script.json").write_text(original)
    assert planforge("resume", cwd=root).returncode == 0
    assert document("plan", "list", cwd=root)[0]["status"] == "REVIEW"


def test_a_plan_that_a_person_edits_while_it_is_forged_is_left_as_they_wrote_it(tmp_path: Path) -> None:
    root = workshop(tmp_path)
    without_sandbox(root)  # where the agent can play the person, too
    rewrite(
        tmp_path,
        (
            "Role: auditor",
            [{"append": {"path": str(root / PLAN), "text": "\nmine\n"}}, {"say": story.CLEAN_AUDIT}],
        ),
    )
    process = planforge("forge", story.REQUEST, cwd=root)
    assert process.returncode == 1
    assert "was edited while Planforge was working on it" in process.stdout
    assert (root / PLAN).read_text().endswith("\nmine\n")


def test_what_a_killed_agent_left_is_kept_and_the_next_one_starts_clean(approved: Path) -> None:
    root, half = approved, killed_at_half(approved)
    process = planforge("resume", "--json", cwd=root)
    assert process.returncode == 0, process.stderr
    report = json.loads(process.stdout)
    assert "half.txt" not in git(root, "ls-tree", "-r", "--name-only", report["branch"])
    assert report["phases"][0]["attempts"][0]["files"] == [
        "tests/test_frequency.py",
        "wordcount/frequency.py",
    ]
    kept = git(root, "ls-tree", "-r", "--name-only", "refs/planforge/archive/run-002/phase-1-1.left")
    assert "half.txt" in kept.splitlines()
    assert not half.exists()


def killed_at_half(root: Path) -> Path:
    """What the first agent had written of its work when the run of the plan was killed."""
    place = root.parent
    original = (place / "rehearsal" / "script.json").read_text()
    rewrite(place, ("Role: developer", [{"write": {"path": "half.txt", "text": "half"}}, {"hang": True}]))
    driver = started("plan", "run", "1", cwd=root, heard=False)
    half = root / ".planforge" / "worktrees" / "run-002" / "phase-1-1" / "half.txt"
    while not half.exists():
        assert driver.poll() is None
        time.sleep(0.01)
    driver.kill()
    driver.wait()
    (place / "rehearsal" / "script.json").write_text(original)
    return half


@pytest.mark.dear
def test_an_interrupted_run_can_be_cancelled_with_a_reason_and_the_plan_goes_on(approved: Path) -> None:
    root, half = approved, killed_at_half(approved)
    refused = planforge("plan", "run", "1", cwd=root)
    assert refused.returncode == 5
    assert "planforge resume run-002" in refused.stderr
    assert document("status", cwd=root)["next"][0] == "planforge resume run-002"

    process = planforge("cancel", "run-002", "--reason", "took too long", cwd=root)

    assert process.returncode == 0, process.stderr
    assert "took too long" in process.stdout
    assert not half.exists()
    kept = git(root, "ls-tree", "-r", "--name-only", "refs/planforge/archive/run-002/phase-1-1.left")
    assert "half.txt" in kept.splitlines()
    assert document("plan", "list", cwd=root)[0]["status"] == "REVIEW"
    assert planforge("plan", "approve", "1", cwd=root).returncode == 0
    assert planforge("plan", "run", "1", "--parallel", cwd=root).returncode == 0


@pytest.mark.dear
def test_forges_that_start_at_the_same_time_get_plans_of_their_own(tmp_path: Path) -> None:
    root = workshop(tmp_path)
    forges = [started("forge", story.REQUEST, cwd=root, heard=False) for _ in range(3)]
    assert [process.wait(timeout=100) for process in forges] == [0, 0, 0]
    assert [row["plan"] for row in document("plan", "list", cwd=root)] == ["plan-001", "plan-002", "plan-003"]
    assert len(list((root / "docs" / "plans").glob("plan-00[123]-*.md"))) == 3
    assert [run["status"] for run in document("status", cwd=root)["runs"]] == ["done"] * 3


def test_an_agent_sees_of_the_environment_what_it_is_to_see(tmp_path: Path) -> None:
    root = workshop(tmp_path)
    with (root / "planforge.toml").open("a") as file:
        file.write('\n[agents.profiles.nosy]\ncommand = ["sh", "-c", "env > /dev/stderr; env > $OUT"]\n')
        file.write(f'env = {{ OUT = "{tmp_path}/seen" }}\ninherit = ["WANTED"]\nwrites = ["{tmp_path}"]\n')
    text = (root / "planforge.toml").read_text().replace('default = "rehearsal"', 'default = "nosy"')
    (root / "planforge.toml").write_text(text)
    process = planforge(
        "forge", story.REQUEST, cwd=root, extra={"WANTED": "yes", "AWS_SECRET_ACCESS_KEY": "no"}
    )
    assert process.returncode == 4  # it is no agent, and the run can go on with another
    seen = (tmp_path / "seen").read_text()
    assert "WANTED=yes" in seen
    assert "AWS_SECRET" not in seen


def without_check(root: Path) -> None:
    settings = (root / "planforge.toml").read_text().split("[check]")
    agents = settings[1][settings[1].index("[agents]") :]
    (root / "planforge.toml").write_text(agents)


@pytest.mark.dear
def test_without_a_check_in_the_settings_the_tests_of_the_checkout_are_found(approved: Path) -> None:
    without_check(approved)
    process = planforge("plan", "run", "1", "--json", cwd=approved)
    assert process.returncode == 0, process.stderr
    evidence = json.loads(process.stdout)["phases"][0]["attempts"][0]["evidence"][0]
    assert (evidence["outcome"], evidence["reason"]) == ("fail", "2 of 6 tests failed")


@pytest.mark.dear
def test_without_tests_in_the_checkout_nothing_can_land(approved: Path) -> None:
    without_check(approved)
    shutil.rmtree(approved / "tests")
    commit(approved, {}, "no tests")
    process = planforge("plan", "run", "1", "--json", cwd=approved)
    assert process.returncode == 1
    attempt = json.loads(process.stdout)["phases"][0]["attempts"][0]
    assert attempt["evidence"][0]["outcome"] == "cannot_tell"
    assert attempt["evidence"][0]["reason"] == "there is no check `tests`"


@pytest.mark.parametrize(
    ("files", "check"),
    [
        ({"pytest.ini": "[pytest]\n"}, "pytest"),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "pytest"),
        ({"tests/test_it.py": "import unittest\n"}, "unittest"),
        ({"main.c": "int main(){}\n"}, ""),
    ],
)
def test_init_finds_the_tests_and_leaves_settings_that_are_there(
    tmp_path: Path, files: dict[str, str], check: str
) -> None:
    root = repository(tmp_path, files)
    made = document("init", cwd=root)
    assert made["settings_written"]
    assert check in made["check"]
    assert bool(made["check"]) == bool(check)
    assert planforge("status", cwd=root).returncode == 0
    write(root, {"planforge.toml": "# mine\n"})
    assert not document("init", cwd=root)["settings_written"]
    assert (root / "planforge.toml").read_text() == "# mine\n"
    assert ".planforge" not in git(root, "status", "--porcelain")


@pytest.mark.dear
def test_an_unconfined_run_that_nobody_asked_for_is_refused_before_the_approval_is_used(
    approved: Path,
) -> None:
    settings = approved / "planforge.toml"
    confined = settings.read_text()
    settings.write_text(confined + '\n[sandbox]\nlevel = "none"\n')
    refused = planforge("plan", "run", "1", cwd=approved)
    assert refused.returncode != 0
    assert "unconfined = true" in refused.stderr
    assert [row["flow"] for row in document("status", cwd=approved)["runs"]] == ["forge"]
    settings.write_text(confined)
    assert planforge("plan", "run", "1", cwd=approved).returncode == 0
