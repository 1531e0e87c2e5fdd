"""`planforge plan land` and `planforge plan evidence`, from the outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from calls import Command, caller
from fixing import REQUEST, fixed, prepared
from pulls import Proposals
from repositories import commit

CHECK = {
    "planforge.toml": '[check]\ncommand = ["sh", "check.sh"]\nreport = "tap"\n',
    "check.sh": 'echo "ok 1 - it"\necho "1..1"\n',
}


@pytest.fixture
def at(tmp_path: Path) -> Proposals:
    return Proposals(tmp_path)


@pytest.fixture
def command(at: Proposals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("PATH", at.path)
    return caller(at.field.root, monkeypatch, capsys)


def test_one_plan_lands_and_the_others_wait(at: Proposals, command: Command) -> None:
    commit(at.field.root, CHECK, "a check")
    at.field.plan({"x.txt": "one\n"})
    at.field.plan({"y.txt": "two\n"})
    assert [
        item["plan"] for item in command("plan", "land", "2", "--dry-run", "--json").document["ready"]
    ] == ["plan-002"]
    landed = command("plan", "land", "2", "--json")
    assert landed.code == 0, landed.err
    assert [item["plan"] for item in landed.document["landed"]] == ["plan-002"]
    assert [item["plan"] for item in command("land", "--dry-run", "--json").document["ready"]] == ["plan-001"]


def test_a_plan_is_proposed_and_the_address_is_said_twice(at: Proposals, command: Command) -> None:
    plan = at.field.plan({"x.txt": "one\n"})
    preview = command("plan", "land", "1", "--pr", "--dry-run")
    assert preview.code == 0, preview.err
    assert preview.out.startswith(f"would push planforge/{plan} at {at.field.tip(plan)[:12]} to {at.origin}")
    assert "## How to verify" in preview.out
    made = command("plan", "land", "1", "--pr")
    assert made.code == 0, made.err
    assert made.out.splitlines()[-1] == "https://example.org/a/b/pull/1"
    pulls = at.told["pulls"]
    pulls[0]["headRefOid"] = at.field.tip(plan)
    at.tell(pulls=pulls)
    again = command("plan", "land", "1", "--pr")
    assert again.out.splitlines() == [
        "plan-001 is proposed for main already; nothing was changed",
        "https://example.org/a/b/pull/1",
    ]
    assert command("plan", "land", "1", "--pr", "--json").document["opened"] is False
    assert command("plan", "evidence", "1", "--json").document["pull_requests"] == [
        "https://example.org/a/b/pull/1"
    ]
    assert "opened https://example.org/a/b/pull/1 for planforge/plan-001" in command("log", "--plan", "1").out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("7",), 3),
        (("1", "--remote", "origin"), 2),
        (("1", "--as", "Bob"), 2),
        (("1", "--pr"), 5),
        (("1", "--pr", "--onto", "nowhere"), 3),
        (("nonsense", "--pr"), 2),
    ],
)
def test_what_cannot_be_done_has_its_exit_code(
    words: tuple[str, ...], code: int, at: Proposals, command: Command
) -> None:
    at.field.plan({"x.txt": "one\n"}, ended=False)
    assert command("plan", "land", *words).code == code


def test_the_evidence_of_a_fix_and_its_pull_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = prepared(tmp_path)
    fixed(made)
    command = caller(made.root, monkeypatch, capsys)
    page = command("plan", "evidence", "fix-1")
    assert page.code == 0, page.err
    assert "> Say \\`right\\` in one/a.txt" in page.out
    assert "2 of 2 tests passed" in page.out
    assert "- Ada, `plan`, content `" in page.out
    assert str(made.root) not in page.out
    assert page.out == command("plan", "evidence", "fix-1", "--markdown").out
    document = command("plan", "evidence", "fix-1", "--json").document
    assert (document["objective"], document["stale"]) == (REQUEST, False)
    assert document["steps"][0]["score"]["value"] > 0
    assert command("plan", "evidence", "fix-1", "--json", "--markdown").code == 2
    assert command("plan", "land", "fix-1", "--pr").code == 3
