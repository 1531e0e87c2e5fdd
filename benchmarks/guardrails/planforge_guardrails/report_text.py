"""The report for a terminal: a line for each case, and the numbers beneath."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planforge_guardrails.matrix import Progress
from planforge_guardrails.scores import Report, Scored, Totals, by_name, workflows
from planforge_guardrails.shapes import Twin


def told(report: Report) -> str:
    """The whole report."""
    return "\n".join([*_cases(report), "", *_numbers(report), *_rest(report)])


def progress_line(progress: Progress) -> str:
    """One line on what was just run."""
    seen = progress.seen
    if seen.error:
        came_to = "could not be run: " + seen.error.strip().splitlines()[-1]
    elif seen.twin is Twin.HONEST:
        came_to = "landed" if seen.done and not seen.harm else "DID NOT LAND"
    else:
        came_to = "; ".join(seen.harm) or ("stopped" if not seen.landed else "no harm done")
    again = " (from before)" if progress.resumed else ""
    count = f"{progress.done:>3}/{progress.total}"
    what = f"{seen.orchestrator:<10} {seen.case}, {seen.workflow.value} ({seen.twin.value})"
    return f"{count} {what} {seen.seconds:.1f} s: {came_to}{again}"


def _cases(report: Report) -> Iterator[str]:
    """A line for each case, with a column for each workflow."""
    ways = workflows(report)
    width = max((len(each.name) for each in report.cases), default=4)
    columns = [*(f"{way:<{_wide(way)}}" for way in ways), *(["without"] if report.baseline else [])]
    yield f"  {'case':<{width}}  {'  '.join(columns)}  attempts  seconds  tokens  how"
    group = ""
    for cells in by_name(report.cases):
        if cells[0].group != group:
            group = cells[0].group
            yield group
        yield _line(cells, ways, width)


def _line(cells: tuple[Scored, ...], ways: list[str], width: int) -> str:
    marks = {each.workflow: _mark(each) for each in cells}
    columns = [f"{marks.get(way, '·'):<{_wide(way)}}" for way in ways]
    first = cells[0]
    columns += [f"{_word(first.baseline.caught_before_landing):<7}"] if first.baseline else []
    numbers = f"{first.attempts:>8}  {first.seconds:>7.1f}  {first.tokens:>6}"
    notes = [first.uncatchable or first.how, *_elsewhere(cells)]
    return f"  {first.name:<{width}}  {'  '.join(columns)}  {numbers}  {'; '.join(filter(None, notes))}"


def _elsewhere(cells: tuple[Scored, ...]) -> Iterator[str]:
    """What is wrong in any of the workflows."""
    for each in cells:
        told = [*_faults(each)]
        if each is not cells[0] and not each.caught_before_landing and not each.uncatchable:
            told = [each.how, *told]
        yield from (f"{each.workflow}: {fault}" for fault in told if fault)


def _wide(way: str) -> int:
    return max(len(way), len("(cannot)"))


def _mark(each: Scored) -> str:
    return "(cannot)" if each.uncatchable else _word(each.caught_before_landing)


def _word(caught: bool) -> str:
    return "caught" if caught else "HARM"


def _faults(each: Scored) -> Iterator[str]:
    if each.false_alarm:
        yield "FALSE ALARM on its honest twin"
    if each.work_lost:
        yield f"WORK LOST: {', '.join(each.work_lost)}"
    if each.processes_left:
        yield f"{each.processes_left} PROCESSES LEFT"
    yield from (f"UNTRUE: {lie}" for lie in each.lies)
    if each.error:
        yield f"NOT RUN: {each.error}"


def _numbers(report: Report) -> Iterator[str]:
    columns: list[tuple[str, Totals]] = [(report.orchestrator, report.totals)]
    if report.baseline:
        columns.append(("without", report.baseline))
    yield f"{'':<34}" + "".join(f"{name:>12}" for name, _ in columns)
    rows: tuple[tuple[str, Callable[[Totals], str]], ...] = (
        ("caught before landing", lambda one: f"{one.caught}/{one.catchable}"),
        ("false alarms on honest twins", lambda one: f"{one.false_alarms}/{one.cases}"),
        ("cases in which work was lost", lambda one: str(one.work_lost)),
        ("processes left", lambda one: str(one.processes_left)),
    )
    for name, value in rows:
        yield f"{name:<34}" + "".join(f"{value(one):>12}" for _, one in columns)
    yield f"{'exit codes that are not true':<34}{report.totals.exit_codes_untrue:>12}"
    yield f"{'cases that could not be run':<34}{report.totals.errors:>12}"


def _rest(report: Report) -> Iterator[str]:
    if report.uncatchable:
        yield ""
        yield "Not to be caught without a model, and not counted:"
        for each, *_ in by_name(report.cases):
            if each.uncatchable:
                yield f"  {each.name}: {each.uncatchable}"
    yield ""
    yield f"{report.description}; {report.machine}; {report.wall_seconds:.0f} s"
    yield "passed" if report.passed else "NOT PASSED"
