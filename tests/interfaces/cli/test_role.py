"""`planforge role`: which roles there are, who plays them, and what becomes of one that is not whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from calls import caller
from planforge.app.demo import story
from programs import document, planforge
from repositories import write
from workshops import workshop


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return workshop(tmp_path_factory.mktemp("roles"))


def test_every_role_is_listed_with_who_plays_it(root: Path) -> None:
    rows = {row["role"]: row for row in document("role", "list", cwd=root)}
    assert len(rows) >= 14
    assert (rows["auditor"]["access"], rows["auditor"]["tier"], rows["auditor"]["output"]) == (
        "read",
        "heavy",
        "audit",
    )
    assert {row["agent"] for row in rows.values()} == {"rehearsal"}
    page = planforge("role", "list", cwd=root).stdout
    assert "developer           write   balanced  rehearsal  its own" in page


def test_a_role_is_shown_with_its_texts_and_what_its_agent_is_told(root: Path) -> None:
    page = planforge("role", "show", "developer", cwd=root).stdout
    assert "planforge:personas/developer.md" in page
    assert "You are the developer." in page
    found = document("role", "show", "developer", cwd=root)
    assert found["row"]["skills"] == ["reading-code", "implementing", "writing-tests"]
    assert found["block"] in page


def test_roles_are_known_where_there_is_no_project(tmp_path: Path) -> None:
    rows = document("role", "list", cwd=tmp_path)
    assert {"developer", "auditor"} <= {row["role"] for row in rows}
    assert document("role", "show", "developer", cwd=tmp_path)["row"]["access"] == "write"
    assert list(tmp_path.iterdir()) == []


def test_models_of_the_settings_are_shown_with_the_reason(tmp_path: Path) -> None:
    root = workshop(tmp_path)
    with (root / "planforge.toml").open("a") as file:
        file.write('\n[agents.tiers.rehearsal]\nheavy = "big"\n[agents.models]\ndeveloper = "own"\n')
    rows = {row["role"]: row["model"] for row in document("role", "list", cwd=root)}
    assert (rows["auditor"], rows["developer"], rows["tester"]) == ("big", "own", "")
    assert "own (`agents.models.developer`)" in planforge("role", "show", "developer", cwd=root).stdout


def test_an_auditor_of_another_vendor_is_listed_and_shown_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    profiles = "".join(
        f'[agents.profiles.{name}]\ncommand = ["{sys.executable}"]\nvendor = "{vendor}"\n'
        for name, vendor in (("ours", "a"), ("theirs", "b"))
    )
    settings = '[agents]\ndefault = "ours"\ncross_vendor_auditor = true\nmodels.drafter = "special"\n'
    (tmp_path / "planforge.toml").write_text(settings + profiles)
    monkeypatch.setenv("PATH", str(tmp_path))
    call = caller(tmp_path, monkeypatch, capsys)
    rows = {row["role"]: (row["agent"], row["model"]) for row in call("role", "list", "--json").document}
    assert rows["auditor"] == rows["reviewer"] == ("theirs", "")
    assert rows["drafter"] == rows["reviser"] == ("ours", "special")
    assert "auditor             read    heavy     theirs" in call("role", "list").out
    page = call("role", "show", "auditor").out
    why = "`agents.cross_vendor_auditor`: of another vendor than `ours`, the drafter"
    assert f"theirs ({why})" in page
    assert "continues     drafter" in call("role", "show", "reviser").out


def test_a_role_that_there_is_not_is_refused_with_those_that_there_are(root: Path) -> None:
    process = planforge("role", "show", "poet", cwd=root)
    assert process.returncode == 2
    assert "there is no role `poet`" in process.stderr
    assert "known are `acceptance-tester`" in process.stderr


def test_a_missing_persona_fails_before_anything_is_begun(tmp_path: Path) -> None:
    root = workshop(tmp_path)
    write(root, {"planforge/roles/roles.toml": '[auditor]\npersona = "inquisitor"\n'})
    for words in (("role", "list"), ("role", "show", "auditor"), ("forge", story.REQUEST)):
        process = planforge(*words, cwd=root)
        assert process.returncode == 2
        wanted = "role `auditor` wants `planforge/roles/personas/inquisitor.md`, which is not there"
        assert wanted in process.stderr
    assert document("status", cwd=root)["runs"] == []
    assert document("plan", "list", cwd=root) == []


def test_a_tier_that_there_is_not_is_refused(tmp_path: Path) -> None:
    root = workshop(tmp_path)
    with (root / "planforge.toml").open("a") as file:
        file.write('\n[agents.tiers.rehearsal]\nhuge = "big"\n')
    process = planforge("role", "list", cwd=root)
    assert process.returncode == 2
    assert "`agents.tiers.rehearsal.huge` names no tier" in process.stderr
    assert "known are `heavy`" in process.stderr
