"""An agent that asks before it does something is answered from its role and its leases."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from planforge.agents.protocol import ToolRequest
from planforge.app.agents.permissions import KEPT, Permissions
from planforge.kernel.effects import Access, ToolUse


def asking(
    place: Path, access: Access = Access.WRITE, leased: tuple[str, ...] | None = ("src/app.py", "tests/**")
) -> Permissions:
    (place / "tree").mkdir(exist_ok=True)
    (place / "home").mkdir(exist_ok=True)
    return Permissions("a", access, cwd=place / "tree", own=[place / "home"], leased=leased)


def may(permissions: Permissions, kind: str, *paths: str) -> bool:
    return asyncio.run(permissions(ToolRequest(kind=kind, title="do it", paths=paths)))


@pytest.mark.parametrize("access", Access)
@pytest.mark.parametrize("kind", ["read", "search", "think", "fetch"])
def test_everybody_may_read(tmp_path: Path, access: Access, kind: str) -> None:
    assert may(asking(tmp_path, access), kind, "/etc/hosts")


@pytest.mark.parametrize("kind", ["edit", "delete", "move", "execute", "switch_mode", "other", "nonsense"])
def test_whoever_reads_may_do_nothing_else(tmp_path: Path, kind: str) -> None:
    assert not may(asking(tmp_path, Access.READ, None), kind)
    assert not may(asking(tmp_path, Access.READ, None), kind, "src/app.py")


def test_whoever_changes_files_may_run_programs(tmp_path: Path) -> None:
    assert may(asking(tmp_path), "execute")


@pytest.mark.parametrize("kind", ["switch_mode", "other", "nonsense"])
def test_what_no_role_allows_is_denied_to_whoever_changes_files_too(tmp_path: Path, kind: str) -> None:
    assert not may(asking(tmp_path), kind)


def test_only_what_is_leased_may_be_changed(tmp_path: Path) -> None:
    permissions = asking(tmp_path)
    assert may(permissions, "edit", "src/app.py")
    assert may(permissions, "edit", str(tmp_path / "tree" / "tests" / "deep" / "test_x.py"))
    assert not may(permissions, "edit", "src/other.py")
    assert not may(permissions, "edit", "src/app.py", "src/other.py")
    assert not may(permissions, "delete", "README.md")


@pytest.mark.parametrize("leased", [("**",), None])
@pytest.mark.parametrize("path", ["../elsewhere.py", "/etc/passwd", "src/../../x"])
def test_nothing_outside_of_the_worktree_may_be_changed(
    tmp_path: Path, leased: tuple[str, ...] | None, path: str
) -> None:
    assert not may(asking(tmp_path, leased=leased), "edit", path)


def test_the_worktree_itself_is_no_file_that_could_be_leased(tmp_path: Path) -> None:
    assert not may(asking(tmp_path, leased=("**",)), "delete", ".")


def test_a_link_that_leads_out_of_the_worktree_is_followed(tmp_path: Path) -> None:
    permissions = asking(tmp_path, leased=None)
    (tmp_path / "tree" / "out").symlink_to(tmp_path)
    assert not may(permissions, "edit", "out/x.py")


def test_an_agent_may_do_as_it_likes_at_home(tmp_path: Path) -> None:
    assert may(asking(tmp_path, Access.READ), "edit", str(tmp_path / "home" / "notes.md"))
    assert not may(asking(tmp_path, Access.READ), "edit", str(tmp_path / "home" / "n"), "src/app.py")


def test_without_a_lease_all_of_the_worktree_may_be_changed(tmp_path: Path) -> None:
    assert may(asking(tmp_path, leased=None), "edit", "anything.py")


def test_the_person_is_asked_only_about_what_the_role_does_not_allow(tmp_path: Path) -> None:
    asked: list[str] = []

    async def person(question: str) -> bool:
        asked.append(question)
        return "README" in question

    permissions = Permissions("a", Access.WRITE, cwd=tmp_path, leased=("src/app.py",), person=person)
    assert may(permissions, "edit", "src/app.py")
    assert asked == []
    request = ToolRequest(kind="edit", title="README.md", paths=("README.md",))
    assert asyncio.run(permissions(request))
    assert asked == ["agent `a` wants to edit: README.md (`README.md` is not leased to it). Allow it?"]
    assert not may(permissions, "other")


def test_every_answer_is_on_record_the_last_ones_one_by_one(tmp_path: Path) -> None:
    assert asking(tmp_path).answered == ()
    permissions = asking(tmp_path)
    may(permissions, "edit", "src/app.py")
    may(permissions, "edit", "nope.py")
    assert permissions.answered == (
        ToolUse(kind="edit", title="do it", status="allowed"),
        ToolUse(kind="edit", title="do it", status="denied"),
    )
    for _ in range(KEPT):
        may(permissions, "execute")
    summary, *last = permissions.answered
    assert summary.title == f"asked for permission: {KEPT + 1} allowed, 1 denied"
    assert len(last) == KEPT
