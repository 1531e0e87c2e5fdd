"""
What runners print for people: the summary at the end, and the names of what failed.

This is all there is to see where a `Makefile` runs the tests. Of several summaries a
sum is made only if each stands in a session of its own, which begins with the runner's
own heading and ends with its summary; anything else might be one session inside
another, or a test that prints what looks like a summary, and then nothing is believed.
"""

from __future__ import annotations

from typing import NamedTuple

from planforge.kernel.evidence import Counts
from planforge.workspace.reports.runners import RUNNERS, pytest_warnings
from planforge.workspace.reports.tally import LEFT_OUT, Tally, added, counted, in_order, plain
from planforge.workspace.reports.tap import read_tap

CAPTURING = ("pytest",)
"""Runners that keep what tests print, and show it when one fails."""


class _Mark(NamedTuple):
    """Where a summary stands, or where a session begins."""

    position: int
    runner: str
    counts: Counts | None
    """Those of a summary; None for the beginning of a session."""


def read_summaries(output: str) -> Tally | None:
    """The tests of all runners whose summaries are in `output`; with a doubt where they do not add up."""
    text = plain(output)
    found = [
        _Mark(position, name, counts)
        for name, runner in RUNNERS.items()
        for position, counts in runner.found(text)
    ]
    if not found:
        return read_tap(text)
    taken, doubt = _separate(text, found)
    if LEFT_OUT.search(text) and len(taken) > 1:
        doubt = "its output is too long to be counted"
    whole = added(Tally(summary.counts, ()) for summary in taken if summary.counts) or Tally(counted(), ())
    runners = dict.fromkeys(summary.runner for summary in taken)
    failing = in_order(
        {name for runner in runners for name in RUNNERS[runner].failing(text)} if whole.counts.failed else ()
    )
    return Tally(
        whole.counts, failing, doubt=doubt, warnings=pytest_warnings(text) if "pytest" in runners else None
    )


def _separate(text: str, found: list[_Mark]) -> tuple[list[_Mark], str]:
    """
    The summaries that count, and why they do not add up, if so.

    What another runner prints within a session of one that captures is what a test printed, and part of
    no sum.
    """
    marks = [*found]
    ended = {summary.runner for summary in found}
    for name, runner in RUNNERS.items():
        if runner.begins and (runner.own_heading or name in ended):
            marks += [_Mark(match.start(), name, None) for match in runner.begins.finditer(text)]
    taken: list[_Mark] = []
    lone = 0
    inside = ""
    for mark in sorted(marks, key=lambda mark: mark.position):
        if mark.counts is None:
            if inside == mark.runner:
                return found, "one session of tests began within another"
            inside = inside or mark.runner
        elif inside in ("", mark.runner):
            lone += not inside
            inside = ""
            taken.append(mark)
        elif inside not in CAPTURING:
            return found, f"a summary of {mark.runner} stands within a session of {inside}"
    if inside:
        return found, "a session of tests began and left no summary"
    if lone and len(taken) > 1:
        return taken, f"it printed {len(taken)} summaries of tests that may be of the same ones"
    return taken, ""
