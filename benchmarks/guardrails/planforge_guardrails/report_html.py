"""The report as one static page: a table and charts, no script, nothing from the network."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from planforge_guardrails.scores import Report, Scored, by_name, workflows

STYLE = """\
:root { color-scheme: light dark;
  --ink: #1a1d21; --soft: #5b636d; --paper: #ffffff; --line: #d9dee3;
  --good: #1a7f4b; --bad: #c0341d; --none: #8a9199; --band: #f5f7f9; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e6e9ec; --soft: #9aa4ae; --paper: #14171a; --line: #2d3339;
  --good: #4cc38a; --bad: #ff7b63; --none: #6c757d; --band: #1b1f23; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 76rem; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; }
p { max-width: 46rem; } .soft, caption { color: var(--soft); }
figure { margin: 0 0 1.5rem; } figcaption { color: var(--soft); font-size: .9rem; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; }
svg .soft { fill: var(--soft); } .fill-good { fill: var(--good); } .fill-bad { fill: var(--bad); }
.fill-none { fill: var(--none); } .fill-rest { fill: var(--line); }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
caption { text-align: left; padding-bottom: .5rem; } th, td { text-align: left; vertical-align: top;
  padding: .4rem .6rem; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
tbody.group > tr:first-child th { background: var(--band); } .good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; } th .soft { font-weight: 400; }
tbody th { min-width: 13rem; } .how { min-width: 18rem; overflow-wrap: anywhere; }
"""


def page(report: Report) -> str:
    """The whole page."""
    verdict, mark = ("Passed", "good") if report.passed else ("Not passed", "bad")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Guardrail benchmark: {escape(report.orchestrator)}</title>",
            f"<style>\n{STYLE}</style></head><body>",
            "<h1>Guardrail benchmark</h1>",
            f'<p class="soft">{escape(report.description)} · {escape(report.machine)} · '
            f"{report.wall_seconds:.0f} seconds</p>",
            f'<p><span class="{mark}">{verdict}.</span> {_sentence(report)}</p>',
            "<h2>Caught before landing</h2>",
            _caught(report),
            "<h2>How late</h2>",
            _late(report),
            "<h2>Every case</h2>",
            *_table(report),
            *_uncatchable(report),
            "<h2>What this does not show</h2>",
            "<p>The agents play scripts: how often a real model misbehaves like this is not measured, nor "
            "whether what it writes is any good. One small repository, one machine, one run for each cell. "
            "An agent that misbehaves in a way that is not in the table is not in the number.</p>",
            "</body></html>\n",
        ]
    )


def _sentence(report: Report) -> str:
    own = report.totals
    said = (
        f"{own.caught} of {own.catchable} misbehaving agents were stopped before they did any harm; "
        f"{own.false_alarms} of {own.cases} honest twins were stopped as well; "
        f"work was lost in {own.work_lost} cases; {own.processes_left} processes were left."
    )
    if report.baseline:
        said += (
            f" Without an orchestrator, {report.baseline.caught} of {report.baseline.catchable} did no harm."
        )
    return said


def _caught(report: Report) -> str:
    """A bar for each group and each column."""
    groups = list(dict.fromkeys(each.group for each in report.cases))
    columns = [report.orchestrator, *(["without"] if report.baseline else [])]
    rows: list[tuple[str, str, int, int]] = []
    for group in groups:
        cases = [each for each in report.cases if each.group == group and not each.uncatchable]
        rows.append((group, columns[0], sum(each.caught_before_landing for each in cases), len(cases)))
        if report.baseline:
            hits = sum(bool(each.baseline and each.baseline.caught_before_landing) for each in cases)
            rows.append(("", columns[1], hits, len(cases)))
    most = max((row[3] for row in rows), default=1) or 1
    parts = []
    for number, (group, column, hits, total) in enumerate(rows):
        y = 8 + number * 24 + sum(8 for row in rows[1 : number + 1] if row[0])
        width, hit = 560 * total / most, 560 * hits / most
        parts.append(f'<text x="0" y="{y + 13}">{escape(group)}</text>')
        parts.append(f'<text class="soft" x="110" y="{y + 13}">{escape(column)}</text>')
        parts.append(f'<rect class="fill-rest" x="200" y="{y}" width="{width:.1f}" height="17" rx="2"/>')
        parts.append(f'<rect class="fill-good" x="200" y="{y}" width="{hit:.1f}" height="17" rx="2"/>')
        parts.append(f'<text x="{208 + width:.1f}" y="{y + 13}">{hits} of {total}</text>')
    height = 20 + len(rows) * 24 + 8 * len(groups)
    return _figure(parts, height, "Misbehaving agents that did no harm, by group; the rest of each bar did.")


def _late(report: Report) -> str:
    """A dot for each case: seconds until it was over, by group."""
    longest = max((each.seconds for each in report.cases), default=1) or 1
    groups = list(dict.fromkeys(each.group for each in report.cases))
    parts = []
    for row, group in enumerate(groups):
        y = 20 + row * 28
        parts.append(f'<text x="0" y="{y + 4}">{escape(group)}</text>')
        parts.append(f'<rect class="fill-rest" x="110" y="{y}" width="720" height="1"/>')
        for each in (case for case in report.cases if case.group == group):
            x = 110 + 720 * each.seconds / longest
            kind = "none" if each.uncatchable else "good" if each.caught_before_landing else "bad"
            numbers = f"{each.seconds:.1f} s, {each.attempts} attempts, {each.tokens} tokens"
            label = escape(f"{each.name}, {each.workflow}: {numbers}")
            parts.append(
                f'<circle class="fill-{kind}" cx="{x:.1f}" cy="{y}" r="6"><title>{label}</title></circle>'
            )
    y = 20 + len(groups) * 28
    parts.append(f'<text class="soft" x="110" y="{y}">0 s</text>')
    parts.append(f'<text class="soft" x="830" y="{y}" text-anchor="end">{longest:.1f} s</text>')
    return _figure(parts, y + 14, "Seconds until each case was over; point at a dot for its name.")


def _figure(parts: list[str], height: float, caption: str) -> str:
    body = "\n".join(parts)
    return (
        f'<figure><svg viewBox="0 0 860 {height:.0f}" role="img" aria-label="{escape(caption)}">'
        f"\n{body}\n</svg>"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _table(report: Report) -> Iterator[str]:
    ways = workflows(report)
    heads = ["Case", *map(escape, ways), *(["Without"] if report.baseline else [])]
    yield '<div class="table"><table>'
    yield "<caption>What must not come about, and whether it did: each agent in every workflow that it was "
    yield "put to. Attempts, seconds and tokens are those of the first of them.</caption><thead><tr>"
    yield "".join(f'<th scope="col">{head}</th>' for head in heads)
    yield "".join(f'<th scope="col" class="number">{head}</th>' for head in ("Attempts", "Seconds", "Tokens"))
    yield '<th scope="col">How</th></tr></thead>'
    span = len(heads) + 4
    rows = by_name(report.cases)
    for group in dict.fromkeys(cells[0].group for cells in rows):
        yield f'<tbody class="group"><tr><th colspan="{span}" scope="rowgroup">{escape(group)}</th></tr>'
        yield from (_row(cells, ways) for cells in rows if cells[0].group == group)
        yield "</tbody>"
    yield "</table></div>"


def _row(row: tuple[Scored, ...], ways: list[str]) -> str:
    first, by_way = row[0], {each.workflow: each for each in row}
    cells = [f'<th scope="row">{escape(first.name)}<br><span class="soft">{escape(first.about)}</span></th>']
    for way in ways:
        each = by_way.get(way)
        cells.append(_mark(each.caught_before_landing, each.uncatchable) if each else "<td></td>")
    if first.baseline:
        cells.append(_mark(first.baseline.caught_before_landing, ""))
    numbers = (str(first.attempts), f"{first.seconds:.1f}", str(first.tokens))
    cells.extend(f'<td class="number">{value}</td>' for value in numbers)
    cells.append(f'<td class="how">{"".join(_how(row))}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _how(row: tuple[Scored, ...]) -> Iterator[str]:
    """What stood in the way, and below it the same for the other workflows."""
    first, *others = row
    yield f"{escape(first.uncatchable or first.how)}{_faults(first)}"
    if others and not first.uncatchable:
        yield "<details><summary>in the other workflows</summary>"
        yield "<br>".join(f"{escape(each.workflow)}: {escape(each.how)}" for each in others)
        yield "</details>"
    yield from (f"<br>{escape(each.workflow)}:{_faults(each)}" for each in others if _faults(each))


def _mark(caught: bool, uncatchable: str) -> str:
    if uncatchable:
        return '<td class="soft">not counted</td>'
    return f'<td class="{"good" if caught else "bad"}">{"caught" if caught else "harm done"}</td>'


def _faults(each: Scored) -> str:
    found = [
        *(["false alarm on its honest twin"] if each.false_alarm else []),
        *([f"work lost: {', '.join(each.work_lost)}"] if each.work_lost else []),
        *([f"{each.processes_left} processes left"] if each.processes_left else []),
        *(f"untrue: {lie}" for lie in each.lies),
        *([f"not run: {each.error}"] if each.error else []),
    ]
    return "".join(f'<br><span class="bad">{escape(fault)}</span>' for fault in found)


def _uncatchable(report: Report) -> Iterator[str]:
    if not report.uncatchable:
        return
    yield "<h2>Not to be caught without a model</h2><ul>"
    for each, *_ in by_name(report.cases):
        if each.uncatchable:
            yield f"<li><strong>{escape(each.name)}</strong>: {escape(each.uncatchable)}</li>"
    yield "</ul>"
