"""Merges of real commits without a work tree, and conflicts foreseen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planforge.errors import GitFailed
from planforge.kernel.effects import Merged
from planforge.workspace.git import Git
from planforge.workspace.landing import merges
from planforge.workspace.landing.merges import Work
from repositories import DATE, commit, empty_repository, fingerprint, git, repository, trap

LINES = "".join(f"{number}\n" for number in range(9))
FILES = {"a.txt": LINES, "b.txt": LINES, "d/c.txt": LINES}


def changed(number: int, text: str) -> str:
    return LINES.replace(f"{number}\n", f"{text}\n")


class Sides:
    """A repository and two branches of it."""

    def __init__(self, place: Path, *, object_format: str = "sha1") -> None:
        self.place = repository(place, FILES, object_format=object_format)
        self.git = Git.find(place)
        self.base = git(place, "rev-parse", "HEAD")

    def side(self, name: str, files: dict[str, str], *, start: str = "", remove: tuple[str, ...] = ()) -> str:
        """A commit that changes these files, on a branch of its own."""
        git(self.place, "checkout", "--quiet", "-B", name, start or self.base)
        for path in remove:
            git(self.place, "rm", "--quiet", path)
        made = commit(self.place, files, f"{name} changes it")
        git(self.place, "checkout", "--quiet", "main")
        return made

    def merge(self, ours: str, theirs: str, *, label: str = "plan-001.land", base: str = "") -> Merged:
        return merges.merge(
            self.git, ours, theirs, message="Land\n", run="run-009", label=label, at=DATE, base=base
        )

    def show(self, what: str) -> str:
        return git(self.place, "show", what) + "\n"


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    return Sides(tmp_path / "place")


def test_a_merge_has_both_sides_as_parents_and_both_changes_and_is_kept(sides: Sides) -> None:
    ours, theirs = (
        sides.side("ours", {"a.txt": changed(0, "ours")}),
        sides.side("theirs", {"a.txt": changed(8, "theirs")}),
    )
    before = fingerprint(sides.place)
    merged = sides.merge(ours, theirs)
    assert (merged.clean, merged.conflicts) == (True, ())
    assert git(sides.place, "rev-parse", f"{merged.commit}^1", f"{merged.commit}^2").split() == [ours, theirs]
    assert sides.show(f"{merged.commit}:a.txt") == changed(0, "ours").replace("8\n", "theirs\n")
    assert merged.archive == "refs/planforge/archive/run-009/plan-001.land"
    assert git(sides.place, "rev-parse", merged.archive) == merged.commit
    assert fingerprint(sides.place) == before


def test_the_same_merge_again_is_the_same_commit_under_the_same_name(sides: Sides) -> None:
    ours, theirs = (
        sides.side("ours", {"a.txt": changed(0, "ours")}),
        sides.side("theirs", {"b.txt": changed(8, "theirs")}),
    )
    assert sides.merge(ours, theirs) == sides.merge(ours, theirs)
    other = sides.merge(theirs, ours)
    assert other.archive.endswith("/plan-001.land.2")


def test_a_conflict_has_all_three_contents_and_marks_them_in_a_commit_that_is_kept(sides: Sides) -> None:
    ours, theirs = (
        sides.side("ours", {"a.txt": changed(4, "ours")}),
        sides.side("theirs", {"a.txt": changed(4, "theirs")}),
    )
    merged = sides.merge(ours, theirs)
    assert not merged.clean
    (conflict,) = merged.conflicts
    assert conflict.path == "a.txt"
    contents = [sides.show(blob) for blob in (conflict.base, conflict.ours, conflict.theirs)]
    assert contents == [LINES, changed(4, "ours"), changed(4, "theirs")]
    assert merged.archive == "refs/planforge/archive/run-009/plan-001.land.conflict"
    marked = sides.show(f"{merged.archive}:a.txt")
    assert [line[:7] for line in marked.splitlines() if line[0] in "<|=>"] == [
        "<<<<<<<",
        "|||||||",
        "=======",
        ">>>>>>>",
    ]
    assert git(sides.place, "rev-parse", f"{merged.archive}^1", f"{merged.archive}^2").split() == [
        ours,
        theirs,
    ]


def test_a_side_that_has_no_such_file_has_no_content(sides: Sides) -> None:
    gone = sides.side("gone", {}, remove=("a.txt",))
    kept = sides.side("kept", {"a.txt": changed(4, "kept")})
    (deleted,) = sides.merge(gone, kept).conflicts
    assert (deleted.path, deleted.ours) == ("a.txt", "")
    assert sides.show(deleted.theirs) == changed(4, "kept")
    one, two = sides.side("one", {"new.txt": "one\n"}), sides.side("two", {"new.txt": "two\n"})
    (added,) = sides.merge(one, two).conflicts
    assert (added.path, added.base) == ("new.txt", "")
    assert [sides.show(added.ours), sides.show(added.theirs)] == ["one\n", "two\n"]


def test_a_file_that_one_side_renamed_takes_the_change_of_the_other(sides: Sides) -> None:
    renamed = sides.side("renamed", {"z.txt": LINES}, remove=("a.txt",))
    changes = sides.side("changes", {"a.txt": changed(4, "changed")})
    merged = sides.merge(renamed, changes)
    assert merged.clean
    assert sides.show(f"{merged.commit}:z.txt") == changed(4, "changed")


def test_sides_that_have_merged_each_other_before_are_merged(sides: Sides) -> None:
    one, two = (
        sides.side("one", {"a.txt": changed(0, "one")}),
        sides.side("two", {"a.txt": changed(8, "two")}),
    )
    crossed = [sides.merge(one, two).commit, sides.merge(two, one, label="other").commit]
    tips = [
        sides.side("left", {"b.txt": changed(0, "left")}, start=crossed[0]),
        sides.side("right", {"b.txt": changed(8, "right")}, start=crossed[1]),
    ]
    assert len(git(sides.place, "merge-base", "--all", *tips).split()) == 2
    merged = sides.merge(*tips, label="criss-cross")
    assert merged.clean
    assert sides.show(f"{merged.commit}:a.txt") == changed(0, "one").replace("8\n", "two\n")
    assert sides.show(f"{merged.commit}:b.txt") == changed(0, "left").replace("8\n", "right\n")


def test_a_base_can_be_given(sides: Sides) -> None:
    ours = sides.side("ours", {"a.txt": changed(4, "ours")})
    theirs = sides.side("theirs", {"a.txt": changed(4, "ours"), "b.txt": changed(4, "theirs")}, start=ours)
    back = sides.side("back", {"a.txt": LINES}, start=ours)
    # Against what they have in common, one side has taken the change back; against the first commit it
    # never made one.
    assert sides.show(f"{sides.merge(back, theirs).commit}:a.txt") == LINES
    given = sides.merge(back, theirs, base=sides.base, label="given")
    assert sides.show(f"{given.commit}:a.txt") == changed(4, "ours")
    assert git(sides.place, "rev-parse", f"{given.commit}^1", f"{given.commit}^2").split() == [back, theirs]


def test_a_repository_with_long_hashes(tmp_path: Path) -> None:
    sides = Sides(tmp_path / "place", object_format="sha256")
    ours, theirs = (
        sides.side("ours", {"a.txt": changed(4, "ours")}),
        sides.side("theirs", {"a.txt": changed(4, "theirs")}),
    )
    (conflict,) = sides.merge(ours, theirs).conflicts
    assert len(conflict.theirs) == 64
    assert sides.show(conflict.theirs) == changed(4, "theirs")


def test_names_that_are_no_text_are_told(tmp_path: Path) -> None:
    place = empty_repository(tmp_path / "place")
    names = ["sp ace", "new\nline", os.fsdecode(b"\xff.txt")]
    commit(place, dict.fromkeys(names, "one\n"))
    base = git(place, "rev-parse", "HEAD")
    ours = commit(place, dict.fromkeys(names, "ours\n"))
    git(place, "checkout", "--quiet", "--detach", base)
    theirs = commit(place, dict.fromkeys(names, "theirs\n"))
    found = merges.attempt(Git.find(place), ours, theirs)
    assert [conflict.path for conflict in found.conflicts] == ["\\xff.txt", "new\nline", "sp ace"]
    assert merges.changed(Git.find(place), base, ours) == {"\\xff.txt", "new\nline", "sp ace"}


def test_histories_without_anything_in_common_are_refused(sides: Sides) -> None:
    alone = sides.git.commit_tree(sides.git.tree_of(sides.base), [], "alone\n", DATE)
    with pytest.raises(GitFailed, match="unrelated histories"):
        sides.merge(sides.base, alone)


def test_a_merge_driver_that_a_plan_asks_for_is_not_run(sides: Sides, tmp_path: Path) -> None:
    program, mark = trap(tmp_path)
    git(sides.place, "config", "merge.sly.driver", f"{program} %O %A %B")
    ours = sides.side("ours", {"a.txt": changed(4, "ours"), ".gitattributes": "*.txt merge=sly\n"})
    theirs = sides.side("theirs", {"a.txt": changed(4, "theirs"), ".gitattributes": "*.txt merge=sly\n"})
    assert not sides.merge(ours, theirs).clean
    assert not mark.exists()


# Commits


def test_commits_say_which_plan_and_step_they_are_of(sides: Sides) -> None:
    said = "Land plan-002: Ä title\n\nPlanforge-Run: run-004\nPlanforge-Plan: plan-002\n"
    landed = merges.facts(
        sides.git, sides.git.commit_tree(sides.git.tree_of(sides.base), [sides.base], said, DATE)
    )
    assert (landed.subject, landed.plan, landed.step) == ("Land plan-002: Ä title", "plan-002", "")
    said = "plan-003 phase-1\n\nPlanforge-Run: run-004\nPlanforge-Step: plan-003/phase-1\n"
    step = merges.facts(
        sides.git, sides.git.commit_tree(sides.git.tree_of(sides.base), [sides.base], said, DATE)
    )
    assert (step.plan, step.step, step.parents) == ("plan-003", "phase-1", (sides.base,))
    theirs = merges.facts(sides.git, sides.base)
    assert (theirs.parents, theirs.subject, theirs.author, theirs.plan) == ((), "first", "Ada Lovelace", "")


def test_what_came_to_a_branch_is_told_one_first_parent_after_the_other(sides: Sides) -> None:
    theirs = sides.side("theirs", {"b.txt": changed(0, "theirs")})
    one = sides.side("one", {"a.txt": changed(0, "one")})
    two = sides.merge(one, theirs).commit
    three = sides.side("three", {"a.txt": changed(0, "three")}, start=two)
    assert merges.commits(sides.git, [sides.base], three) == (one, two, three)
    assert merges.commits(sides.git, [one], three) == (two, three)
    assert merges.commits(sides.git, [theirs, one], one) == ()
    assert set(merges.beyond(sides.git, three, sides.base)) == {one, two, three, theirs}


# Conflicts foreseen


def test_only_pairs_that_touch_the_same_path_are_merged(sides: Sides) -> None:
    items = [
        Work("plan-001", sides.side("one", {"a.txt": changed(4, "one")})),
        Work("plan-002", sides.side("two", {"a.txt": changed(4, "two")})),
        Work("plan-003/phase-1", sides.side("three", {"a.txt": changed(0, "three")})),
        Work("plan-004", sides.side("four", {"b.txt": changed(4, "four")})),
        Work("plan-005", sides.base),
    ]
    before = fingerprint(sides.place)
    probed = merges.probe(sides.git, "main", sides.base, items)
    assert probed.items == tuple(item.name for item in items)
    assert probed.merges == 3
    assert [(found.one, found.other, found.paths) for found in probed.conflicts] == [
        ("plan-001", "plan-002", ("a.txt",))
    ]
    assert fingerprint(sides.place) == before


def test_work_that_conflicts_with_the_branch_is_told(sides: Sides) -> None:
    item = Work("plan-001", sides.side("one", {"a.txt": changed(4, "one"), "b.txt": changed(4, "one")}))
    onto = sides.side("onto", {"a.txt": changed(4, "onto"), "d/c.txt": changed(4, "onto")})
    probed = merges.probe(sides.git, "main", onto, [item])
    assert [(found.one, found.other, found.paths) for found in probed.conflicts] == [
        ("plan-001", "main", ("a.txt",))
    ]


def test_work_that_is_built_on_other_work_does_not_conflict_with_it(sides: Sides) -> None:
    one = sides.side("one", {"a.txt": changed(4, "one")})
    two = sides.side("two", {"a.txt": changed(4, "two")}, start=one)
    probed = merges.probe(sides.git, "main", sides.base, [Work("one", one), Work("two", two)])
    assert (probed.conflicts, probed.merges) == ((), 0)


def test_a_file_where_another_has_a_directory_is_in_conflict(sides: Sides) -> None:
    items = [
        Work("one", sides.side("one", {"new": "a file\n"})),
        Work("two", sides.side("two", {"new/file": "x\n"})),
    ]
    probed = merges.probe(sides.git, "main", sides.base, items)
    assert probed.merges == 1
    assert len(probed.conflicts) == 1


def test_a_probe_is_bounded_and_says_what_it_left_out(sides: Sides) -> None:
    items = [
        Work(name, sides.side(name, {"a.txt": changed(4, name)})) for name in ("one", "two", "three", "four")
    ]
    probed = merges.probe(sides.git, "main", sides.base, items, most=2)
    assert (probed.merges, probed.left_out, len(probed.conflicts)) == (2, 4, 2)
