"""A finished plan as a pull request: what is pushed, what is said, what is refused, what is on record."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from planforge.app.plans import pull_requests
from planforge.app.plans.pull_requests import PullRequest
from planforge.app.project import Project
from planforge.errors import (
    AgentUnauthenticated,
    AgentUnavailable,
    GitFailed,
    InvalidInput,
    NotFound,
    PlanforgeError,
    RefusedByGate,
)
from planforge.interfaces.cli.typed import text
from planforge.kernel.events import PullRequestOpened
from planforge.workspace.landing import remotes
from planforge.workspace.launch import trees
from pulls import Proposals
from repositories import commit, git

ADA = "Ada <ada@example.org>"
BRANCH = "refs/heads/planforge/plan-001"

PASSWORD = "s3cret" + "-t0ken"


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proposals:
    made = Proposals(tmp_path)
    monkeypatch.setenv("PATH", made.path)
    return made


def opened(at: Proposals, plan: str = "1", **more: str) -> PullRequest:
    # As the command finds it: what was configured since is known.
    return pull_requests.open_(Project(at.field.root), plan, actor=ADA, **more)


def test_a_finished_plan_is_pushed_as_it_is_and_proposed_with_its_evidence(at: Proposals) -> None:
    plan = at.field.plan({"x.txt": "one\n"})
    made = opened(at)
    assert (made.opened, made.url) == (True, "https://example.org/a/b/pull/1")
    assert at.there()[BRANCH] == at.field.tip(plan) == made.commit
    (pull,) = at.told["pulls"]
    assert (pull["title"], pull["baseRefName"]) == ("Change plan-001", "main")
    assert pull["body"] == made.body
    assert "1 of 1 test passed" in made.body
    assert at.field.git.tree_of(made.commit) in made.body
    (event,) = at.field.recorded(PullRequestOpened)
    assert (event.plan, event.url, event.branch, event.commit, event.actor, event.base) == (
        *(plan, made.url, "planforge/plan-001", made.commit, ADA, "main"),
    )


def test_a_second_time_nothing_is_changed_and_the_address_is_said(at: Proposals) -> None:
    at.field.plan({"x.txt": "one\n"})
    first = opened(at)
    before = at.there()
    pulls = at.told["pulls"]
    pulls[0]["headRefOid"] = first.commit
    at.tell(pulls=pulls, asked=[])
    second = opened(at)
    assert (second.opened, second.url, second.differs) == (False, first.url, "")
    assert [words[:2] for words in at.told["asked"]] == [["pr", "list"]]
    assert at.there() == before
    assert len(at.field.recorded(PullRequestOpened)) == 1


def test_one_that_was_opened_before_it_could_be_recorded_is_recorded_then(at: Proposals) -> None:
    plan = at.field.plan({"x.txt": "one\n"})
    pull = {
        "url": "https://example.org/a/b/pull/9",
        "baseRefName": "main",
        "headRefOid": at.field.tip(plan),
        "head": f"planforge/{plan}",
    }
    at.tell(pulls=[pull])
    assert not opened(at).opened
    assert [event.url for event in at.field.recorded(PullRequestOpened)] == [pull["url"]]
    pull["headRefOid"] = "f" * 40
    pull["url"] = "https://example.org/a/b/pull/10"
    at.tell(pulls=[pull])
    assert opened(at).differs == "f" * 40
    assert len(at.field.recorded(PullRequestOpened)) == 1


def test_without_gh_or_without_a_login_nothing_is_pushed(
    at: Proposals, monkeypatch: pytest.MonkeyPatch
) -> None:
    at.field.plan({"x.txt": "one\n"})
    at.tell(login="none")
    with pytest.raises(AgentUnauthenticated, match="not logged in") as refused:
        opened(at)
    assert (refused.value.exit_code, refused.value.hint) == (4, "run `gh auth login`")
    only_git = at.programs.parent / "only-git"
    only_git.mkdir()
    (only_git / "git").symlink_to(str(shutil.which("git")))
    monkeypatch.setenv("PATH", str(only_git))
    with pytest.raises(AgentUnavailable, match="`gh` is not installed") as missing:
        opened(at)
    assert missing.value.exit_code == 4
    assert BRANCH not in at.there()
    assert at.field.recorded(PullRequestOpened) == []


def test_a_plan_that_may_not_land_is_not_proposed(at: Proposals) -> None:
    at.field.plan({"x.txt": "one\n"}, ended=False)
    at.field.plan({"y.txt": "one\n"}, approved=False)
    at.field.plan({"z.txt": "one\n"}, passed=False)
    foreign = at.field.plan({"v.txt": "one\n"})
    tip = at.field.commit({"w.txt": "mine\n"}, at.field.tip(foreign), "mine")
    git(at.field.root, "update-ref", f"refs/heads/planforge/{foreign}", tip)
    for plan, why in (
        ("1", "being carried out"),
        ("2", "under no approval"),
        ("3", "no evidence that passed"),
        ("4", "which Planforge did not make"),
    ):
        with pytest.raises(RefusedByGate, match=why) as refused:
            opened(at, plan)
        assert refused.value.exit_code == 5
    assert at.told["asked"] == []
    assert list(at.there()) == ["refs/heads/main"]


def test_a_branch_that_has_other_commits_there_is_left_alone(at: Proposals) -> None:
    plan = at.field.plan({"x.txt": "one\n"})
    other = at.field.commit({"q.txt": "theirs\n"}, "main", "theirs")
    git(at.field.root, "push", "--quiet", "origin", f"{other}:{BRANCH}")
    with pytest.raises(RefusedByGate, match="which has other commits"):
        opened(at)
    assert at.there()[BRANCH] == other
    assert at.told["pulls"] == []
    git(at.field.root, "push", "--quiet", "--force", "origin", f"main:{BRANCH}")
    assert opened(at).opened
    assert at.there()[BRANCH] == at.field.tip(plan)


def test_the_push_itself_is_never_forced(at: Proposals) -> None:
    plan = at.field.plan({"x.txt": "one\n"})
    other = at.field.commit({"q.txt": "theirs\n"}, "main", "theirs")
    git(at.field.root, "push", "--quiet", "origin", f"{other}:{BRANCH}")
    project = Project(at.field.root)
    with pytest.raises(RefusedByGate, match="did not take it"):
        remotes.push(
            project.git, remotes.remote(project.git, "origin"), at.field.tip(plan), f"planforge/{plan}"
        )
    assert at.there()[BRANCH] == other


def test_it_is_proposed_also_where_the_base_has_moved_on_there(at: Proposals, tmp_path: Path) -> None:
    plan = at.field.plan({"x.txt": "one\n"})
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(at.origin), str(clone))
    git(clone, "config", "user.name", "Bob")
    git(clone, "config", "user.email", "bob@example.org")
    commit(clone, {"new.txt": "theirs\n"}, "theirs")
    git(clone, "push", "--quiet", "origin", "main")
    assert opened(at).opened
    assert at.there()[BRANCH] == at.field.tip(plan)


def test_commits_of_the_base_that_are_not_there_do_not_go_along(at: Proposals) -> None:
    commit(at.field.root, {"mine.txt": "not pushed\n"}, "mine, not pushed")
    at.field.plan({"x.txt": "one\n"})
    with pytest.raises(RefusedByGate, match=r"mine, not pushed\), which `main` does not have"):
        opened(at)
    assert BRANCH not in at.there()
    git(at.field.root, "push", "--quiet", "origin", "main")
    assert opened(at).opened


def test_a_plan_that_is_built_on_another_waits_for_it(at: Proposals) -> None:
    first = at.field.plan({"x.txt": "one\n"})
    at.field.plan({"y.txt": "two\n"}, base=at.field.tip(first))
    with pytest.raises(RefusedByGate, match="built on `plan-001`"):
        opened(at, "2")


def test_without_the_remote_or_its_base_it_is_said_what_is_missing(at: Proposals) -> None:
    at.field.plan({"x.txt": "one\n"})
    with pytest.raises(NotFound, match="no remote `upstream`; there are `origin`"):
        opened(at, remote="upstream")
    git(at.field.root, "branch", "release")
    with pytest.raises(NotFound, match="`origin` has no branch `release`"):
        opened(at, onto="release")
    git(at.field.root, "remote", "remove", "origin")
    with pytest.raises(NotFound, match="no remote `origin`") as refused:
        opened(at)
    assert text(refused.value.hint) == "run `git remote add origin URL`"


@pytest.mark.parametrize("url", ["ext::sh -c 'touch pwned'", "git://example.org/a", "http://example.org/a"])
def test_an_address_that_names_a_program_or_speaks_in_the_clear_is_refused(at: Proposals, url: str) -> None:
    at.field.plan({"x.txt": "one\n"})
    git(at.field.root, "remote", "set-url", "origin", url)
    with pytest.raises(InvalidInput):
        opened(at)


def test_nothing_that_the_repository_names_is_run(at: Proposals) -> None:
    at.field.plan({"x.txt": "one\n"})
    trap, sprung = at.programs / "trap", at.programs / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    trap.chmod(0o755)
    hooks = at.field.root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    shutil.copy(trap, hooks / "pre-push")
    for name in ("core.sshCommand", "credential.helper", "remote.origin.receivepack", "core.fsmonitor"):
        git(at.field.root, "config", name, str(trap))
    assert opened(at).opened
    assert not sprung.exists()
    at.tell(pulls=[])
    ssh = at.programs / "ssh"
    ssh.write_text("#!/bin/sh\necho 'ada@127.0.0.1: Permission denied (publickey).' >&2\nexit 255\n")
    ssh.chmod(0o755)
    git(at.field.root, "remote", "set-url", "origin", "ssh://ada@127.0.0.1/a/b.git")
    with pytest.raises(AgentUnauthenticated, match="wants you to log in") as refused:
        opened(at)
    assert refused.value.exit_code == 4
    assert not sprung.exists()


def test_no_tags_go_along(at: Proposals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = at.field.plan({"x.txt": "one\n"})
    git(at.field.root, "tag", "-a", "v1", "-m", "v1", f"planforge/{plan}")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[push]\n\tfollowTags = true\n")
    monkeypatch.setenv("HOME", str(home))
    opened(at)
    assert sorted(at.there()) == ["refs/heads/main", BRANCH]


def test_a_repository_that_cannot_be_reached_is_told_without_its_login(at: Proposals) -> None:
    at.field.plan({"x.txt": "one\n"})
    git(at.field.root, "remote", "set-url", "origin", f"https://ada:{PASSWORD}@127.0.0.1:1/a/b.git")
    with pytest.raises(GitFailed) as refused:
        opened(at)
    assert "127.0.0.1:1" in refused.value.message
    assert "s3cret" not in refused.value.message
    assert "s3cret" not in pull_requests.preview(Project(at.field.root), "1").remote


def test_what_gh_refuses_or_says_wrongly_is_an_error_and_not_on_record(at: Proposals) -> None:
    at.field.plan({"x.txt": "one\n"})
    at.tell(login="fails")
    with pytest.raises(NotFound, match="No commits between main and it"):
        opened(at)
    gh = at.programs / "gh"
    gh.write_text("#!/bin/sh\ntest $2 = list && echo '[]' || echo something else\n")
    assert gh.stat().st_mode & stat.S_IXUSR
    with pytest.raises(PlanforgeError, match="did not say where"):
        opened(at)
    gh.write_text("#!/bin/sh\necho '{}'\n")
    with pytest.raises(PlanforgeError, match="no list of pull requests"):
        opened(at)
    assert at.field.recorded(PullRequestOpened) == []


def test_agents_propose_nothing(at: Proposals, monkeypatch: pytest.MonkeyPatch) -> None:
    at.field.plan({"x.txt": "one\n"})
    monkeypatch.setenv(trees.COOKIE, "abc")
    with pytest.raises(RefusedByGate, match="started by Planforge"):
        opened(at)
    assert at.told["asked"] == []


def test_a_preview_asks_nobody_and_changes_nothing(at: Proposals) -> None:
    at.field.plan({"x.txt": "one\n"})
    head = at.field.project.ledger.head()
    drawn = pull_requests.preview(Project(at.field.root), "plan-1")
    assert drawn.url == ""
    assert drawn.remote == os.fspath(at.origin)
    assert at.told["asked"] == []
    assert list(at.there()) == ["refs/heads/main"]
    assert at.field.project.ledger.head() == head
