from __future__ import annotations

import hashlib
import os
import resource
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.processes import child
from planforge.errors import LedgerUnreadable, LedgerUnwritable
from planforge.kernel.objects import Objects, address, write_atomically


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(tmp_path / "objects")


def files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


@given(st.binary())
def test_an_address_is_the_hash_of_the_content(content: bytes) -> None:
    assert address(content) == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("content", [b"", b"text", bytes(range(256)) * 5000])
def test_what_was_put_is_what_is_got(objects: Objects, tmp_path: Path, content: bytes) -> None:
    name = objects.put(content)
    assert name == address(content)
    assert objects.get(name) == content
    assert files(tmp_path) == [tmp_path / "objects" / name[:2] / name[2:]]


def test_the_same_content_is_kept_once(objects: Objects, tmp_path: Path) -> None:
    assert objects.put(b"a") == objects.put(b"a")
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("damage", [b"", b"a patc", b"a patch.", b"A patch"])
def test_a_damaged_object_is_noticed_and_never_believed(
    objects: Objects, tmp_path: Path, damage: bytes
) -> None:
    name = objects.put(b"a patch")
    files(tmp_path)[0].write_bytes(damage)
    with pytest.raises(LedgerUnreadable, match=f"object `{name[:12]}` was changed after it was written"):
        objects.get(name)


def test_putting_the_content_again_mends_a_damaged_object(objects: Objects, tmp_path: Path) -> None:
    name = objects.put(b"a patch")
    files(tmp_path)[0].write_bytes(b"a pat")
    assert objects.put(b"a patch") == name
    assert objects.get(name) == b"a patch"


@pytest.mark.parametrize("name", ["f" * 64, "ab", ""])
def test_an_object_that_is_not_there_is_missing(objects: Objects, name: str) -> None:
    with pytest.raises(LedgerUnreadable, match="is missing"):
        objects.get(name)


def test_a_place_that_takes_no_objects_is_reported(tmp_path: Path) -> None:
    (tmp_path / "objects").write_text("in the way")
    with pytest.raises(LedgerUnwritable, match="cannot be written"):
        Objects(tmp_path / "objects").put(b"a patch")


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "plan.md"
    for content in (b"first", b"the second is longer", b""):
        write_atomically(path, content)
        assert path.read_bytes() == content
        assert files(tmp_path) == [path]


def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    kept = tmp_path / "folder" / "kept"
    kept.parent.mkdir()
    kept.touch()
    with pytest.raises(OSError, match="folder"):
        write_atomically(tmp_path / "folder", b"content")
    assert files(tmp_path) == [kept]


def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.md"
    write_atomically(path, b"the old plan")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            write_atomically(path, b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"the old plan"
    assert files(tmp_path) == [path]


def test_kill_9_leaves_whole_objects_only(tmp_path: Path) -> None:
    objects = Objects(tmp_path / "objects")
    for attempt in range(4):
        with child("put_for_ever", tmp_path / "objects") as writer:
            acknowledged = [writer.hear() for _ in range(1 + 3 * attempt)]
            acknowledged += writer.kill()
        for name in acknowledged:
            objects.get(name)
    found = [path for path in files(tmp_path) if not path.name.endswith(".part")]
    assert all(address(path.read_bytes()) == path.parent.name + path.name for path in found)


def test_what_a_killed_process_left_beside_a_file_goes_with_the_next_write(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        gone = process.pid
    left, ours = (tmp_path / f".plan.md.{number}.0badcafe.part" for number in (gone, os.getpid()))
    others = [tmp_path / name for name in (f".other.md.{gone}.0badcafe.part", ".plan.md.notes.of.mine.part")]
    for path in (left, ours, *others):
        path.write_text("half")
    write_atomically(tmp_path / "plan.md", b"whole")
    assert not left.exists()
    assert all(path.exists() for path in (ours, *others)), "what may still be written, or is no part of it"


def test_what_takes_the_place_of_a_file_has_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "login"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)


def test_what_is_no_file_is_missing_and_not_waited_for(objects: Objects, tmp_path: Path) -> None:
    name = objects.put(b"content")
    (path,) = files(tmp_path / "objects")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(LedgerUnreadable, match="is missing"):
        objects.get(name)
