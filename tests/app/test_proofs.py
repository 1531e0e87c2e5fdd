"""What goes into a proof: all that belongs to the run and nothing of anybody else's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec
import pytest

from planforge.app.history import proofs
from planforge.app.history.proofs import made, prove, references
from planforge.app.project import Project
from planforge.errors import InvalidInput, LedgerUnreadable, NotFound
from planforge.interfaces.cli.typed import text
from planforge.kernel import events
from planforge.kernel.events import Amounts, Event, Payload, Recorded
from planforge.kernel.evidence import Counts, Evidence, Outcome
from planforge.kernel.objects import encode
from planforge.kernel.payloads import pack
from planforge.kernel.replay.proof import Proof, Row, Skipped
from planforge.kernel.replay.proof_faults import chain_faults, stream_faults, unpack
from planforge.workspace.git import bare_objects
from repositories import commit, git, repository

RUN, PLAN = "run-001", "plan-001"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    repository(tmp_path / "r", {"a.py": "a = 1\n", "d/b.py": "b = 2\n"})
    opened = Project.create(tmp_path / "r")
    yield opened
    opened.ledger.close()


def add(project: Project, stream: str, *facts: Event, key: str = "") -> None:
    project.ledger.append(stream, facts, expected=None, key=key)


def started(run: str, plan: str) -> Event:
    return events.RunStarted(run=run, flow="plan_run", flow_version=1, subject=plan, request=Payload())


def created(plan: str) -> Event:
    return events.ItemOpened(item=plan, title=f"title of {plan}", request="r", path="p")


def step(plan: str, base: str) -> Event:
    return events.StepStarted(plan=plan, step="phase-1", attempt=1, base=base, holder="worker-7", fence=3)


def granted(holder: str) -> Event:
    return events.LeaseGranted(holder=holder, paths=("a.py",), fence=3, until="2026-01-01T00:00:00+00:00")


def reserved(name: str, *scopes: str) -> Event:
    return events.BudgetReserved(reservation=name, scopes=scopes, amounts=Amounts(tokens=1))


def told(project: Project) -> Proof:
    proof, faults = unpack(made(project, RUN))
    assert faults == []
    assert list(chain_faults(proof)) == []
    assert list(stream_faults(proof)) == []
    return proof


def kept(proof: Proof) -> list[tuple[str, str]]:
    return [(line.stream, line.kind) for line in proof.lines if isinstance(line, Row)]


def test_what_belongs_to_the_run_is_in_it_and_the_rest_is_hashes(project: Project) -> None:
    base = git(project.root, "rev-parse", "HEAD")
    add(project, "plan-009", created("plan-009"))
    add(project, PLAN, created(PLAN))
    add(project, "run-009", started("run-009", "plan-009"))
    add(project, RUN, started(RUN, PLAN))
    add(project, "leases", granted("run-009/phase-1"), granted("run-001/phase-1"), granted("worker-7"))
    add(project, "run-009", step("plan-009", base))
    add(project, RUN, step(PLAN, base))
    add(project, "leases", granted("run-0010/phase-1"), granted("worker-8"))
    add(project, "budgets", reserved("x", "run:run-009"), reserved("y", "role:r", "run:run-001"))
    add(project, "budgets", events.BudgetSpent(reservation="x", amounts=Amounts()))
    add(project, "budgets", events.BudgetReconciled(reservation="y", spent=Amounts(), reason="done"))
    add(project, "budgets", events.BudgetSet(scope="step:plan-001/phase-1", limits=Amounts(), actor="ada"))
    add(project, "run-009", events.RunEnded(run="run-009", succeeded=True, reason="r", exit_code=0))
    proof = told(project)
    assert kept(proof) == [
        (PLAN, "ItemOpened"),
        (RUN, "RunStarted"),
        ("leases", "LeaseGranted"),
        ("leases", "LeaseGranted"),
        (RUN, "StepStarted"),
        ("budgets", "BudgetReserved"),
        ("budgets", "BudgetReconciled"),
        ("budgets", "BudgetSet"),
    ]
    assert (proof.manifest.before.seq, proof.manifest.head.seq) == (1, 16)
    assert "run-009" not in unpacked_text(proof)


def unpacked_text(proof: Proof) -> str:
    return msgspec.json.encode(list(proof.lines)).decode()


def test_facts_of_the_plan_from_another_run_are_in_it_but_not_its_effects(project: Project) -> None:
    base = git(project.root, "rev-parse", "HEAD")
    add(project, PLAN, created(PLAN))
    add(project, "run-009", started("run-009", PLAN))
    intended = events.EffectIntended(effect="RunAgent", fingerprint="f", body=Payload())
    add(project, "run-009", intended, key="/0")
    add(project, "run-009", step(PLAN, base), key="/1")
    add(project, RUN, started(RUN, PLAN))
    assert ("run-009", "StepStarted") in kept(told(project))
    assert ("run-009", "EffectIntended") not in kept(told(project))


def test_the_same_ledger_gives_the_same_bytes(project: Project) -> None:
    add(project, PLAN, created(PLAN))
    add(project, RUN, started(RUN, PLAN))
    first = made(project, RUN)
    add(project, "plan-009", created("plan-009"))
    assert made(project, RUN) == first


# Objects and files


def evidence(project: Project, commit: str, output: bytes) -> Evidence:
    return Evidence(
        check="tests",
        outcome=Outcome.PASS,
        reason="fine",
        command=("make", "test"),
        exit_code=0,
        counts=Counts(total=1, passed=1, failed=0, skipped=0),
        failing=(),
        commit=commit,
        tree=git(project.root, "rev-parse", f"{commit}^{{tree}}"),
        output=project.ledger.objects.put(output),
        seconds=1.0,
    )


def test_objects_are_found_in_events_and_in_objects(project: Project) -> None:
    objects = project.ledger.objects
    tip = commit(project.root, {"a.py": "a = 2\n"})
    inner = objects.put(b"printed")
    outcome = pack(project.ledger, encode({"output": inner, "padding": "x" * 2000}))
    assert outcome.object
    completed = events.EffectCompleted(effect="RunCheck", outcome=outcome)
    seen = evidence(project, tip, b"also printed")
    verified = events.VerifyOk(plan=PLAN, step="phase-1", attempt=1, evidence=seen)
    written = events.PlanWritten(
        plan=PLAN, round=0, cause="draft", title="t", content="c", object=objects.put(b"# Plan")
    )
    add(project, PLAN, created(PLAN))
    add(project, RUN, started(RUN, PLAN), completed, verified, written)
    objects.put(b"somebody else's")
    proof = told(project)
    assert set(proof.objects.content) == {inner, outcome.object, seen.output, written.object}


def test_an_artifact_that_is_an_object_is_in_it_and_one_that_is_not_need_not_be(project: Project) -> None:
    kept_object = project.ledger.objects.put(b"a report")
    for name in (kept_object, "f" * 64):
        artifact = events.ArtifactRecorded(
            plan=PLAN, step="s", attempt=1, kind=events.ArtifactKind.REPORT, name="r", hash=name
        )
        add(project, PLAN, artifact)
    add(project, RUN, started(RUN, PLAN))
    assert set(told(project).objects.content) == {kept_object}


def test_commits_come_with_their_trees_and_files(project: Project) -> None:
    base = git(project.root, "rev-parse", "HEAD")
    tip = commit(project.root, {"a.py": "a = 2\n"})
    seen = evidence(project, tip, b"")
    add(project, PLAN, created(PLAN))
    add(project, RUN, started(RUN, PLAN), step(PLAN, base))
    add(project, RUN, events.VerifyOk(plan=PLAN, step="phase-1", attempt=1, evidence=seen))
    proof = told(project)
    assert proof.manifest.files == "whole"
    assert {base, tip, seen.tree} <= set(proof.git)
    assert len(proof.git) == 2 + 3 + 3
    assert all(bare_objects.is_named(name, content) for name, content in proof.git.items())
    assert [check.command for check in proof.manifest.checks] == [("make", "test")]


def test_of_a_large_repository_only_what_changed_is_in_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = git(project.root, "rev-parse", "HEAD")
    tip = commit(project.root, {"a.py": "a = 2\n"})
    add(project, PLAN, created(PLAN))
    add(project, RUN, started(RUN, PLAN), step(PLAN, base))
    seen = evidence(project, tip, b"")
    add(project, RUN, events.VerifyOk(plan=PLAN, step="phase-1", attempt=1, evidence=seen))
    monkeypatch.setattr(proofs, "FILES_LIMIT", 10)
    proof = told(project)
    assert proof.manifest.files == "changed"
    blobs = [content for content in proof.git.values() if content.startswith(b"blob ")]
    assert blobs == [b"blob 6\0a = 2\n"]


def test_a_proof_can_leave_the_repository_out(project: Project) -> None:
    add(project, PLAN, created(PLAN))
    add(project, RUN, started(RUN, PLAN), step(PLAN, git(project.root, "rev-parse", "HEAD")))
    proof, _ = unpack(made(project, RUN, files=False))
    assert (proof.manifest.files, proof.git) == ("none", {})


def test_a_commit_that_is_gone_is_said(project: Project) -> None:
    add(project, PLAN, created(PLAN))
    add(project, RUN, started(RUN, PLAN), step(PLAN, "0" * 40))
    with pytest.raises(NotFound, match="`000000000000` is not in the repository any more") as said:
        made(project, RUN)
    assert "--no-files" in text(said.value.hint)


def test_an_object_that_is_gone_is_said(project: Project) -> None:
    add(project, PLAN, created(PLAN))
    body = Payload(object="f" * 64)
    add(project, RUN, started(RUN, PLAN), events.EffectCompleted(effect="RunAgent", outcome=body))
    with pytest.raises(LedgerUnreadable, match="`ffffffffffff` is missing"):
        made(project, RUN)


def test_a_ledger_that_was_tampered_with_gives_no_proof(project: Project) -> None:
    add(project, PLAN, created(PLAN))
    add(project, RUN, started(RUN, PLAN))
    project.ledger.close()
    connection = apsw.Connection(str(project.state / "ledger.db"))
    connection.execute("DROP TRIGGER events_are_not_changed")
    connection.execute("UPDATE events SET at = 'earlier' WHERE seq = 1")
    connection.close()
    again = Project(project.root)
    with pytest.raises(LedgerUnreadable, match="event 1: its content does not match its hash"):
        made(again, RUN)
    again.ledger.close()


def test_references_are_addresses_and_nothing_that_only_looks_like_one(project: Project) -> None:
    item = Recorded(
        seq=1,
        stream=RUN,
        version=1,
        at="",
        key="",
        event=events.PlanWritten(plan=PLAN, round=0, cause="draft", title="t", content="c" * 64, object="x"),
        hash="",
    )
    assert references(project.ledger.objects, [item]) == []


# The file


def test_a_file_that_is_there_is_left_alone_unless_forced(project: Project, tmp_path: Path) -> None:
    add(project, PLAN, created(PLAN))
    add(project, RUN, started(RUN, PLAN))
    path = tmp_path / "proof"
    path.write_text("mine")
    with pytest.raises(InvalidInput, match="is there already"):
        prove(project, RUN, path)
    assert path.read_text() == "mine"
    told = prove(project, RUN, path, force=True)
    assert path.read_bytes() == made(project, RUN)
    assert (told.events, told.others, told.size) == (2, 0, path.stat().st_size)
    assert {entry.name for entry in tmp_path.iterdir()} == {"r", "proof"}


def test_a_place_that_cannot_be_written_and_a_run_that_is_not_there_are_said(
    project: Project, tmp_path: Path
) -> None:
    add(project, PLAN, created(PLAN))
    add(project, RUN, started(RUN, PLAN))
    with pytest.raises(NotFound, match="cannot write"):
        prove(project, RUN, tmp_path / "no" / "such" / "place")
    with pytest.raises(NotFound, match="there is no `run-007` here"):
        prove(project, "run-007", tmp_path / "proof")
    assert not (tmp_path / "proof").exists()


def test_hashes_of_others_count_as_others(project: Project) -> None:
    add(project, PLAN, created(PLAN))
    add(project, "plan-009", created("plan-009"))
    add(project, RUN, started(RUN, PLAN))
    assert [type(line) for line in told(project).lines] == [Row, Skipped, Row]
