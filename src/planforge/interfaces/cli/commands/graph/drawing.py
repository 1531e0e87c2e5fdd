"""How the plan graph looks in a terminal, in Mermaid and in dot."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch

from planforge.app.history.graphs import Picture, Scores, ScoreView
from planforge.interfaces.cli import layout
from planforge.interfaces.cli.event_words import first_line, said
from planforge.interfaces.cli.layout import padded, paragraphs, table, width
from planforge.interfaces.cli.streams import as_document
from planforge.interfaces.cli.typed import command
from planforge.kernel.graph import queries
from planforge.kernel.graph.queries import QueryResult, StepView
from planforge.kernel.hints import action_of
from planforge.kernel.scores import FORMULA, Measures
from planforge.kernel.wording import counted

WIDTH = 80
MARKS = {"done": "✓", "in-progress": "▶", "failed": "✗"}
COLOURS = {"done": "#9c9", "in-progress": "#9cf", "failed": "#f99", "ready": "#fff", "waits": "#ddd"}
ID_WIDTH = 24


def mark(step: StepView) -> str:
    """The step's status in one character."""
    return MARKS.get(step.status) or ("·" if step.waiting else "○")


def state(step: StepView) -> str:
    """The step's status in a word; a pending step is ready or waits."""
    return step.status if step.status != "pending" else "waits" if step.waiting else "ready"


def cut(text: str, room: int) -> str:
    """Text on one line that fits."""
    return layout.cut(" ".join(text.split()), max(room, 1))


def waves(found: Picture) -> str:
    """The plan in waves, at most 80 columns wide."""
    plan = found.plan
    critical = set(found.critical.left.steps)
    steps = {step.node: step for step in plan.steps}
    widest = min(max((width(step.step) for step in plan.steps), default=0), ID_WIDTH)
    lines = [cut(f"{plan.node}  {plan.status}  {plan.title}", WIDTH)]
    if plan.supersedes:
        lines.append(cut(f"supersedes {plan.supersedes}: {plan.reason}", WIDTH))
    if plan.superseded_by:
        lines.append(f"superseded by {plan.superseded_by}")
    for number, wave in enumerate(found.waves, 1):
        lines += ["", f"wave {number}"]
        lines += [_line(steps[name], widest, name in critical) for name in wave]
    if not plan.steps:
        lines += ["", "no steps yet"]
    lines += ["", *_foot(found)]
    return "\n".join(lines).rstrip()


def _line(step: StepView, widest: int, critical: bool) -> str:
    start = f"{'*' if critical else ' '} {mark(step)} {padded(cut(step.step, widest), widest)}  "
    notes = _notes(step)
    left = WIDTH - width(start) - width(notes)
    needed = f"← {', '.join(step.depends_on)}" if step.depends_on else ""
    title = cut(step.title, max(left - min(width(needed) + 2, left // 2), 8))
    after = f"  {cut(needed, left - width(title) - 2)}" if needed else ""
    return f"{start}{title}{after}{notes}"


def _notes(step: StepView) -> str:
    parts = []
    if step.status == "pending" and step.waiting:
        parts.append(f"waits for {step.waiting}")
    if step.status == "in-progress" and step.holder:
        parts.append(cut(step.holder, 16))
    if step.attempts > 1:
        parts.append(counted(step.attempts, "attempt"))
    if step.score is not None:
        parts.append(f"score {step.score}")
    return f"  ({', '.join(parts)})" if parts else ""


def _foot(found: Picture) -> Iterator[str]:
    for risk in found.plan.risks:
        if risk.open:
            yield cut(f"risk {risk.risk} ({risk.severity}): {risk.description}", WIDTH)
    left, whole = found.critical.left, found.critical.whole
    if left.steps:
        yield cut(f"critical path: {_path(left)} (weight {left.weight} of {whole.weight})", WIDTH)
    elif found.plan.steps:
        yield "every step is done"


def mermaid(found: Picture) -> str:
    """The plan as a Mermaid flowchart."""
    numbers = {step.step: number for number, step in enumerate(found.plan.steps)}
    lines = ["graph TD"]
    for step in found.plan.steps:
        label = f"{mark(step)} {step.step}: {step.title}".replace("&", "&amp;").replace('"', "&quot;")
        label = " ".join(label.replace("<", "&lt;").replace(">", "&gt;").split())
        lines.append(f'  s{numbers[step.step]}["{label}"]')
        lines.append(f"  style s{numbers[step.step]} fill:{COLOURS[state(step)]}")
    for step in found.plan.steps:
        lines += [
            f"  s{numbers[needed]} --> s{numbers[step.step]}"
            for needed in step.depends_on
            if needed in numbers
        ]
    return "\n".join(lines)


def dot(found: Picture) -> str:
    """The plan as a graph for `dot`."""
    critical = set(found.critical.left.steps)
    lines = [f"digraph {_quoted(found.plan.node)} {{", "  rankdir=LR;", "  node [shape=box, style=filled];"]
    for step in found.plan.steps:
        heavy = ", penwidth=3" if step.node in critical else ""
        label = _quoted(f"{mark(step)} {step.step}: {' '.join(step.title.split())}")
        lines.append(f'  {_quoted(step.step)} [label={label}, fillcolor="{COLOURS[state(step)]}"{heavy}];')
    for step in found.plan.steps:
        lines += [f"  {_quoted(needed)} -> {_quoted(step.step)};" for needed in step.depends_on]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def blockers(found: queries.Blockers) -> str:
    """Each cause for which a step waits, and the command that helps."""
    step = found.step
    if not found.blockers:
        return f"{step.node} is ready: nothing holds it back"
    lines = []
    for item in found.blockers:
        name = "" if item.kind == "status" else f" {item.name}"
        lines.append(f"{step.node}  {item.kind}{name}: {item.reason}")
        lines += [f"    try: {command(action_of(item.help))}"] if item.help else []
    return "\n".join(lines)


def scores(found: Scores) -> str:
    """The scores of some steps."""
    return paragraphs(*map(_score, found.steps)) or "no steps"


def _score(found: ScoreView) -> str:
    value = "unknown" if found.score is None or found.score.value is None else f"{found.score.value} of 1000"
    why = f"  ({found.reason})" if found.reason else ""
    head = f"{found.step}  {found.status}  score {value}{why}"
    if found.score is None:
        return head
    points = {part.measure: f"{part.earned} of {part.of} points" for part in found.points}
    rows = [
        (name, _shown(getattr(found.score.measures, name)), points.get(name, ""))
        for name in Measures.__struct_fields__
    ]
    old = "" if found.score.formula == FORMULA else f"\n  made with formula {found.score.formula}"
    return f"{head}\n{table(rows, '  ')}{old}"


def _shown(value: int | None) -> str:
    if value is None:
        return "unknown"
    return str(value) if not isinstance(value, bool) else "yes" if value else "no"


# Answers to queries


@singledispatch
def answer(found: QueryResult) -> str:
    """An answer for people; an answer without its own format is shown as JSON."""
    return as_document(found)


@answer.register(queries.StepList)
def _(found: queries.StepList) -> str:
    rows = [(mark(step), step.node, step.kind, state(step), cut(step.title, 40)) for step in found.steps]
    later = f"{found.plan} is superseded by {found.superseded_by}" if found.superseded_by else ""
    return "\n".join(part for part in (later, table(rows)) if part) or f"{found.plan}: none"


answer.register(queries.Blockers, blockers)


@answer.register(queries.Reached)
def _(found: queries.Reached) -> str:
    return "\n".join(found.steps) or f"{found.node}: none"


@answer.register(queries.CriticalPaths)
def _(found: queries.CriticalPaths) -> str:
    chains = ("left", found.left), ("whole", found.whole)
    return "\n".join(f"{name} (weight {chain.weight}): {_path(chain) or 'none'}" for name, chain in chains)


def _path(chain: queries.Chain) -> str:
    return " → ".join(step.rpartition("/")[2] for step in chain.steps)


@answer.register(queries.Differences)
def _(found: queries.Differences) -> str:
    lines = [f"{found.before} → {found.after}"]
    lines += [f"+ {name}" for name in found.added] + [f"- {name}" for name in found.removed]
    for change in found.changed:
        lines.append(f"~ {change.step}")
        lines += [f"    {item.field}: {_plain(item.before)} → {_plain(item.after)}" for item in change.fields]
    return "\n".join([*lines, *(f"  {name}" for name in found.same)])


def _plain(value: str | int | tuple[str, ...]) -> str:
    return (", ".join(value) or "nothing") if isinstance(value, tuple) else str(value)


@answer.register(queries.Moments)
def _(found: queries.Moments) -> str:
    from planforge.app.history.graphs import fact

    rows = [
        (str(item.seq), item.at[11:19], item.kind, first_line(said(fact(item)), 100)) for item in found.events
    ]
    return table(rows) or f"{found.node}: nothing has happened yet"


@answer.register(queries.CustodyChain)
def _(found: queries.CustodyChain) -> str:
    lines = [f"goal  {first_line(found.goal, 70)}"]
    lines += [f"  must  {first_line(text, 70)}" for text in (*found.constraints, *found.criteria)]
    lines += [f"  {_approval(item)}" for item in found.approvals]
    for step in found.steps:
        kept = f", kept from {step.kept_from}" if step.kept_from else ""
        lines.append(f"{step.node}  {step.status}{kept}  {cut(step.title, 40)}")
        lines += [f"  {_approval(item)}" for item in step.approvals]
        for attempt in step.attempts:
            lines += [f"  {line}" for line in _attempt(attempt)]
    return "\n".join(lines)


def _approval(item: queries.Approval) -> str:
    used = f", used by {item.used_by}" if item.used_by else ""
    return (
        f"approval  {item.gate} {item.subject} by {item.actor} ({cut(item.content, 12)}{used})  #{item.seq}"
    )


def _attempt(found: queries.AttemptRecord) -> Iterator[str]:
    by = f" by {found.holder}" if found.holder else ""
    yield f"attempt {found.attempt}{by}"
    for patch in found.patches:
        landed = ", landed" if patch.landed else ""
        yield f"  patch  {cut(patch.commit, 12)} by {patch.agent or 'nobody'}{landed}  #{patch.seq}"
    for item in found.evidence:
        yield f"  evidence  {item.outcome}: {first_line(item.reason, 60)}  #{item.seq}"
    if found.rejected:
        yield f"  not taken: {first_line(found.rejected, 60)}"


@answer.register(queries.Edges)
def _(found: queries.Edges) -> str:
    return (
        table([(edge.kind, edge.source, "→", edge.target) for edge in found.edges]) or f"{found.node}: none"
    )
