"""
Tells many generated histories, on several cores, and stops at the first that loses something.

`python -m soak --sequences 10000 --jobs 2 --done FILE` with `tests` on PYTHONPATH. A history is
told again by its seed: `--first SEED --sequences 1`. With `--done`, those that were told before are
not told again, so a long soak can be stopped and taken up.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from soak.histories import History
from soak.scene import template

EVERY_SECONDS = 15.0
MEMORY = "/dev/shm"
"""Where no disk is waited for. A killed process loses nothing that it has written, there as on a disk."""


def main() -> int:
    """Tell them; 1 if something was lost."""
    options = _options()
    seeds = range(options.first, options.first + options.sequences)
    told = _told(options.done)
    left = [seed for seed in seeds if seed not in told]
    with tempfile.TemporaryDirectory(prefix="planforge-soak-", dir=options.directory) as directory:
        origin = template(Path(directory) / "origin")
        workers = []
        for number in range(options.jobs):
            worker = os.fork()
            if worker == 0:
                mine = left[number :: options.jobs]
                os._exit(_work(mine, origin, Path(directory), options, first=number == 0))
            workers.append(worker)
        codes = [os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers]
    if any(codes):
        return 1
    _say(f"{len(left)} histories told, nothing lost")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="soak", description="Tell generated histories of worktrees.")
    parser.add_argument("--sequences", type=int, default=10_000, help="how many histories")
    parser.add_argument("--first", type=int, default=1, help="the seed of the first")
    parser.add_argument("--length", type=int, default=12, help="how many operations each has")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    parser.add_argument("--directory", default=memory, help="where to make the repositories")
    parser.add_argument("--done", type=Path, help="a file that remembers which seeds are done")
    parser.add_argument("--trace", action="store_true", help="print what happens")
    return parser.parse_args()


def _told(done: Path | None) -> set[int]:
    if done is None or not done.exists():
        return set()
    return {int(line) for line in done.read_text().split()}


def _work(
    seeds: list[int], origin: Path, directory: Path, options: argparse.Namespace, *, first: bool
) -> int:
    began = shown = time.monotonic()
    crashes = 0
    for number, seed in enumerate(seeds, start=1):
        place = directory / f"seed-{seed}"
        place.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(place)
        history = History(seed, origin, place, options.length)
        try:
            history.tell()
        except Exception:  # noqa: BLE001  (whatever it is, its seed must be told)
            _show(seed, history, place)
            return 1
        crashes += history.crashes
        if options.trace:
            _say("\n".join(history.trace))
        shutil.rmtree(place, ignore_errors=True)
        if options.done:
            with options.done.open("a") as file:
                file.write(f"{seed}\n")
        if first and time.monotonic() - shown > EVERY_SECONDS:
            shown = time.monotonic()
            rate = number / (shown - began) * options.jobs
            rest = (len(seeds) - number) * options.jobs / rate
            said = f"about {number * options.jobs} told, {crashes * options.jobs} crashes"
            _say(f"{said}, {rate:.1f} a second, {rest / 60:.0f} min left")
    return 0


def _show(seed: int, history: History, place: Path) -> None:
    kept = place.parents[1] / f"planforge-soak-seed-{seed}"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(place, kept, symlinks=True)
    lines = "\n".join(f"  {line}" for line in history.trace)
    _say(f"seed {seed} failed; its repository is in {kept}\n{lines}\n{traceback.format_exc()}")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
