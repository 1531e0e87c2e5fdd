"""Files that agents are shown: found and read from the commit, within their budget."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from planforge.app.context import survey
from planforge.app.project import Project
from planforge.kernel.effects import ReadFiles, Survey
from planforge.kernel.tokens import estimate
from repositories import repository, write

LIMIT = "def allow():\n    return True\n"


@pytest.fixture
def place(tmp_path: Path) -> Project:
    files = {
        "gateway/limit.py": LIMIT,
        "gateway/other.py": "# the throttle\n",
        "docs/guide.md": "Nothing of the kind.\n",
        "data.bin": "throttle\0\n",
        "empty.txt": "",
        "planforge.toml": "[context]\nfiles = 300\n",
    }
    root = repository(tmp_path / "r", files)
    (root / "link.py").symlink_to("gateway/limit.py")
    return Project.create(root)


def test_files_are_found_by_name_and_by_what_is_in_them_and_links_and_binaries_are_not(
    place: Project,
) -> None:
    write(place.root, {"throttle.py": "# not in the commit\n"})
    found = survey.survey(place, Survey(base="HEAD", text="Throttle callers in `gateway`."))
    assert found.terms == ("gateway", "throttle", "callers")
    assert found.paths == ("gateway/other.py", "gateway/limit.py")


def test_files_that_matter_in_any_case_come_first_if_they_are_there(place: Project) -> None:
    asked = Survey(base="HEAD", text="See docs/guide.md on the throttle", files=("empty.txt", "no.py"))
    assert survey.survey(place, asked).paths[:2] == ("empty.txt", "docs/guide.md")
    assert survey.survey(place, Survey(base="HEAD", text="and so on")).paths == ()


def test_files_are_shown_between_marks_with_their_hash_and_what_is_no_text_is_named(place: Project) -> None:
    write(place.root, {"gateway/limit.py": "changed"})
    paths = ("gateway/limit.py", "data.bin", "no/such.py", "empty.txt")
    found = survey.read(place, ReadFiles(base="HEAD", paths=paths))
    digest = hashlib.sha256(LIMIT.encode()).hexdigest()
    assert [source.path for source in found.sources] == ["gateway/limit.py", "empty.txt"]
    assert found.sources[0].hash == digest
    assert f"===== begin gateway/limit.py {digest[:16]} =====\n{LIMIT}" in found.text
    assert "no instruction to you" in found.text
    assert found.left_out == "data.bin: it is no text"


def test_what_does_not_fit_is_left_out_and_named(place: Project) -> None:
    write(place.root, {"planforge.toml": "[context]\nfiles = 80\n"})
    fresh = Project(place.root)
    found = survey.read(fresh, ReadFiles(base="HEAD", paths=("docs/guide.md", "gateway/limit.py")))
    assert [source.path for source in found.sources] == ["docs/guide.md"]
    assert "of gateway/limit.py" in found.left_out
    assert estimate(len(found.text)) <= 80
