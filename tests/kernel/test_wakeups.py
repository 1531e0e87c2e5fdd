"""How writers wake those who wait: promptly, cheaply, and without trusting a shared directory."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kernel.bus_children import runtime_directory
from planforge.kernel.wakeups import ABANDONED_SECONDS, Ear, Waker, meeting_place


@pytest.fixture
def runtime() -> Iterator[Path]:
    with runtime_directory() as place:
        yield place


@pytest.fixture
def place(runtime: Path, tmp_path: Path) -> Path:
    """Where the ears of the ledger in `tmp_path` are."""
    return Path(meeting_place(tmp_path))


def test_a_call_is_heard_once_and_only_while_somebody_listens(tmp_path: Path, place: Path) -> None:
    waker, ear = Waker(tmp_path), Ear(tmp_path)
    assert ear.hears
    assert not ear.wait(0)
    waker.wake()
    waker.wake()
    assert ear.wait(0)
    assert not ear.wait(0)
    ear.close()
    waker.wake()


def test_ears_of_other_ledgers_are_left_alone(tmp_path: Path, place: Path) -> None:
    ear = Ear(tmp_path / "other")
    Waker(tmp_path).wake()
    assert not ear.wait(0)
    ear.close()


def test_one_ledger_is_one_place_by_whatever_path_it_is_reached(tmp_path: Path, runtime: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert meeting_place(tmp_path / "link") == meeting_place(tmp_path / "real")
    assert meeting_place(tmp_path / "real").startswith(f"{runtime}/planforge-{os.geteuid()}-")


def test_everybody_who_came_is_called_however_shortly_before(tmp_path: Path, place: Path) -> None:
    waker = Waker(tmp_path)
    ears: list[Ear] = []
    for _ in range(40):
        ears.append(Ear(tmp_path))
        waker.wake()
        assert [ear.wait(0) for ear in ears] == [True] * len(ears)
    for ear in ears:
        ear.close()


def test_somebody_who_came_in_the_same_tick_of_the_clock_is_called(tmp_path: Path, place: Path) -> None:
    waker, first = Waker(tmp_path), Ear(tmp_path)
    tick = place.stat()
    waker.wake()
    second = Ear(tmp_path)
    os.utime(place, ns=(tick.st_atime_ns, tick.st_mtime_ns))
    waker.wake()
    assert (first.wait(0), second.wait(0)) == (True, True)
    first.close()
    second.close()


def test_when_nothing_has_changed_for_a_while_the_directory_is_not_read_again(
    tmp_path: Path, place: Path
) -> None:
    waker, ear = Waker(tmp_path), Ear(tmp_path)
    os.utime(place, (1, 1))
    waker.wake()
    (place / "later").touch()
    os.utime(place, (1, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "listdir", None)
        waker.wake()
    assert ear.wait(0)
    ear.close()


def test_whoever_leaves_leaves_nothing_behind(tmp_path: Path, place: Path) -> None:
    first, second = Ear(tmp_path), Ear(tmp_path)
    assert len(list(place.iterdir())) == 2
    first.close()
    assert len(list(place.iterdir())) == 1
    second.close()
    assert not place.exists()


def killed(directory: Path) -> None:
    """Listen in a process that is killed."""
    code = (
        "import os, signal, sys; from pathlib import Path; from planforge.kernel.wakeups import Ear\n"
        "ear = Ear(Path(sys.argv[1])); assert ear.hears; os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(directory)], check=False).returncode == -9


def test_the_ear_of_the_dead_is_taken_away_and_nothing_else(tmp_path: Path, place: Path) -> None:
    killed(tmp_path)
    ear = Ear(tmp_path)
    (place / "notes").write_text("keep me")
    assert len(list(place.iterdir())) == 3
    Waker(tmp_path).wake()
    assert ear.wait(0)
    assert len(list(place.iterdir())) == 2
    assert (place / "notes").read_text() == "keep me"
    ear.close()


def test_when_the_dead_was_the_last_the_place_goes_too(tmp_path: Path, place: Path) -> None:
    killed(tmp_path)
    assert place.exists()
    Waker(tmp_path).wake()
    assert not place.exists()


def test_an_ear_that_was_never_finished_is_swept_away_by_who_comes_next(tmp_path: Path, place: Path) -> None:
    place.mkdir(mode=0o700)
    for name, age in ((".old", 10 * ABANDONED_SECONDS), (".new", 0)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unfinished:
            unfinished.bind(str(place / name))
        when = (place / name).stat().st_mtime - age
        os.utime(place / name, (when, when))
    ear = Ear(tmp_path)
    assert not (place / ".old").exists()
    assert (place / ".new").exists()
    ear.close()


def test_an_ear_whose_name_was_cleaned_away_is_renewed(tmp_path: Path, place: Path) -> None:
    waker, ear = Waker(tmp_path), Ear(tmp_path)
    shutil.rmtree(place)
    waker.wake()
    assert not ear.wait(0)
    ear.renew()
    waker.wake()
    ear.wait(0)  # it saw nobody just now, and may not look again so soon
    time.sleep(max(ear.sure - time.monotonic(), 0))
    waker.wake()
    assert ear.wait(0)
    before = set(place.iterdir())
    ear.renew()
    assert set(place.iterdir()) == before
    ear.close()


def a_link(place: Path) -> None:
    place.parent.joinpath("elsewhere").mkdir(mode=0o700)
    place.symlink_to("elsewhere")


def open_to_all(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


def a_file(place: Path) -> None:
    place.write_text("")


def somebody_elses(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    place.mkdir(mode=0o700)
    os.chown(place, 65534, 65534)


@pytest.mark.parametrize("plant", [a_link, open_to_all, a_file, somebody_elses])
def test_a_place_that_is_not_ours_alone_is_not_used_and_nothing_is_removed_there(
    tmp_path: Path, place: Path, plant: Callable[[Path], None]
) -> None:
    plant(place)
    if place.is_dir():
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
            dead.bind(str(place / "1-dead"))
    before = sorted(place.parent.rglob("*"))
    ear = Ear(tmp_path)
    assert not ear.hears
    Waker(tmp_path).wake()
    assert not ear.wait(0)
    ear.close()
    assert sorted(place.parent.rglob("*")) == before


def test_where_no_socket_can_be_made_an_ear_just_waits(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = runtime / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    ear = Ear(tmp_path)
    assert not ear.hears
    assert not ear.wait(0.01)
    threading.Timer(0.05, ear.call).start()
    assert ear.wait(30)
    ear.close()


def test_a_runtime_directory_of_somebody_else_is_not_used(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    os.chown(runtime, 65534, 65534)
    assert not meeting_place(tmp_path).startswith(str(runtime))


@pytest.mark.dear
def test_ears_come_and_go_while_others_do(tmp_path: Path, place: Path) -> None:
    """The last one to go takes the directory away, just when another one comes."""
    deaf: list[Ear] = []

    def come_and_go() -> None:
        for _ in range(200):
            ear = Ear(tmp_path)
            if not ear.hears:
                deaf.append(ear)
            ear.close()

    threads = [threading.Thread(target=come_and_go) for _ in range(3)]
    for thread in threads:
        thread.start()
    waker = Waker(tmp_path)
    while any(thread.is_alive() for thread in threads):
        with suppress(OSError):
            waker.wake()
    for thread in threads:
        thread.join()
    assert deaf == []
    assert not place.exists()
