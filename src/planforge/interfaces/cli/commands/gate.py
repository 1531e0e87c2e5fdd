"""`planforge gate`: approve or reject changes that need a person."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click

from planforge.app.decisions import gates
from planforge.app.decisions.gates import Decided, GateList, GateRow, GateView
from planforge.app.evidence.diffs import DiffLine, FileDiff
from planforge.interfaces.cli.caller import deciding_at_gate, here
from planforge.interfaces.cli.layout import table, visible
from planforge.interfaces.cli.options import actor_option, optional_reason_option
from planforge.interfaces.cli.output import JsonGroup, show

SEEN = "The tree you reviewed, as `gate show` prints it; refused if it has changed."


@click.group(cls=JsonGroup)
def gate() -> None:
    """Approve or reject changes that need a person

    A change to protected paths, such as a CI file or a new dependency, waits at a gate before it lands. An
    approval is valid for exactly the tree that is shown, and for one run.
    """


@gate.command(name="list")
@click.option("--all", "everything", is_flag=True, help="Also gates that are decided or void.")
def list_(everything: bool) -> None:
    """List the gates that wait for a person

    \b
    Examples:
      planforge gate list
      planforge gate list --json | jq -r '.gates[].name'
    """
    project = here()
    found = gates.every(project) if everything else gates.waiting(project)
    show(found, lambda found: _listed(found, everything=everything))


@gate.command(name="show")
@click.argument("name", metavar="GATE")
def show_(name: str) -> None:
    """Show why a change waits, and the change

    GATE is its name or number: `gate-007`, `7`. Secrets are removed; control characters are escaped.

    \b
    Examples:
      planforge gate show 1
      planforge gate show 1 --json | jq '.files[].path'
    """
    show(gates.show(here(), name), _view)


@gate.command()
@click.argument("name", metavar="GATE")
@optional_reason_option
@actor_option("Who decides, if there is no terminal")
@click.option("--seen", metavar="HASH", help=SEEN)
def approve(name: str, reason: str, actor: str | None, seen: str | None) -> None:
    """Approve a change, for exactly the tree that is shown

    Opens this gate once, for this tree. Exits with 5 if you may not decide, or if it is decided already.

    \b
    Examples:
      planforge gate approve 1
      planforge gate approve 1 --as "Ada Lovelace" --reason "the new job is what we wanted"
      planforge gate approve 1 --seen dec2b31d2c8d
    """
    project, who = deciding_at_gate(actor)
    show(gates.approve(project, name, actor=who, reason=reason, seen=seen), _decided)


@gate.command()
@click.argument("name", metavar="GATE")
@click.option("--reason", required=True, metavar="TEXT", help="Why; the next agent is told.")
@actor_option("Who decides, if there is no terminal")
@click.option("--seen", metavar="HASH", help=SEEN)
def reject(name: str, reason: str, actor: str | None, seen: str | None) -> None:
    """Reject a change

    The attempt is rejected. If the step has attempts left, the next agent is told why.

    \b
    Example:
      planforge gate reject 1 --reason "no new dependencies for this"
    """
    project, who = deciding_at_gate(actor)
    show(gates.reject(project, name, actor=who, reason=reason, seen=seen), _decided)


@gate.command(cls=click.Command)
@click.option("--stage", required=True, help="The stage that the gate is for.")
@click.option("--subject", required=True, metavar="ID", help="The task or plan at the gate.")
@click.option("--outputs", is_flag=True, help="Check the outputs of the stage, not the conditions before it.")
@click.option("--pipeline", default="", metavar="NAME", help="Use another pipeline than the task's own.")
@click.option(
    "--gates", default="", metavar="FILE", help="Read the gate from a fenced block in this Markdown file."
)
def check(stage: str, subject: str, outputs: bool, pipeline: str, gates: str) -> int:
    """Check whether the gate of a stage is open now

    Prints JSON: whether the gate is open, or why not (`reasonCode`, `detail`) and how to open it
    (`remediation`). Exits with 0 if it is open, 1 if it is closed, 2 if the gate or the arguments are
    invalid. Changes nothing.

    \b
    Examples:
      planforge gate check --stage implement --subject task-001
      planforge gate check --stage plan --subject 1 --outputs
      planforge gate check --stage plan --subject 1 --gates docs/gates.md
    """
    from planforge.app.tasks import facts

    checked = facts.check(here(), stage, subject, outputs=outputs, pipeline=pipeline, document=gates)
    show(checked.result, "", as_json=True)
    return checked.exit_code


def _listed(found: GateList, *, everything: bool) -> str:
    if not found.gates:
        return "no gates yet" if everything else "no gate is waiting"
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
        how = "rejected" if gate.status == "rejected" else "approved"
        void = (
            "" if gate.status in ("approved", "rejected", "used") else f" ({gate.status}: it opens nothing)"
        )
        why = f": {visible(gate.reason)}" if gate.reason else ""
        head.append(f"{how} by {visible(gate.actor)}{why}{void}")
    if gate.edited:
        head.append(f"`{visible(gate.edited)}` was edited since: this gate opens nothing any more")
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
    if gate.edited:
        parts.append(f"next: planforge resume {gate.run}")
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
