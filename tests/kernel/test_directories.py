"""Directories of any depth, walked and removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planforge.kernel import directories


def test_a_directory_goes_whatever_is_in_it(tmp_path: Path) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "inner" / "file").write_text("it stays\n")
    (top / "a" / "b" / "c").mkdir(parents=True)
    (top / "a" / "c").mkdir()
    (top / "a" / "b" / "file").write_text("it goes\n")
    (top / "a" / "link").symlink_to(outside)
    (top / "a" / "b").chmod(0o500)
    os.mkfifo(top / "a" / "pipe")
    directories.remove(top)
    assert not top.exists()
    assert (outside / "inner" / "file").read_text() == "it stays\n"


def test_a_link_is_not_taken_for_a_directory(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        directories.remove(tmp_path / "link")


def test_names_come_in_order_and_what_is_taken_out_is_not_walked(tmp_path: Path) -> None:
    for name in ("a/x", "b/y", "c/z"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "link").symlink_to(tmp_path)
    seen = []
    for place, names, others in directories.walk(tmp_path):
        names[:] = sorted(name for name in names if name != "b")
        seen.append((Path(place).relative_to(tmp_path).as_posix(), others))
    assert seen == [(".", []), ("a", ["link"]), ("a/x", []), ("c", []), ("c/z", [])]


def test_a_directory_that_cannot_be_listed_is_told(tmp_path: Path) -> None:
    told: list[OSError] = []
    assert not list(directories.walk(tmp_path / "nowhere", told.append))
    assert isinstance(told[0], FileNotFoundError)
