"""No plan and no step gets a status that its table does not have next, whatever is done to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from forgeries import HISTORIES
from planforge.app import cancellation, forges, landing
from planforge.app.decisions import approvals, statuses
from planforge.app.history.replays import replayed
from planforge.app.items import plans
from planforge.app.plans import pages, work
from planforge.app.project import Project
from planforge.documents.plan import PlanStatus, parse
from planforge.errors import AgentLimited, RefusedByGate
from planforge.interfaces.cli.typed import text
from planforge.kernel import events
from planforge.kernel.events import Event, Recorded, RunEnded
from planforge.kernel.ledger import Ledger
from planforge.kernel.replay.proof_faults import unpack
from planforge.kernel.work.lifecycle import IllegalTransition, Machine
from planforge.kernel.work.lifecycle.tables import END_RUN, PHASE, PLAN, TASK
from programs import document, planforge
from rehearsals import Actions, Rehearsal, copied
from repositories import commit, git
from texts import CLEAN, drive, forged, play, says, writes

P = "plan-001"
LIMITED: Actions = [{"http": {"status": 429, "reset": 3600}}]
AUDITOR = (("Role: auditor",), says(CLEAN))
RIGHT = ((("Role: developer",), writes("one/a.txt")), AUDITOR)
WRONG = ((("Role: developer",), writes("one/a.txt", text="wrong\n")), AUDITOR)


@pytest.fixture(scope="module")
def beginning(tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    return forged(tmp_path_factory.mktemp("beginning") / "here")


class Place(NamedTuple):
    """A repository with a plan in review, and those who work on it."""

    at: Rehearsal
    project: Project

    @property
    def status(self) -> str:
        return plans.row(self.project, P).status

    @property
    def in_file(self) -> str:
        return parse(plans.text(self.project, plans.row(self.project, P))).status.value

    def approve(self) -> None:
        approvals.approve(self.project, P, actor="Ada")

    def begin(self) -> str:
        self.approve()
        return work.begin_plan_run(self.project, P, parallel=False)

    def run(self) -> RunEnded:
        return drive(self.project, self.begin())

    def move(self, event: str) -> None:
        close = event == "close"
        statuses.move(
            self.project, P, event, actor="Ada", reason="so it is", override=close, without_landing=close
        )

    def put(self, status: str) -> None:
        """Whatever the plan is, it is this now."""
        moved = events.ItemMoved(item=P, by="nobody", status=status, actor="", reason="")
        self.project.ledger.append(P, [moved], expected=None)


@pytest.fixture
def place(beginning: Rehearsal, tmp_path: Path) -> Iterator[Place]:
    at = copied(beginning, tmp_path / "here")
    at.settings("[run]\nattempts = 1\n")
    project = Project(at.root)
    yield Place(at, project)
    project.ledger.close()


# What really happens


class Change(NamedTuple):
    """A status that was given."""

    machine: Machine
    before: str
    after: str
    kind: str


def changes(recorded: Iterable[Recorded], place: Path) -> Iterator[Change]:
    """Every change of the status of a plan with a file, or of a step of one, as the events have them."""
    with closing(Ledger.create(place)) as ledger:
        before: dict[str, str] = {}
        for item in recorded:
            ledger.append(item.stream, [item.event], expected=None, key=item.key)
            now = {str(node): str(status) for node, status in ledger.query("SELECT node, status FROM steps")}
            now |= {str(plan): str(status) for plan, status in ledger.query("SELECT plan, status FROM plans")}
            for name, status in now.items():
                machine = PHASE if "/" in name else PLAN
                if before.get(name, machine.initial) != status:
                    yield Change(machine, before.get(name, machine.initial), status, item.kind)
            before = now


def illegal(found: Iterable[Change]) -> list[Change]:
    return [
        change
        for change in found
        if not any(
            (row.source, row.target) == (change.before, change.after) for row in change.machine.transitions
        )
    ]


def lives(place: Place) -> None:
    """Fails, is parked, cancelled, tried again, conflicts when it is to land, is done at last, and closed."""
    project = place.project
    play(place.at, WRONG)
    assert not place.run().succeeded
    play(place.at, ((("Role: developer",), LIMITED), AUDITOR))
    run = place.begin()
    with pytest.raises(AgentLimited):
        drive(project, run)
    cancellation.cancel(project, run, reason="too slow", actor="Ada")
    run = place.begin()
    with pytest.raises(AgentLimited):
        drive(project, run)
    play(place.at, RIGHT)
    assert drive(project, run).succeeded  # taken up where it was parked
    commit(place.at.root, {"one/a.txt": "mine\n"})
    run = landing.begin(project) or ""
    assert not drive(project, run).succeeded
    assert place.status == place.in_file == "REVIEW"
    play(place.at, ((("Role: developer",), writes("one/a.txt", text="both\n")), AUDITOR))
    assert place.run().succeeded
    place.approve()
    assert drive(project, work.begin_plan_run(project, P, parallel=False)).succeeded
    assert drive(project, landing.begin(project) or "").succeeded
    place.move("close")


@pytest.mark.dear
def test_every_status_that_is_really_given_is_in_the_tables(place: Place, tmp_path: Path) -> None:
    lives(place)
    assert place.status == place.in_file == "CLOSED"
    found = list(changes(place.project.ledger.since(), tmp_path / "again"))
    assert illegal(found) == []
    for machine, happened in ((PLAN, 9), (PHASE, 6)):
        seen = {(change.before, change.after) for change in found if change.machine is machine}
        assert len(seen) >= happened, seen


def told(name: str) -> Iterator[Recorded]:
    proof, _ = unpack((HISTORIES / f"{name}.proof").read_bytes())
    about = proof.manifest.about
    found = [item for name in (about.run, *about.plans) for item in proof.stream(name)]
    return iter(sorted(found, key=lambda item: item.seq))


@pytest.mark.parametrize(
    "name",
    [
        "composed-with-a-second-try",
        "demo",
        "done-after-retries-and-rejections",
        "failed-after-three-lies",
        "forge-stopped-by-its-cap",
        "forged-after-a-revision",
        "interrupted-by-kill-9",
    ],
)
def test_so_is_every_status_in_the_recorded_histories(name: str, tmp_path: Path) -> None:
    found = list(changes(told(name), tmp_path))
    assert found
    assert illegal(found) == []


def test_a_status_that_is_not_in_the_table_would_be_noticed(tmp_path: Path) -> None:
    def spoilt() -> Iterator[Recorded]:
        for item in told("failed-after-three-lies"):
            if not isinstance(item.event, events.DecisionMade):
                yield item

    assert [(change.before, change.after) for change in illegal(changes(spoilt(), tmp_path))] == [
        ("DRAFT", "IMPLEMENTING")
    ]


def test_the_statuses_of_a_plan_file_are_those_of_the_table() -> None:
    assert {status.value for status in PlanStatus} == set(PLAN.states)
    assert PlanStatus(PLAN.initial) is PlanStatus.DRAFT


# What a person does


def by_hand(event: str) -> Callable[[Place], object]:
    """How a person does what the table calls `event`, where nothing is at work."""
    if event in ("cancel", "close"):
        return lambda place: place.move(event)
    if event in ("approve", "approve again"):
        return Place.approve
    return lambda place: approvals.take(place.project, P, "plan", content(place), "run-009")


def content(place: Place) -> str:
    return pages.view(place.project, P).content


@pytest.mark.parametrize("status", PLAN.states)
@pytest.mark.parametrize("event", ["approve", "cancel", "close", "run"])
def test_what_a_person_does_is_done_where_the_table_has_it_and_refused_everywhere_else(
    place: Place, status: str, event: str
) -> None:
    place.approve() if event == "run" else None
    place.put(status)
    rows = [row for row in PLAN.leaving(status) if row.event.removesuffix(" again") == event]
    if event == "run" and status in PLAN.final:
        with pytest.raises(RefusedByGate, match="is not approved as it is now"):
            by_hand(event)(place)  # the yes was taken back with it
        return
    if not rows:
        with pytest.raises(IllegalTransition) as refused:
            by_hand(event)(place)
        assert refused.value.hint
        for row in PLAN.leaving(status):
            if row.action not in (None, END_RUN):
                assert f"{text(row.action).replace('PLAN', P)} → " in text(refused.value.hint)
                assert row.target in text(refused.value.hint)
        assert place.status == status
        return
    by_hand(event)(place)
    if event != "run":  # the run itself says so, with its plan
        assert place.status == place.in_file == rows[0].target


@pytest.mark.parametrize("status", PLAN.states)
def test_a_run_records_no_status_that_may_not_come_next(place: Place, status: str) -> None:
    place.put(status)
    admit = statuses.admitting(place.project)
    facts: list[tuple[Event, str]] = [
        (events.PlanForged(plan=P, content="c", rounds=1, reason="", clean=True), "REVIEW"),
        (
            events.PlanStarted(plan=P, run="r", content="c", branch="b", base="b", steps=(), kept=()),
            "IMPLEMENTING",
        ),
        (events.PlanEnded(plan=P, run="r", succeeded=True, reason="", branch="b", commit="c"), "DONE"),
        (events.PlanEnded(plan=P, run="r", succeeded=False, reason="", branch="b", commit="c"), "REVIEW"),
        (events.StepReopened(plan=P, step="phase-1", reason=""), "REVIEW"),
    ]
    possible = {row.target for row in PLAN.leaving(status) if status not in PLAN.final} | {status}
    for fact, target in facts:
        if target in possible:
            admit(fact)
        else:
            with pytest.raises(IllegalTransition, match=f"`{status}` cannot become `{target}`"):
                admit(fact)


@pytest.mark.parametrize("status", PLAN.states)
def test_nor_is_one_written_into_its_file(place: Place, status: str) -> None:
    place.put(status)
    possible = {row.target for row in PLAN.leaving(status) if status not in PLAN.final} | {status}
    for target in PLAN.states:
        if target in possible:
            statuses.mark(place.project, P, target)
            assert place.in_file == target
        else:
            with pytest.raises(IllegalTransition):
                statuses.mark(place.project, P, target)


def test_what_is_closed_before_it_has_landed_does_not_land(place: Place) -> None:
    play(place.at, RIGHT)
    assert place.run().succeeded
    assert [plan.plan for plan in landing.preview(place.project).ready] == [P]
    place.move("close")
    assert landing.begin(place.project) is None
    (held,) = landing.preview(place.project, [P]).held
    assert held.reason == "it is CLOSED (Ada: so it is)"


def test_a_plan_that_a_run_is_at_is_not_cancelled_before_the_run_is(place: Place) -> None:
    play(place.at, ((("Role: developer",), LIMITED),))
    run = place.begin()
    with pytest.raises(AgentLimited):
        drive(place.project, run)
    with pytest.raises(RefusedByGate, match=f"has an unfinished run, `{run}`") as refused:
        place.move("cancel")
    assert f"end it: `planforge cancel {run}`" in text(refused.value.hint)
    cancellation.cancel(place.project, run, reason="no", actor="Ada")
    place.move("cancel")
    assert place.status == place.in_file == "CANCELLED"
    assert landing.preview(place.project).held == ()


def test_a_run_whose_plan_was_given_up_beneath_it_goes_no_further(place: Place) -> None:
    play(place.at, ((("Role: developer",), LIMITED),))
    run = place.begin()
    with pytest.raises(AgentLimited):
        drive(place.project, run)
    place.put("CANCELLED")
    play(place.at, RIGHT)
    with pytest.raises(IllegalTransition, match="a plan that is `CANCELLED` cannot become `AUDITING`"):
        drive(place.project, run)
    assert place.status == "CANCELLED"
    assert cancellation.cancel(place.project, run, reason="it is over", actor="Ada").exit_code == 1
    assert place.status == "CANCELLED"


def test_a_run_that_fails_where_its_flow_cannot_say_so_leaves_no_plan_under_way(place: Place) -> None:
    play(place.at, ((("Role: developer",), LIMITED),))
    run = place.begin()
    with pytest.raises(AgentLimited):
        drive(place.project, run)
    git(place.at.root, "update-ref", "-d", f"refs/heads/planforge/{P}")
    git(place.at.root, "update-ref", f"refs/heads/planforge/{P}/in-the-way", "HEAD")
    play(place.at, RIGHT)
    ended = drive(place.project, run)
    assert (ended.succeeded, ended.exit_code) == (False, 1)
    assert place.status == place.in_file == "REVIEW"
    assert replayed(place.project.ledger, run).agrees
    place.approve()


def test_an_approval_is_not_taken_twice_at_once(place: Place) -> None:
    place.approve()
    place.put("IMPLEMENTING")
    with pytest.raises(IllegalTransition, match="`run` cannot happen to a plan that is `IMPLEMENTING`"):
        approvals.take(place.project, P, "plan", content(place), "run-009")


def test_a_forge_that_is_cancelled_cancels_its_draft(place: Place) -> None:
    play(
        place.at,
        (
            (("Role: auditor",), LIMITED),
            (("Role: drafter",), says(plans.text(place.project, plans.row(place.project, P)))),
        ),
    )
    run = forges.begin_forge(place.project, "More texts")
    with pytest.raises(AgentLimited):
        drive(place.project, run)
    cancellation.cancel(place.project, run, reason="never mind", actor="Ada")
    assert plans.row(place.project, "plan-002").status == "CANCELLED"
    assert place.status == "REVIEW"


# Commands


def test_every_exit_that_a_person_can_take_is_an_action() -> None:
    assert all(row.action for row in PLAN.transitions if row.person)


def test_the_page_has_every_such_exit_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "states.md").read_text()
    table = [
        [cell.strip(" `") for cell in line.strip("|").split("|")] for line in page.splitlines() if "|" in line
    ]
    listed = {tuple(cells) for cells in table if not set(cells[0]) <= {"-"} and cells[0] != "from"}
    assert listed == {
        (row.source, row.event, row.target, text(row.action).strip("`"))
        for machine in (PLAN, TASK)
        for row in machine.transitions
        if row.person and row.action
    }


@pytest.mark.parametrize("event", ["cancel", "close"])
def test_a_status_line_that_a_crash_left_behind_the_ledger_is_written_when_it_is_tried_again(
    place: Place, event: str
) -> None:
    play(place.at, RIGHT)
    if event == "close":
        assert place.run().succeeded
    path = place.at.root / plans.row(place.project, P).path
    before = path.read_bytes()
    place.move(event)
    path.write_bytes(before)  # as if the process had died between the fact and the file
    with pytest.raises(IllegalTransition):
        place.move(event)
    assert place.in_file == place.status


def test_cancel_and_close_as_commands(place: Place) -> None:
    place.project.ledger.close()
    root = place.at.root
    refused = planforge("plan", "close", "1", "--reason", "done", cwd=root)
    assert refused.returncode == 2
    assert "`close` cannot happen to a plan that is `REVIEW`" in refused.stderr
    assert "`planforge plan approve plan-001` → APPROVED" in refused.stderr
    assert planforge("plan", "cancel", "1", cwd=root).returncode == 2
    done = planforge("plan", "cancel", "1", "--reason", "not needed", "--as", "Grace", "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "CANCELLED"
    assert document("plan", "show", "1", cwd=root)["plan"]["status"] == "CANCELLED"
    assert "CANCELLED (cancel, by Grace): not needed" in planforge("log", cwd=root).stdout
    final = planforge("plan", "approve", "1", cwd=root)
    assert final.returncode == 2
    said = " ".join(final.stderr.split())
    assert "`CANCELLED` is final" in said
    assert "takes it back: `planforge plan reopen plan-001 --reason TEXT` → REVIEW/DRAFT" in said
