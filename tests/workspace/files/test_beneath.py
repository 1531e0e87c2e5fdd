"""Paths that lead out are refused, also while somebody swaps what they lead through."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from planforge.workspace.files import beneath
from planforge.workspace.files.beneath import Directory

WAYS = ["openat2", "walking"]
LIMIT = 1024
INSIDE, OUTSIDE = b"inside", b"secret"
READS = 4000


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way to open, whatever this machine would choose."""
    if request.param == "walking":
        monkeypatch.setattr(beneath, "has_openat2", lambda: False)
    elif not beneath.has_openat2():
        pytest.skip("this kernel has no openat2")
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path, way: str) -> Path:
    """A directory, with something beside it that must not be read."""
    del way
    (tmp_path / "secret").write_bytes(OUTSIDE)
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").write_bytes(INSIDE)
    return root


@pytest.mark.parametrize("path", ["a/b/file", "./a//b/./file", b"a/b/file"])
def test_what_is_inside_is_read(root: Path, path: str | bytes) -> None:
    assert beneath.read(root, path, LIMIT) == INSIDE


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "a/..", "/etc/passwd", ""])
def test_a_path_that_would_leave_is_refused_as_such(root: Path, path: str) -> None:
    with pytest.raises(OSError, match="leads out") as refused:
        beneath.read(root, path, LIMIT)
    assert refused.value.errno == errno.EXDEV


def test_a_null_byte_is_refused_and_does_not_cut_the_path_short(root: Path) -> None:
    with pytest.raises(OSError, match="null byte"):
        beneath.read(root, "a/b/file\0x", LIMIT)


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("link", "../secret", "link"),
        ("link", "/etc/passwd", "link"),
        ("link", "..", "link/secret"),
        ("link", "/etc", "link/passwd"),
        ("a/link", "../..", "a/link/secret"),
        ("link", "a/b/file", "link"),
        ("link", "a", "link/b/file"),
        ("link", "/proc/self/root", "link/etc/passwd"),
    ],
)
def test_no_link_is_followed_at_the_end_or_on_the_way(root: Path, link: str, target: str, path: str) -> None:
    (root / link).symlink_to(target)
    with pytest.raises(OSError, match="symbolic link") as refused:
        beneath.read(root, path, LIMIT)
    assert refused.value.errno == errno.ELOOP


def test_only_regular_files_are_read_and_a_pipe_keeps_nobody_waiting(root: Path) -> None:
    os.mkfifo(root / "pipe")
    for path in ("pipe", "a"):
        with pytest.raises(OSError, match="regular file"):
            beneath.read(root, path, LIMIT)


def test_a_file_over_the_limit_is_not_read(root: Path) -> None:
    (root / "long").write_bytes(b"x" * (LIMIT + 1))
    with pytest.raises(OSError, match="more than 1024 bytes"):
        beneath.read(root, "long", LIMIT)
    assert len(beneath.read(root, "long", LIMIT + 1)) == LIMIT + 1


def test_what_is_missing_is_missing(root: Path) -> None:
    for path in ("nothing", "a/nothing/file"):
        with pytest.raises(FileNotFoundError):
            beneath.read(root, path, LIMIT)


def test_a_file_can_be_made_inside_and_not_through_a_link(root: Path, tmp_path: Path) -> None:
    (root / "out").symlink_to(tmp_path)
    with Directory.at(root) as directory:
        with directory.make("x/y") as inside, inside.opened("new", os.O_WRONLY | os.O_CREAT, 0o640) as handle:
            os.write(handle, INSIDE)
        with pytest.raises(OSError, match="symbolic link"):
            directory.open("out/new", os.O_WRONLY | os.O_CREAT)
        with pytest.raises(OSError, match="symbolic link"):
            directory.make("out/y")
    assert (root / "x" / "y" / "new").read_bytes() == INSIDE
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "y").exists()


def swapping(root: Path, outside: Path, ended: threading.Event) -> None:
    """Make `root/d` a directory and a link to the outside by turns, for as long as it is wanted."""
    kept, link = root / "kept", root / "link"
    link.symlink_to(outside)
    while not ended.is_set():
        (root / "d").rename(kept)
        link.rename(root / "d")
        (root / "d").rename(link)
        kept.rename(root / "d")


@pytest.fixture
def swapped(root: Path, tmp_path: Path) -> Iterator[Path]:
    """A directory in which `d/file` leads out and in by turns, many times a millisecond."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(OUTSIDE)
    (root / "d").mkdir()
    (root / "d" / "file").write_bytes(INSIDE)
    ended = threading.Event()
    thread = threading.Thread(target=swapping, args=(root, outside, ended))
    thread.start()
    yield root
    ended.set()
    thread.join()


def test_a_directory_swapped_for_a_link_while_it_is_read_gives_nothing_away(swapped: Path) -> None:
    seen: list[bytes] = []
    refused = set()
    for number in range(50 * READS):
        if number >= READS and seen:  # on a busy machine the directory may be away for long
            break
        try:
            seen.append(beneath.read(swapped, "d/file", LIMIT))
        except OSError as error:
            refused.add(error.errno)
    assert set(seen) == {INSIDE}
    assert refused <= {errno.ELOOP, errno.ENOENT, errno.ENOTDIR}


def test_what_looks_first_and_opens_then_is_fooled_by_the_same_swapping(swapped: Path) -> None:
    """So the test above tests something: the obvious way leaks in the very same place."""
    real = swapped.resolve()
    for _ in range(20 * READS):
        path = swapped / "d" / "file"
        with suppress(OSError):
            if path.resolve().is_relative_to(real) and path.read_bytes() == OUTSIDE:
                return
    pytest.skip("the swapping did not hit in time on this machine")
