"""`planforge gate`: changes that need a person, and what the person decides."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.printing import table, visible
from planforge.interfaces.cli.show import json_option, show
from planforge.interfaces.cli.views import here

if TYPE_CHECKING:
    from planforge.app.diffs import DiffLine, FileDiff
    from planforge.app.gates import Decided, GateList, GateRow, GateView
    from planforge.app.project import Project

AS = "Who decides, where there is no terminal; otherwise it is you, as git knows you."
SEEN = "The tree that you looked at, as `gate show` says; refused if it is another by now."


@click.group()
def gate() -> None:
    """Review changes that need a person's decision

    A change of protected paths, such as a CI file or a new dependency, waits at a gate before it lands. A yes
    is for exactly the tree that is shown, and for one run.
    """


@gate.command(name="list")
@click.option("--all", "everything", is_flag=True, help="Those that are decided or gone as well.")
@json_option
def list_(everything: bool, as_json: bool) -> None:
    """List the gates that wait for a person

    \b
    Examples:
      planforge gate list
      planforge gate list --json | jq -r '.gates[].name'
    """
    from planforge.app import gates

    project = here()
    found = gates.every(project) if everything else gates.waiting(project)
    show(found, lambda: _listed(found, everything=everything), as_json=as_json)


@gate.command(name="show")
@click.argument("name", metavar="GATE")
@json_option
def show_(name: str, as_json: bool) -> None:
    """Show why a change waits, and the change

    GATE is its name or its number: `gate-007`, `7`. Secrets are taken out; characters that a terminal would
    obey or hide are written out.

    \b
    Examples:
      planforge gate show 1
      planforge gate show 1 --json | jq '.files[].path'
    """
    from planforge.app import gates

    view = gates.show(here(), name)
    show(view, lambda: _view(view), as_json=as_json)


@gate.command()
@click.argument("name", metavar="GATE")
@click.option("--reason", default="", metavar="TEXT", help="Why; it is kept on record with your name.")
@click.option("--as", "actor", metavar="NAME", help=AS)
@click.option("--seen", metavar="HASH", help=SEEN)
@json_option
def approve(name: str, reason: str, actor: str | None, seen: str | None, as_json: bool) -> None:
    """Let a change through, as exactly the tree that is shown

    It opens this gate, for this tree, once. Exits with 5 if it is not yours to decide or decided already.

    \b
    Examples:
      planforge gate approve 1
      planforge gate approve 1 --as "Ada Lovelace" --reason "the new job is what we wanted"
      planforge gate approve 1 --seen dec2b31d2c8d
    """
    from planforge.app import gates

    project = here()
    decided = gates.approve(project, name, actor=_actor(project, actor), reason=reason, seen=seen)
    show(decided, lambda: _decided(decided), as_json=as_json)


@gate.command()
@click.argument("name", metavar="GATE")
@click.option("--reason", required=True, metavar="TEXT", help="Why; the next attempt at the step is told.")
@click.option("--as", "actor", metavar="NAME", help=AS)
@click.option("--seen", metavar="HASH", help=SEEN)
@json_option
def reject(name: str, reason: str, actor: str | None, seen: str | None, as_json: bool) -> None:
    """Do not let a change through

    The attempt is not taken; the step is tried again if it has attempts left, and is told why.

    \b
    Example:
      planforge gate reject 1 --reason "no new dependencies for this"
    """
    from planforge.app import gates

    project = here()
    decided = gates.reject(project, name, actor=_actor(project, actor), reason=reason, seen=seen)
    show(decided, lambda: _decided(decided), as_json=as_json)


@gate.command()
@click.option("--stage", required=True, help="The stage whose gate it is.")
@click.option("--subject", required=True, metavar="ID", help="The task or plan that stands before it.")
@click.option("--outputs", is_flag=True, help="What the stage must have left, not what must hold before it.")
@click.option("--pipeline", default="", metavar="NAME", help="Another pipeline than the task's own.")
@click.option("--gates", default="", metavar="FILE", help="A Markdown file with the gate in a fence instead.")
@click.pass_context
def check(ctx: click.Context, stage: str, subject: str, outputs: bool, pipeline: str, gates: str) -> None:
    """Hold the gate of a stage against the facts as they are now

    Prints JSON: whether it is open, or why not (`reasonCode`, `detail`) and what to do about it
    (`remediation`). Exits with 0 if it is open, 1 if it is closed, 2 if the gate or the question makes no
    sense. Nothing is changed.

    \b
    Examples:
      planforge gate check --stage implement --subject task-001
      planforge gate check --stage plan --subject 1 --outputs
      planforge gate check --stage plan --subject 1 --gates docs/gates.md
    """
    from planforge.app import facts

    checked = facts.check(here(), stage, subject, outputs=outputs, pipeline=pipeline, document=gates)
    show(checked.result, "", as_json=True)
    ctx.exit(checked.exit_code)


def _actor(project: Project, given: str | None) -> str:
    from planforge.app import deciders

    return deciders.person(project, given, terminal=sys.stdin.isatty())


def _listed(found: GateList, *, everything: bool) -> str:
    if not found.gates:
        return "there was no gate yet" if everything else "no change waits for a person"
    rows = [
        (gate.name, *((gate.status,) if everything else ()), f"{gate.plan}/{gate.step}", _first(gate))
        for gate in found.gates
    ]
    return table(rows) + ("" if everything else f"\n\nnext: planforge gate show {found.gates[0].name}")


def _first(gate: GateRow) -> str:
    more = f" (and {len(gate.reasons) - 1} more)" if len(gate.reasons) > 1 else ""
    return (visible(gate.reasons[0]) if gate.reasons else "") + more


def _decided(decided: Decided) -> str:
    gate = decided.gate
    text = f"{gate.status} {gate.name} by {visible(gate.actor)}, for tree {gate.content[:12]} and no other"
    return "\n".join([text, *(f"next: planforge resume {run}" for run in decided.runs)])


def _view(view: GateView) -> str:
    gate = view.gate
    what = f"{gate.plan}/{gate.step}, attempt {gate.attempt}"
    head = [f"{gate.name}  {gate.status}  {what}", f"tree {gate.content}  on {gate.base[:12]}"]
    if gate.actor:
        head.append(
            f"{gate.status} by {visible(gate.actor)}" + (f": {visible(gate.reason)}" if gate.reason else "")
        )
    why = "Why\n" + "\n".join(f"  {visible(reason)}" for reason in gate.reasons)
    rows = [
        (file.change, f"+{file.added}", f"-{file.removed}", visible(file.path), ", ".join(file.notes))
        for file in view.files
    ]
    files = "Files\n" + table(rows, "  ")
    parts = ["\n".join(head), why, files, *("\n".join(_file(file)) for file in view.files)]
    if gate.status == "waiting":
        parts.append(
            f"next: planforge gate approve {gate.name}\n"
            f'or    planforge gate reject {gate.name} --reason "..."'
        )
    return "\n\n".join(parts)


def _file(file: FileDiff) -> Iterator[str]:
    yield _coloured(f"=== {visible(file.path)} ({file.change})", bold=True)
    for note in file.notes:
        yield f"    {visible(note)}"
    for number, hunk in enumerate(file.hunks):
        if number:
            yield "    ..."
        yield from map(_line, hunk)


def _line(line: DiffLine) -> str:
    mark = "+" if line.old is None else "-" if line.new is None else " "
    numbers = f"{line.old if line.old is not None else '':>5} {line.new if line.new is not None else '':>5}"
    text = f"{numbers} {mark} {visible(line.text)}".rstrip()
    return _coloured(text, fg={"+": "green", "-": "red"}.get(mark))


def _coloured(text: str, *, fg: str | None = None, bold: bool = False) -> str:
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain or not (fg or bold) else click.style(text, fg=fg, bold=bold or None)
