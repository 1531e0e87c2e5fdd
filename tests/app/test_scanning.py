"""Scanning real directories and repositories."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planforge.app.evidence import scanning
from planforge.errors import GitFailed, InvalidInput, NoRepository, NotFound
from repositories import commit, git, repository, write

BAD = "def test_a():\n    assert True\n"
GOOD = "def test_a():\n    assert f() == 1\n"
LATER = (datetime.now(UTC) + timedelta(days=400)).date()
WAIVER = '[[scan.waivers]]\nrule = "{rule}"\npath = "{path}"\nreason = "{reason}"\nexpires = {expires}\n'


def places(found: scanning.Scanned) -> list[tuple[str, int, str]]:
    return [(issue.path, issue.line, issue.rule) for issue in found.issues]


def test_a_directory_without_git_and_settings_is_scanned(tmp_path: Path) -> None:
    write(tmp_path, {"tests/test_a.py": BAD, "src/a.py": "# TODO: do it\n", "README.md": "TODO: no\n"})
    found = scanning.scan(tmp_path)
    assert places(found) == [("src/a.py", 1, "todo"), ("tests/test_a.py", 2, "always-true")]
    assert (found.files, found.left_out, found.blocking) == (2, {"not code": 1}, 1)
    assert (found.tests.tests, found.tests.assertions) == (1, 1)


def test_directories_of_others_are_left_out_but_not_those_of_ci(tmp_path: Path) -> None:
    left_out = ["node_modules", ".venv", "build", "vendor", ".hidden", "__pycache__", "a/target"]
    write(tmp_path, {f"{name}/test_a.py": BAD for name in left_out})
    write(tmp_path, {".github/workflows/ci.yml": "jobs:\n  a:\n    steps:\n      - run: pytest || true\n"})
    assert places(scanning.scan(tmp_path)) == [(".github/workflows/ci.yml", 4, "masked-exit")]


def test_what_is_named_is_scanned_wherever_it_lies(tmp_path: Path) -> None:
    write(tmp_path, {"project/a.txt": "", "elsewhere/build/test_a.py": BAD, "elsewhere/test_b.py": BAD})
    (tmp_path / "project" / ".git").mkdir()
    outside = tmp_path / "elsewhere" / "build" / "test_a.py"
    found = scanning.scan(tmp_path / "project", [outside, Path("../elsewhere/test_b.py")])
    assert [issue.path for issue in found.issues] == [str(outside), str(tmp_path / "elsewhere" / "test_b.py")]


def test_directories_above_the_one_asked_for_do_not_make_its_files_fixtures(tmp_path: Path) -> None:
    write(tmp_path, {"fixtures/tests/test_a.py": BAD})
    assert scanning.scan(tmp_path).files == 0
    assert scanning.scan(tmp_path / "fixtures").files == 1
    assert scanning.scan(tmp_path, [tmp_path / "fixtures" / "tests"]).files == 0
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / ".git").mkdir()
    assert scanning.scan(tmp_path / "else", [tmp_path / "fixtures" / "tests"]).files == 1


def test_what_is_no_text_too_large_or_out_of_reach_is_counted(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "test_binary.py": b"\0" * 10,
            "test_huge.py": "# TODO: x\n" * 110_000,
            "test_latin.py": "# TODO: \xe9\n".encode("latin-1"),
            "test_bom.py": "\ufeff# TODO: x\n",
        },
    )
    (tmp_path / "test_link.py").symlink_to("test_latin.py")
    (tmp_path / "test_dangling.py").symlink_to("nowhere.py")
    os.mkfifo(tmp_path / "test_fifo.py")
    found = scanning.scan(tmp_path)
    assert found.left_out == {"binary": 1, "huge": 1, "not code": 3}
    assert places(found) == [("test_bom.py", 1, "todo"), ("test_latin.py", 1, "todo")]


def test_names_that_are_not_utf8_can_be_told(tmp_path: Path) -> None:
    write(tmp_path, {os.fsdecode(b"test_\xff.py"): BAD})
    (issue,) = scanning.scan(tmp_path).issues
    assert issue.path == "test_\ufffd.py"


def test_rules_can_be_chosen_by_name_and_by_number(tmp_path: Path) -> None:
    write(tmp_path, {"test_a.py": BAD + "# TODO: x\n"})
    assert places(scanning.scan(tmp_path, rules=["cr-af13"])) == [("test_a.py", 3, "todo")]
    assert len(scanning.scan(tmp_path, rules=["todo", "always-true"]).issues) == 2
    with pytest.raises(InvalidInput, match="there is no rule `soft`"):
        scanning.scan(tmp_path, rules=["soft"])


def test_only_tests_can_be_asked_for(tmp_path: Path) -> None:
    write(tmp_path, {"test_a.py": BAD, "a.py": "# TODO: x\n"})
    found = scanning.scan(tmp_path, tests_only=True)
    assert places(found) == [("test_a.py", 2, "always-true")]
    assert found.left_out == {"no test": 1}


def test_a_place_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="cannot read"):
        scanning.scan(tmp_path, [Path("nowhere")])


def test_a_live_waiver_lets_an_issue_pass_and_keeps_it_in_the_report(tmp_path: Path) -> None:
    waiver = WAIVER.format(rule="always-true", path="tests/**", reason="legacy", expires=LATER)
    write(tmp_path, {"tests/test_a.py": BAD, "planforge.toml": waiver})
    found = scanning.scan(tmp_path)
    assert [(issue.rule, issue.waived) for issue in found.issues] == [("always-true", "legacy")]
    assert found.blocking == 0
    (result,) = found.sarif.runs[0].results or ()
    assert result.suppressions[0].justification == "legacy"


def test_an_expired_waiver_waives_nothing_and_is_itself_told(tmp_path: Path) -> None:
    waiver = WAIVER.format(rule="CR-AF12", path="tests/**", reason="legacy", expires="2020-01-31")
    soft = "def test_a():\n    assert r.status_code in (200, 404)\n"
    write(tmp_path, {"tests/test_a.py": soft, "planforge.toml": waiver})
    found = scanning.scan(tmp_path)
    assert places(found) == [("planforge.toml", 1, "expired-waiver"), ("tests/test_a.py", 2, "soft-pass")]
    assert found.blocking == 1
    assert found.issues[0].message == "the waiver of `CR-AF12` in `tests/**` ran out on 2020-01-31"


@pytest.mark.parametrize(
    ("waiver", "message"),
    [
        (WAIVER.format(rule="skip", path="a", reason=" ", expires=LATER), "has no reason"),
        (WAIVER.format(rule="no", path="a", reason="x", expires=LATER), "there is no rule `no`"),
        (WAIVER.format(rule="skp", path="a", reason="x", expires=LATER), "did you mean `skip`"),
        (WAIVER.format(rule="skp", path="a", reason="x", expires=LATER), r"`scan.waivers\[0\]`: there"),
        (WAIVER.format(rule="skip", path="/a", reason="x", expires=LATER), "is an absolute path"),
        (WAIVER.format(rule="skip", path="a", reason="x", expires="'soon'"), "expires"),
        ('[[scan.waivers]]\nrule = "skip"\npath = "a"\nexpires = 2030-01-01\n', "reason"),
        ('[scan]\npinned = ["../x"]\n', "leads out of the repository"),
    ],
)
def test_a_waiver_that_makes_no_sense_is_an_error(tmp_path: Path, waiver: str, message: str) -> None:
    write(tmp_path, {"planforge.toml": waiver})
    with pytest.raises(InvalidInput, match=message):
        scanning.scan(tmp_path)


def test_settings_of_pytest_can_make_expected_failures_strict(tmp_path: Path) -> None:
    xfail = "@pytest.mark.xfail(reason='slow')\ndef test_a():\n    assert f() == 1\n"
    write(tmp_path, {"test_a.py": xfail})
    assert len(scanning.scan(tmp_path).issues) == 1
    write(tmp_path, {"pyproject.toml": "[tool.pytest.ini_options]\nxfail_strict = true\n"})
    assert scanning.scan(tmp_path).issues == ()


OLD = "# TODO: old\n\n\ndef test_a():\n    x = f()\n    assert x == 1\n\n\ndef test_b():\n    assert True\n"


def test_only_what_changed_against_a_revision_is_told(tmp_path: Path) -> None:
    root = repository(tmp_path, {"tests/test_a.py": OLD, "gone.py": "# TODO: x\n"})
    (root / "gone.py").unlink()
    assert scanning.scan(root, diff="HEAD").issues == ()
    write(root, {"tests/test_a.py": OLD + "\n# TODO: new\n", "tests/test_new.py": BAD, "ignored.py": BAD})
    write(root, {".gitignore": "ignored.py\n"})
    assert places(scanning.scan(root, diff="HEAD")) == [
        ("tests/test_a.py", 12, "todo"),
        ("tests/test_new.py", 2, "always-true"),
    ]
    assert places(scanning.scan(root, [Path("tests/test_new.py")], diff="HEAD")) == [
        ("tests/test_new.py", 2, "always-true")
    ]
    assert places(scanning.scan(root / "tests", [Path()], diff="HEAD"))[0] == ("tests/test_a.py", 12, "todo")


def test_a_test_that_lost_its_assertions_is_told_though_its_first_line_is_the_same(tmp_path: Path) -> None:
    root = repository(tmp_path, {"tests/test_a.py": OLD})
    write(root, {"tests/test_a.py": OLD.replace("    assert x == 1\n", "")})
    assert places(scanning.scan(root, diff="HEAD")) == [("tests/test_a.py", 4, "no-assertion")]


def test_what_is_staged_is_read_from_the_index(tmp_path: Path) -> None:
    root = repository(tmp_path, {"tests/test_a.py": GOOD})
    write(root, {"tests/test_a.py": GOOD + "# TODO: staged\n", "tests/test_b.py": BAD})
    git(root, "add", "tests/test_a.py")
    write(root, {"tests/test_a.py": GOOD + "\n# TODO: not staged\n"})
    (issue,) = scanning.scan(root, staged=True).issues
    assert (issue.line, issue.snippet) == (3, "# TODO: staged")


def test_odd_names_binaries_modes_and_links_do_not_confuse_a_diff(tmp_path: Path) -> None:
    odd: dict[str, str | bytes] = {
        "test_a b.py": GOOD,
        "test_\u00e9\t'\".py": GOOD,
        "test_new\nline.py": GOOD,
        "x.bin": b"\0",
        "l.py": GOOD,
    }
    root = repository(tmp_path, odd)
    write(root, {name: BAD for name in odd if name != "x.bin"} | {"x.bin": b"\0\0"})
    (root / "l.py").unlink()
    (root / "l.py").symlink_to("test_a b.py")
    (root / "test_a b.py").chmod(0o755)
    found = scanning.scan(root, diff="HEAD")
    assert [issue.path for issue in found.issues] == [
        "test_a b.py",
        "test_new\nline.py",
        "test_\u00e9\t'\".py",
    ]
    git(root, "add", "--all")
    assert [issue.path for issue in scanning.scan(root, staged=True).issues] == [
        issue.path for issue in found.issues
    ]


def test_a_linked_worktree_has_its_own_head_and_index(tmp_path: Path) -> None:
    root = repository(tmp_path / "main", {"test_a.py": GOOD})
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "-q", "-b", "other", str(linked))
    commit(linked, {"test_a.py": BAD})
    assert scanning.scan(linked, diff="HEAD").issues == ()
    write(linked, {"test_b.py": BAD})
    git(linked, "add", "test_b.py")
    assert places(scanning.scan(linked, staged=True)) == [("test_b.py", 2, "always-true")]
    assert places(scanning.scan(linked, diff="HEAD~1")) == [
        ("test_a.py", 2, "always-true"),
        ("test_b.py", 2, "always-true"),
    ]


def test_a_diff_needs_git_and_a_revision_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(NoRepository):
        scanning.scan(tmp_path, diff="HEAD")
    root = repository(tmp_path / "project")
    with pytest.raises(GitFailed, match="nowhere"):
        scanning.scan(root, diff="nowhere")
    with pytest.raises(InvalidInput, match="cannot be had together"):
        scanning.scan(root, diff="HEAD", staged=True)


@pytest.mark.dear
def test_processes_find_what_one_alone_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"tests/test_{number}.py": BAD + "# TODO: x\n" * number for number in range(30)})
    told: list[tuple[int, int]] = []
    alone = scanning.scan(tmp_path, progress=lambda done, total: told.append((done, total)))
    assert told == [(done, 30) for done in range(1, 31)]
    monkeypatch.setattr(scanning, "WORTH_SHARING", 0)
    monkeypatch.setattr(scanning, "_processors", lambda: 2)
    assert scanning.scan(tmp_path) == alone


def test_our_own_code_has_nothing_that_blocks() -> None:
    root = Path(__file__).parents[2]
    found = scanning.scan(root, [root / "src" / "planforge" / "rules", root / "tests" / "rules"])
    assert [issue for issue in found.issues if issue.blocks] == []
    assert found.files > 30


def test_an_empty_git_directory_above_is_no_repository(tmp_path: Path) -> None:
    inner = tmp_path / "project"
    inner.mkdir()
    (tmp_path / ".git").mkdir()
    assert scanning.project_of(inner) == inner
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert scanning.project_of(inner) == tmp_path
