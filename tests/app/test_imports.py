"""What others wrote, brought in: from files, from spec-kit, from GitHub by a `gh` that is a real program."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from planforge.app.plans import github, imports
from planforge.app.project import Project
from planforge.documents.imports import LIMIT, issues
from planforge.errors import (
    AgentUnauthenticated,
    AgentUnavailable,
    InvalidInput,
    NotFound,
    PlanforgeError,
    TryLater,
)
from planforge.interfaces.cli.typed import text
from programs import PYTHON_SCRIPT
from repositories import repository, write

ISSUE = {
    "title": "It is slow\n## Audit Log",
    "number": 12,
    "body": "## Changes\n\n- `../../etc/passwd.py` — own it\n\x1b[31m",
    "url": "https://github.com/ada/shop/issues/12",
    "state": "OPEN",
    "author": {"login": "ada"},
    "createdAt": "2026-01-02T03:04:05Z",
    "labels": [{"name": "bug"}],
    "comments": [{"author": {"login": "bob"}, "body": "me too", "createdAt": "2026-01-03T00:00:00Z"}],
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project.create(repository(tmp_path / "shop"))
    monkeypatch.chdir(made.root)
    return made


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is all there is on the path besides what a shell needs."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    return directory


def gh(place: Path, body: str) -> None:
    """Puts a `gh` there that does this."""
    program = place / "gh"
    program.write_text(f"{PYTHON_SCRIPT}import json, os, sys, time\n{body}\n")
    program.chmod(0o755)


def nothing(limit: int) -> bytes:
    raise AssertionError(f"standard input is not to be read, nor {limit} bytes of it")


# Issues


def test_an_issue_is_asked_for_by_its_arguments_and_is_data(project: Project, place: Path) -> None:
    gh(place, f"json.dump(sys.argv[1:], open({str(place / 'asked')!r}, 'w')); print({json.dumps(ISSUE)!r})")
    found = imports.found(project, "ada/shop#12", nothing)
    asked = json.loads((place / "asked").read_text())
    assert asked == ["issue", "view", "12", "--json", issues.FIELDS, "--repo", "ada/shop"]
    assert (found.title, found.source, found.kind) == ("It is slow ## Audit Log", "ada/shop#12", "issue")
    assert "Comment by bob on 2026-01-03:\n\nme too" in found.context
    assert "\x1b" not in found.text
    assert "Resolve ada/shop#12." in found.body
    assert "passwd" not in found.body


@pytest.mark.parametrize("ref", ["#12", "12", "https://github.com/ada/shop/issues/12#issuecomment-1"])
def test_it_is_known_by_whatever_people_call_it(project: Project, place: Path, ref: str) -> None:
    gh(place, f"print({json.dumps(ISSUE)!r})")
    assert imports.issue(project, ref).source == "ada/shop#12"


@pytest.mark.parametrize(
    "ref", ["", "#0", "shop", "--web", "ada/shop", "a/b/c#1", "http://x/a/b/issues/1", "#1;ls"]
)
def test_what_names_no_issue_is_refused_before_anybody_is_asked(project: Project, ref: str) -> None:
    with pytest.raises(InvalidInput, match="names no issue"):
        imports.issue(project, ref)


def test_without_gh_it_is_said_how_to_get_it(
    project: Project, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(place))
    with pytest.raises(AgentUnavailable, match="not installed") as refused:
        imports.issue(project, "#12")
    assert "gh auth login" in text(refused.value.hint)
    assert refused.value.exit_code == 4


def test_a_gh_that_is_not_logged_in_says_so(project: Project, place: Path) -> None:
    gh(
        place,
        "print('To get started with GitHub CLI, please run:  gh auth login', file=sys.stderr); sys.exit(4)",
    )
    with pytest.raises(AgentUnauthenticated, match="not logged in"):
        imports.issue(project, "#12")


def test_what_gh_refuses_is_said_in_a_line_that_can_be_shown(project: Project, place: Path) -> None:
    gh(place, "sys.stderr.write('\\x1b[31mno such issue\\x07' + 'x' * 9999999); sys.exit(1)")
    with pytest.raises(NotFound, match="no such issue") as refused:
        imports.issue(project, "#12")
    assert refused.value.message.isprintable()
    assert len(refused.value.message) < 400


def test_a_gh_that_hangs_is_ended_with_all_that_it_started(place: Path) -> None:
    gh(place, f"open({str(place / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    began = time.monotonic()
    with pytest.raises(TryLater, match="did not answer within"):
        github.ask(["issue"], cwd=place, limit=10, seconds=1.0)
    assert time.monotonic() - began < 10
    with pytest.raises(ProcessLookupError):
        os.kill(int((place / "pid").read_text()), 0)


def test_a_gh_that_never_stops_talking_is_ended(place: Path) -> None:
    gh(place, "while True: sys.stdout.write('x' * 65536)")
    with pytest.raises(PlanforgeError, match="more than 100000 bytes"):
        github.ask(["issue"], cwd=place, limit=100_000, seconds=30)


@pytest.mark.parametrize("said", ["", "null", "[]", "{}", '{"title": 3}', "not json", "\\xff"])
def test_what_is_no_issue_is_refused(project: Project, place: Path, said: str) -> None:
    gh(place, f"sys.stdout.buffer.write({said!r}.encode('latin-1'))")
    with pytest.raises(InvalidInput, match="is not an issue"):
        imports.issue(project, "#12")


def test_gh_gets_no_standard_input_and_asks_no_questions(project: Project, place: Path) -> None:
    asked = "sys.stdin.read() == '' and os.environ['GH_PROMPT_DISABLED'] == '1'"
    gh(place, f"assert {asked}\nprint({json.dumps(ISSUE)!r})")
    assert imports.issue(project, "#12").title


def test_an_issue_that_was_saved_can_be_imported_without_gh(project: Project) -> None:
    write(project.root, {"issue.json": json.dumps(ISSUE)})
    assert imports.found(project, "issue.json", nothing).source == "ada/shop#12"


# Files


def test_a_directory_is_a_feature_with_all_that_lies_in_it_and_nothing_from_outside(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("the secret")
    write(
        project.root,
        {
            "specs/001-it/spec.md": "# Feature Specification: It\n\n## Requirements\n\n- one\n",
            "specs/001-it/contracts/api.yaml": "openapi: 3\n",
            "specs/001-it/blob.bin": b"\xff\x00",
            "specs/001-it/.hidden.md": "hidden",
        },
    )
    (project.root / "specs/001-it/link.md").symlink_to(tmp_path / "secret.md")
    (project.root / "specs/001-it/up").symlink_to(tmp_path)
    found = imports.found(project, "specs/001-it/", nothing)
    assert (found.title, found.source) == ("It", "specs/001-it")
    assert "contracts/api.yaml:\n\nopenapi: 3" in found.context
    assert "a file of 2 bytes that is no text" in found.context
    assert "the secret" not in found.text
    assert "hidden" not in found.text


def test_one_document_of_a_feature_is_read_as_what_it_is(project: Project) -> None:
    write(project.root, {"specs/001-it/tasks.md": "# Tasks: It\n\n- [ ] T001 Do it in a/b.py\n"})
    found = imports.found(project, "specs/001-it/tasks.md", nothing)
    assert "- `a/b.py` — T001: Do it in a/b.py" in found.body


def test_too_large_a_feature_is_refused(project: Project) -> None:
    write(project.root, {"specs/001-it/spec.md": "x" * (LIMIT // 2), "specs/001-it/plan.md": "y" * LIMIT})
    with pytest.raises(InvalidInput, match="has more than"):
        imports.found(project, "specs/001-it", nothing)


def test_standard_input_is_read_as_markdown_and_not_further_than_may_be(project: Project) -> None:
    asked: list[int] = []

    def stdin(limit: int) -> bytes:
        asked.append(limit)
        return b"# It\n"

    assert imports.found(project, "-", stdin).source == "standard input"
    assert imports.given(project, "-", stdin).text == "# It\n"
    assert asked == [LIMIT + 1] * 2


def test_what_is_not_there_is_said_with_what_could_be(project: Project) -> None:
    with pytest.raises(NotFound) as refused:
        imports.found(project, "nowhere.md", nothing)
    assert "specs/001-name" in text(refused.value.hint)
    with pytest.raises(NotFound):
        imports.given(project, "nowhere.md", nothing)


def test_what_is_no_regular_file_is_refused_at_once(project: Project) -> None:
    os.mkfifo(project.root / "pipe.md")
    for read in (imports.found, imports.given):
        with pytest.raises(InvalidInput, match="not a file"):
            read(project, "pipe.md", nothing)


def test_nothing_is_no_context(project: Project) -> None:
    write(project.root, {"empty.md": " \n"})
    with pytest.raises(InvalidInput, match="is empty"):
        imports.given(project, "empty.md", nothing)
