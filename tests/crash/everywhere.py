"""
Cuts stories at every boundary there is, on several cores, and says how many ended otherwise than uncut.

`python -m crash.everywhere --jobs 2 --done FILE` with `tests` on PYTHONPATH. With `--done`, cuts that were
made before are not made again, so it can be stopped and taken up. Each is compared after the act that was
cut; every twentieth is told to the end of its story and compared after each act, with `--to-the-end` all.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from crash.boundaries import Cut
from crash.stories import STORIES, Stage, Story

EVERY_SECONDS = 15.0
TO_THE_END = 20
"""One in so many is told to the end of its story."""
MEMORY = "/dev/shm"
"""Where no disk is waited for. A killed process loses nothing that it has written, there as on a disk."""


def main() -> int:
    """Cut; 1 if anything differed."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="planforge-crash-", dir=options.directory) as directory:
        done = options.done or Path(directory) / "done"
        asked: set[tuple[str, str]] = set()
        codes: list[int] = []
        for story in STORIES:
            # One telling says where to cut; the workers then tell their own, each in its own place.
            stage = Stage(story, Path(directory) / "first" / story.name)
            known = {(line["story"], line["cut"]) for line in _lines(done)}
            named = [(number, cut) for number, cut in enumerate(stage.cuts) if options.only in str(cut)]
            left = [item for item in named if (story.name, str(item[1])) not in known]
            asked |= {(story.name, str(cut)) for _, cut in named}
            _say(f"{story.name}: {len(named)} cuts, {len(left)} of them left")
            if left:
                codes += _divided(stage, left, options, done)
        return 3 if any(codes) else _summary(done, asked)


def _divided(stage: Stage, left: list[tuple[int, Cut]], options: argparse.Namespace, done: Path) -> list[int]:
    """Have workers make the cuts; the first of them does so where the story was told already."""
    workers = []
    for number in range(options.jobs):
        worker = os.fork()
        if worker == 0:
            code = 3
            try:
                mine = left[number :: options.jobs]
                place = stage.root.parents[3] / str(number) / stage.story.name
                _cut(Stage(stage.story, place) if number else stage, mine, options, done)
                code = 0
            except Exception:  # noqa: BLE001  (whatever it is, it must be told)
                _say(traceback.format_exc())
            finally:
                os._exit(code)
        workers.append(worker)
    return [os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="crash", description="Cut stories at every boundary.")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    parser.add_argument("--directory", default=memory, help="where to make the repositories")
    parser.add_argument("--done", type=Path, help="a file that remembers which cuts were made")
    parser.add_argument("--only", default="", help="only cuts with this in their names")
    parser.add_argument("--to-the-end", action="store_true", help="tell each to the end of its story")
    return parser.parse_args()


def _cut(stage: Stage, mine: list[tuple[int, Cut]], options: argparse.Namespace, done: Path) -> None:
    began = shown = time.monotonic()
    for made, (number, cut) in enumerate(mine, start=1):
        to_the_end = options.to_the_end or number % TO_THE_END == 0
        differing = stage.cut(cut, to_the_end=to_the_end)
        if differing:
            _say(f"{stage.story.name}, {cut}:\n" + "\n".join(f"  {line}" for line in differing))
        _remember(done, stage.story, cut, to_the_end, differing)
        if time.monotonic() - shown > EVERY_SECONDS:
            shown = time.monotonic()
            rest = (len(mine) - made) * (shown - began) / made
            _say(f"{stage.story.name}: {made} of {len(mine)}, {rest / 60:.0f} min left")


def _remember(done: Path, story: Story, cut: Cut, to_the_end: bool, differing: list[str]) -> None:
    line = {
        "story": story.name,
        "cut": str(cut),
        "half": bool(cut.steps),
        "to_the_end": to_the_end,
        "differing": differing,
    }
    done.parent.mkdir(parents=True, exist_ok=True)
    with done.open("a") as file:
        file.write(f"{json.dumps(line)}\n")


def _lines(done: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.read_text().splitlines()] if done.exists() else []


def _summary(done: Path, asked: set[tuple[str, str]]) -> int:
    made = {name: line for line in _lines(done) if (name := (line["story"], line["cut"])) in asked}
    halves = sum(line["half"] for line in made.values())
    ended = sum(line["to_the_end"] for line in made.values())
    differing = [line for line in made.values() if line["differing"]]
    for line in differing:
        _say(f"differed: {line['story']}, {line['cut']}")
    _say(
        f"{len(made) - halves} boundaries and {halves} half-ways cut, {ended} of them told to the end; "
        f"{len(differing)} differed"
    )
    return 1 if differing or len(made) < len(asked) else 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
