"""
What a person sees of a command, written down as text: the only place that says what is left out of it.

Everything is kept as it was printed, both streams in the order in which they came, but:

- the project is `~/project`, and the files beside it are under `~`;
- every hash is `0f1e2d3c4b5a`: commits have a date in them, so they differ each time;
- dates, times of day, durations, scores (in which time counts), and how many events and objects there
  are, are always the same; so is what it has cost, which each agent counts otherwise, and of the title beside
  it only the beginning is there, for it has the room that the cost leaves;
- the sandbox is bubblewrap, which most machines have; the agent is called rehearsal, whoever it
  is: that a real program was at work is looked up in the ledger;
- signs of life (lines that begin with `…`) are left out: they depend on how long something took;
- of phases that ran at once, the lines of the first stand before those of the second;
- of a long screen the middle is left out, and of a long line the end.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

HASH = "0f1e2d3c4b5a"
COST = "18k tokens, money unknown"
WIDTH = 118
HEAD, TAIL = 30, 12
"""How many lines of a long screen are kept at its beginning and at its end."""

RULES = (
    (re.compile(r"\b[0-9a-f]{12,64}\b"), HASH),
    (re.compile(r"\b20\d\d-\d\d-\d\d\b"), "2026-01-02"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "03:04:05"),
    (re.compile(r"\b\d+(?:\.\d+)? s\b"), "1 s"),
    (re.compile(r"\b\d+ events\b"), "100 events"),
    (re.compile(r"\b\d+ objects\b"), "10 objects"),
    (re.compile(r"\bscore \d+"), "score 900"),
    (re.compile(r"^(  plan-\d+  [A-Z]+(?:  [a-z]+)?  .{16}).*?(  \d+/\d+)  .*$", re.M), rf"\1…\2  {COST}"),
    (re.compile(r"^Cost  .*$", re.M), f"Cost  {COST}"),
    (re.compile(r"agent [\w-]+ \((?:bubblewrap|landlock|processes|none)\)"), "agent rehearsal (bubblewrap)"),
)
PHASE = re.compile(r"^\S (phase-\d+)\s")


class Screen(NamedTuple):
    """One command as it was typed, what it printed, and how it ended."""

    typed: str
    printed: str
    code: int

    def text(self) -> str:
        """The screen as it is shown in the documents."""
        lines = [f"$ {self.typed}", *_shortened(self.printed.splitlines())]
        if self.code:
            lines += [f"[exit code {self.code}]"]
        return "\n".join(lines) + "\n"


def settled(printed: str, home: Path) -> str:
    """What was printed, without what differs each time."""
    text = printed.replace(str(home), "~")
    for pattern, instead in RULES:
        text = pattern.sub(instead, text)
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("… ")]
    return "\n".join(_in_order(lines)) + "\n" if lines else ""


def _in_order(lines: list[str]) -> list[str]:
    """The lines with those of phases that ran at once in the order of the phases."""
    ordered: list[str] = []
    at_once: list[tuple[str, str]] = []
    for line in lines:
        if found := PHASE.match(line):
            at_once.append((found[1], line))
            continue
        ordered += [each for _, each in sorted(at_once, key=lambda item: item[0])]
        at_once = []
        ordered.append(line)
    return ordered + [each for _, each in sorted(at_once, key=lambda item: item[0])]


def _shortened(lines: list[str]) -> list[str]:
    cut = [line if len(line) <= WIDTH else f"{line[: WIDTH - 2].rstrip()} …" for line in lines]
    if len(cut) <= HEAD + TAIL + 1:
        return cut
    left_out = len(cut) - HEAD - TAIL
    return [*cut[:HEAD], f"… {left_out} lines more …", *cut[-TAIL:]]
