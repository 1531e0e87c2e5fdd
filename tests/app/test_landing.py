"""Whole landings: real git, a real ledger, plans that agents could have left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from landings import FILES, Field, Table, with_line
from planforge.actions import Action
from planforge.app import landing
from planforge.app.items import plans
from planforge.errors import InvalidInput, Locked, NotFound
from planforge.interfaces.cli.typed import text
from planforge.kernel import effects, events
from planforge.kernel.driver import Call, Driver
from planforge.kernel.events import DriverStarted, EffectIntended
from planforge.kernel.evidence import Outcome
from planforge.workflows.landing import LandRequest, Why, land
from repositories import commit, fingerprint, git

BESIDE = "planforge/landed/main"
CHILD = Path(__file__).with_name("lander_children.py")


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path / "field")


def subjects(field: Field, *revisions: str) -> list[str]:
    return git(field.root, "log", "--first-parent", "--format=%s", *revisions).splitlines()


def statuses(field: Field, plan: str) -> dict[str, str]:
    return {row.step: row.status for row in plans.steps(field.project, plan)}


def test_plans_land_beside_a_branch_that_is_checked_out_and_nothing_of_the_persons_is_touched(
    field: Field,
) -> None:
    (field.root / "a.txt").write_text("not committed\n")
    one, two = field.plan({"a.txt": with_line(0, "one")}), field.plan({"b.txt": with_line(0, "two")})
    before = fingerprint(field.root)
    assert field.land().landed == (one, two)
    assert fingerprint(field.root) == before
    assert subjects(field, BESIDE) == [
        "Land plan-002: Change plan-002",
        "Land plan-001: Change plan-001",
        "first",
    ]
    said = git(field.root, "log", "-1", "--format=%(trailers:only,unfold)", BESIDE).split("\n")
    assert said[:2] == ["Planforge-Run: run-003", "Planforge-Plan: plan-002"]
    assert field.files(BESIDE)["a.txt"] == with_line(0, "one").rstrip()
    assert field.checks == [git(field.root, "rev-parse", f"{BESIDE}~1^{{tree}}"), field.git.tree_of(BESIDE)]
    assert field.land().reason == f"nothing to land on `{BESIDE}`"


def test_a_branch_that_is_checked_out_nowhere_is_moved_itself(field: Field) -> None:
    git(field.root, "checkout", "--quiet", "--detach")
    plan = field.plan({"a.txt": with_line(0, "one")})
    assert field.land().landed == (plan,)
    (landed,) = field.recorded(events.PlanLanded)
    assert (landed.landing, landed.commit) == ("main", git(field.root, "rev-parse", "main"))
    assert git(field.root, "for-each-ref", "refs/heads/planforge/landed") == ""


def test_a_repository_with_long_hashes(tmp_path: Path) -> None:
    field = Field(tmp_path / "field", object_format="sha256")
    plan = field.plan({"a.txt": with_line(0, "one")})
    assert field.land().landed == (plan,)
    assert len(git(field.root, "rev-parse", BESIDE)) == 64


# Conflicts


def test_a_conflict_opens_the_step_again_with_both_sides_and_the_others_land(field: Field) -> None:
    one = field.plan({"a.txt": with_line(0, "one")})
    two = field.plan({"b.txt": with_line(0, "two")}, {"a.txt": with_line(0, "two")})
    three = field.plan({"c.txt": "three\n"}, base=field.tip(two))
    four = field.plan({"d.txt": "four\n"})
    result = field.land()
    assert result.landed == (one, four)
    assert [(item.plan, item.why) for item in result.left] == [(two, Why.CONFLICT), (three, Why.HELD)]
    (conflict,) = field.recorded(events.LandingConflicted)
    (path,) = conflict.conflicts
    texts = [git(field.root, "show", blob) + "\n" for blob in (path.base, path.ours, path.theirs)]
    assert texts == [FILES["a.txt"], with_line(0, "one"), with_line(0, "two")]
    assert "<<<<<<<" in git(field.root, "show", f"{conflict.archive}:a.txt")
    assert statuses(field, two) == {"phase-1": "done", "phase-2": "pending"}
    assert plans.row(field.project, two).status == "REVIEW"
    assert plans.row(field.project, three).status == "DONE"
    report = landing.report(field.project, f"run-{field.runs:03d}")
    assert report.next == [
        Action("plan show", two),
        Action("plan approve", two),
        Action("land", update_checkout=True),
    ]


def test_a_plan_that_was_opened_again_begins_again_on_what_has_landed_and_nothing_is_lost(
    field: Field,
) -> None:
    one, two = field.plan({"a.txt": with_line(0, "one")}), field.plan({"a.txt": with_line(0, "two")})
    assert field.land().landed == (one,)
    tip, base = field.tip(two), git(field.root, "rev-parse", BESIDE)
    assert landing.begin_again(field.project, one) is None
    assert "conflicts" in landing.reopened(field.project, two)
    kept = landing.begin_again(field.project, two)
    assert kept is not None
    assert (field.tip(two), git(field.root, "rev-parse", kept)) == (base, tip)


def test_a_plan_whose_conflict_the_person_settled_by_hand_has_landed(field: Field) -> None:
    one, two = field.plan({"a.txt": with_line(0, "one")}), field.plan({"a.txt": with_line(0, "two")})
    field.land(one)
    assert field.land(two).left[0].why is Why.CONFLICT
    git(field.root, "merge", "--quiet", "--no-edit", BESIDE)
    git(field.root, "merge", "--quiet", "--no-edit", "--strategy-option=ours", f"planforge/{two}")
    result = field.land(two)
    assert (result.done, result.landed, result.left) == (True, (), ())


# The person commits


def meanwhile(field: Field, *happens: Callable[[], object]) -> Table:
    """Checks during which something happens, in turn."""
    left = list(happens)
    real = field.performers("run-999")[effects.RunCheck]

    async def check(effect: effects.RunCheck, call: Call) -> object:
        if left:
            left.pop(0)()
        return await real(effect, call)

    return {effects.RunCheck: check}


def test_what_the_person_commits_while_a_plan_lands_is_merged_and_checked_with_it(field: Field) -> None:
    plan = field.plan({"a.txt": with_line(0, "one")})
    result = field.land(
        table=meanwhile(field, lambda: commit(field.root, {"b.txt": with_line(0, "mine")}, "Mine"))
    )
    assert result.landed == (plan,)
    assert subjects(field, BESIDE) == [f"Land {plan}: Change {plan}", "Mine", "first"]
    assert field.checks[-1] == field.git.tree_of(BESIDE)
    assert len(field.checks) == 2


def test_what_the_person_commits_after_something_has_landed_is_merged_into_that(field: Field) -> None:
    one, two = field.plan({"a.txt": with_line(0, "one")}), field.plan({"b.txt": with_line(0, "two")})
    result = field.land(
        table=meanwhile(field, lambda: None, lambda: commit(field.root, {"c.txt": "mine\n"}, "Mine"))
    )
    assert result.landed == (one, two)
    assert git(field.root, "merge-base", "main", BESIDE) == git(field.root, "rev-parse", "main")
    assert subjects(field, BESIDE)[:2] == [f"Land {two}: Change {two}", "Merge main"]
    assert len(field.recorded(events.LandingCaughtUp)) == 1
    # The same when nothing is left to land: the checkout can be updated again.
    commit(field.root, {"d.txt": "mine\n"}, "Mine too")
    assert field.land().done
    assert git(field.root, "merge-base", "main", BESIDE) == git(field.root, "rev-parse", "main")


def test_what_landed_and_conflicts_with_what_the_person_committed_since_is_queued_again(field: Field) -> None:
    one, two = field.plan({"a.txt": with_line(0, "one")}), field.plan({"b.txt": with_line(0, "two")})
    assert field.land().landed == (one, two)
    before = git(field.root, "rev-parse", BESIDE)
    commit(field.root, {"a.txt": with_line(0, "mine")}, "Mine")
    result = field.land()
    assert (result.landed, [(item.plan, item.why) for item in result.left]) == ((two,), [(one, Why.CONFLICT)])
    (restarted,) = field.recorded(events.LandingRestarted)
    assert git(field.root, "rev-parse", restarted.archive) == before
    assert subjects(field, BESIDE) == [f"Land {two}: Change {two}", "Mine", "first"]


def test_a_branch_that_moves_at_every_try_is_given_up(field: Field) -> None:
    plan = field.plan({"a.txt": with_line(0, "one")})
    again = [lambda n=n: commit(field.root, {"c.txt": f"{n}\n"}, "Mine") for n in range(9)]
    result = field.land(tries=3, table=meanwhile(field, *again))
    assert [(item.plan, item.why) for item in result.left] == [(plan, Why.HELD)]
    assert len(field.checks) == 3


# Both sides pass, and together they do not


def clash(*words: str) -> Callable[[Any], Outcome]:
    """Trees that have all of the words somewhere fail."""

    def judge(files: Any) -> Outcome:
        text = "\n".join(files.values())
        return Outcome.FAIL if all(word in text for word in words) else Outcome.PASS

    return judge


@pytest.mark.dear
def test_of_three_plans_that_landed_the_one_in_the_middle_is_named(field: Field) -> None:
    landed = [field.plan({f"{name}.txt": f"{name}\n"}) for name in ("one", "two", "three")]
    breaking = field.plan({"b.txt": with_line(0, "breaks two")})
    field.judge = lambda files: (
        Outcome.FAIL if "two.txt" in files and "breaks two" in files["b.txt"] else Outcome.PASS
    )
    result = field.land()
    assert result.landed == tuple(landed)
    assert [(item.plan, item.why) for item in result.left] == [(breaking, Why.BROKEN)]
    (broken,) = field.recorded(events.LandingBroken)
    culprit = git(field.root, "rev-parse", f"{BESIDE}~1")
    assert (broken.culprit, broken.culprit_plan) == (culprit, landed[1])
    assert broken.failing == ("test_it",)
    assert broken.checks == 3
    assert git(field.root, "log", "-1", "--format=%s", broken.culprit) == "Land plan-002: Change plan-002"
    assert statuses(field, breaking) == {"phase-1": "pending"}


def test_a_commit_of_the_persons_own_is_named_with_its_author(field: Field) -> None:
    plan = field.plan({"b.txt": with_line(0, "breaks")})
    commit(field.root, {"c.txt": "fine\n"}, "Fine")
    git(field.root, "checkout", "--quiet", "-b", "feature")
    commit(field.root, {"f.txt": "fine\n"}, "Fine as well")
    bad = commit(field.root, {"e.txt": "clashes\n"}, "Rename it")
    git(field.root, "checkout", "--quiet", "main")
    git(field.root, "merge", "--quiet", "--no-ff", "--no-edit", "feature")
    commit(field.root, {"g.txt": "fine\n"}, "Last")
    field.judge = clash("breaks", "clashes")
    (left,) = field.land().left
    assert (left.plan, left.why) == (plan, Why.BROKEN)
    assert f"it comes from `{bad[:12]}` (Rename it) of Ada Lovelace" in left.reason


def test_a_step_on_the_branch_itself_is_named_with_its_plan(field: Field) -> None:
    one, two = (
        field.plan({"c.txt": "fine\n"}, {"e.txt": "clashes\n"}),
        field.plan({"b.txt": with_line(0, "breaks")}),
    )
    git(field.root, "merge", "--quiet", "--ff-only", f"planforge/{one}")
    field.judge = clash("breaks", "clashes")
    assert field.land().left[0].plan == two
    (broken,) = field.recorded(events.LandingBroken)
    assert (broken.culprit_plan, broken.culprit_step) == (one, "phase-2")


# One lander at a time, and one that dies


def test_a_second_lander_is_told_who_is_at_it(field: Field) -> None:
    field.plan({"a.txt": with_line(0, "one")})
    run = field.begin()
    with landing.only_lander(field.project, "refs/heads/main"):
        with pytest.raises(Locked, match=f"landing on `main` is under way in process {os.getpid()}"):
            field.go_on(run)
        with landing.only_lander(field.project, "refs/heads/other"):
            pass
        with landing.only_lander(field.project, "plan-001"):
            pass
    assert field.go_on(run).done


def test_of_two_landers_at_once_one_lands_and_the_other_is_told(field: Field) -> None:
    plan = field.plan({"a.txt": with_line(0, "one")})
    runs = [field.begin(), field.begin()]
    started = [
        subprocess.Popen(
            [sys.executable, str(CHILD), str(field.root), run, "never"],
            env=os.environ | {"PYTHONPATH": str(CHILD.parents[1])},
            stderr=subprocess.PIPE,
            text=True,
        )
        for run in runs
    ]
    said = [process.communicate(timeout=120)[1] for process in started]
    codes = [process.returncode for process in started]
    assert 0 in codes, said
    assert all(
        code == 0 or "landing on `main` is under way in process" in text
        for code, text in zip(codes, said, strict=True)
    )
    assert len(field.recorded(events.PlanLanded)) == 1
    assert subjects(field, BESIDE) == [f"Land {plan}: Change {plan}", "first"]


def next_moment(field: Field, run: str, deaths: list[str]) -> str:
    """When to die next: after an effect was performed the first time, otherwise after the next fact."""
    kinds = [type(item.event) for item in field.project.ledger.stream(run)]
    own = [kind for kind in kinds if kind is not DriverStarted]
    begun = own[-1] is EffectIntended and deaths[-1:] == ["recorded"]
    deaths.append("performed" if begun else "recorded")
    return deaths[-1]


@pytest.mark.dear
def test_a_lander_killed_at_every_moment_lands_once(field: Field) -> None:
    plan = field.plan({"a.txt": with_line(0, "one")})
    before = fingerprint(field.root)
    run = field.begin()
    deaths: list[str] = []
    for _ in range(200):
        process = subprocess.run(
            [sys.executable, str(CHILD), str(field.root), run, next_moment(field, run, deaths)],
            env=os.environ | {"PYTHONPATH": str(CHILD.parents[1])},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, process.stderr
    facts = [item.event for item in field.project.ledger.stream(run)]
    intended = [event.effect for event in facts if isinstance(event, EffectIntended)]
    assert intended == [
        *("OpenTarget", "ReadQueue", "Merge", "RunCheck", "AdvanceBranch"),
        *("OpenTarget", "ReadQueue", "Probe"),
    ]
    # It died after every fact of its own, and after everything that it did before it could be told.
    assert deaths.count("performed") == len(intended)
    assert deaths.count("recorded") == 2 * len(intended) + len(["MergeChecked", "PlanLanded"]) + 1
    (landed,) = field.recorded(events.PlanLanded)
    assert (landed.plan, landed.commit) == (plan, git(field.root, "rev-parse", BESIDE))
    assert subjects(field, BESIDE) == [f"Land {plan}: Change {plan}", "first"]
    kept = git(field.root, "for-each-ref", "--format=%(refname)", f"refs/planforge/archive/{run}").split()
    assert kept == [f"refs/planforge/archive/{run}/{plan}.land"]
    assert fingerprint(field.root) == before
    git(field.root, "fsck", "--strict")


def test_a_landing_decides_the_same_again_from_its_ledger_and_performs_nothing(field: Field) -> None:
    field.plan({"a.txt": with_line(0, "one")})
    field.plan({"a.txt": with_line(0, "two")})
    result = field.land()
    run = f"run-{field.runs:03d}"

    driver = Driver(field.project.ledger, run, {})
    assert asyncio.run(driver.drive(land(LandRequest(run=run, branch="main")))) == result


# Before a landing


def test_a_preview_says_what_would_land_and_changes_nothing(field: Field) -> None:
    one, two = field.plan({"a.txt": with_line(0, "one")}), field.plan({"a.txt": with_line(0, "two")})
    three = field.plan({"c.txt": "x\n"}, passed=False)
    refs = git(field.root, "for-each-ref")
    events_before = field.project.ledger.head()
    preview = landing.preview(field.project)
    assert (preview.branch, preview.landing, preview.checkout) == ("main", BESIDE, str(field.root))
    assert [(item.plan, item.conflicts) for item in preview.ready] == [(one, ()), (two, ("a.txt",))]
    assert [item.plan for item in preview.held] == [three]
    assert (git(field.root, "for-each-ref"), field.project.ledger.head()) == (refs, events_before)
    assert [item.plan for item in landing.preview(field.project, ["2"]).ready] == [two]
    with pytest.raises(NotFound, match="there is no `plan-009` here"):
        landing.preview(field.project, ["9"])


def test_a_probe_tells_which_work_conflicts_with_which(field: Field) -> None:
    one, two = (
        field.plan({"a.txt": with_line(0, "one")}),
        field.plan({"a.txt": with_line(0, "two")}, ended=False),
    )
    field.plan({"b.txt": with_line(0, "three")})
    probed = landing.probe(field.project)
    assert [(item.one, item.other, item.paths) for item in probed.conflicts] == [(one, two, ("a.txt",))]
    assert (len(probed.items), probed.merges) == (3, 1)


def test_the_branch_is_the_one_named_or_that_of_the_settings_or_of_the_checkout(field: Field) -> None:
    git(field.root, "branch", "release")
    assert landing.branch_named(field.project, None) == "main"
    assert landing.branch_named(field.project, "release") == "release"
    assert landing.branch_named(field.project, "refs/heads/release") == "release"
    git(field.root, "checkout", "--quiet", "--detach")
    with pytest.raises(InvalidInput, match="is on no branch") as refused:
        landing.branch_named(field.project, None)
    assert text(refused.value.hint) == "say which: `planforge land --onto BRANCH`"
    (field.root / "planforge.toml").write_text('[land]\nbranch = "release"\n')
    del field.project.settings
    assert landing.branch_named(field.project, None) == "release"


@pytest.mark.parametrize("name", ["nowhere", "main~0", "-d", "main release", "HEAD"])
def test_a_branch_that_there_is_not_is_said_not_to_be(field: Field, name: str) -> None:
    with pytest.raises(NotFound, match="there is no branch"):
        landing.branch_named(field.project, name)


def test_a_branch_of_planforges_is_no_place_to_land(field: Field) -> None:
    plan = field.plan({"a.txt": with_line(0, "one")})
    with pytest.raises(InvalidInput, match="is a branch of Planforge's"):
        landing.branch_named(field.project, f"planforge/{plan}")
