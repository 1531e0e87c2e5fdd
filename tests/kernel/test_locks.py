from __future__ import annotations

import os
from pathlib import Path
from threading import Event, Thread

import pytest

from kernel.processes import child
from planforge.errors import Locked
from planforge.kernel.locks import held, is_held


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "locks" / "run-001.lock"


def test_a_lock_is_held_inside_and_free_before_and_after(path: Path) -> None:
    assert not is_held(path)
    with held(path, "`run-001`"):
        assert is_held(path)
    assert not is_held(path)
    with held(path, "`run-001`"):
        assert is_held(path)


def test_looking_at_a_lock_does_not_make_it(path: Path) -> None:
    assert not is_held(path)
    assert not path.parent.exists()


def test_a_held_lock_is_refused_and_the_refusal_says_who_holds_it(path: Path) -> None:
    with child("hold", path) as holder:
        assert holder.hear() == "held"
        assert is_held(path)
        with (
            pytest.raises(Locked, match=f"^`run-001` is under way in process {holder.pid}$"),
            held(path, "`run-001`"),
        ):
            pytest.fail("two hold it")


def test_one_process_cannot_hold_a_lock_twice(path: Path) -> None:
    with held(path, "`run-001`"):
        with pytest.raises(Locked, match=f"process {os.getpid()}"), held(path, "`run-001`"):
            pytest.fail("two hold it")
        assert is_held(path)


def test_the_lock_of_a_process_that_was_killed_is_free(path: Path) -> None:
    with child("hold", path) as holder:
        assert holder.hear() == "held"
        holder.kill()
        assert not is_held(path)
        with held(path, "`run-001`"):
            assert path.read_text() == f"process {os.getpid()}"


def test_a_lock_is_let_go_of_when_the_work_fails(path: Path) -> None:
    with pytest.raises(RuntimeError, match="a bug"), held(path, "`run-001`"):
        raise RuntimeError("a bug")
    assert not is_held(path)


def test_who_waits_gets_the_lock_when_its_holder_is_gone(path: Path) -> None:
    got = Event()

    def wait() -> None:
        with held(path, "landing", wait=True):
            got.set()

    with child("hold", path) as holder:
        assert holder.hear() == "held"
        waiting = Thread(target=wait)
        waiting.start()
        assert not got.is_set()
        holder.kill()
        waiting.join(timeout=30)
    assert got.is_set()


def test_who_waits_for_a_lock_is_alone_with_it(path: Path, tmp_path: Path) -> None:
    total = tmp_path / "total"
    total.write_text("0")

    def count() -> None:
        for _ in range(200):
            with held(path, "counting", wait=True):
                total.write_text(str(int(total.read_text()) + 1))

    counting = [Thread(target=count) for _ in range(2)]
    for thread in counting:
        thread.start()
    for thread in counting:
        thread.join()
    assert total.read_text() == "400"


def test_a_lock_names_its_holder_and_nobody_before(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("process 12345678901234567890")
    with held(path, "`run-001`"):
        assert path.read_text() == f"process {os.getpid()}"


def test_different_locks_do_not_mind_each_other(tmp_path: Path) -> None:
    with held(tmp_path / "a", "a"), held(tmp_path / "b", "b"):
        assert is_held(tmp_path / "a")
        assert is_held(tmp_path / "b")


def test_two_who_look_at_a_free_lock_do_not_see_each_other(path: Path) -> None:
    with held(path, "`run-001`"):
        pass
    seen: list[bool] = []
    looking = [Thread(target=lambda: seen.extend(is_held(path) for _ in range(2000))) for _ in range(2)]
    for thread in looking:
        thread.start()
    for thread in looking:
        thread.join()
    assert (len(seen), any(seen)) == (4000, False)
