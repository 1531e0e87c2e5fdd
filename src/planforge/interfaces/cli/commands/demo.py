"""`planforge demo`: a whole run in a new directory."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.event_words import first_line
from planforge.interfaces.cli.layout import visible
from planforge.interfaces.cli.output import JsonCommand, show, talk

if TYPE_CHECKING:
    from planforge.app.overview.report import Attempt, Document

NO_MODEL = (
    "No model is called: the rehearsal agent plays a script. Everything else is real: git, tests, ledger."
)


@click.command(cls=JsonCommand)
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option("--pace", default=0.6, show_default=True, help="Seconds of rehearsed work in each scene.")
@click.option(
    "--agent", default="", metavar="NAME", help="Let a real agent play, with a script as its model."
)
@click.option("--live", is_flag=True, help="With --agent: use its own service, at its price.")
def demo(directory: Path | None, pace: float, agent: str, live: bool) -> int:
    """Play a whole run in a new DIRECTORY

    A request becomes a plan. An auditor finds a hole in it; the plan is revised and approved. Two phases run
    at the same time. One agent says that all tests pass when they do not, is caught and tries again. The work
    lands on a branch. No model, no account, no key.

    With --agent a real program plays, through the same flows. A scripted server on this machine answers in
    place of its model, so it needs no account and costs nothing. With --live its own service answers.

    \b
    Examples:
      planforge demo
      planforge demo --agent claude
      planforge demo /tmp/story --json
    """
    from planforge.app import demo as demos
    from planforge.app import driver
    from planforge.app.demo import story
    from planforge.app.overview import report
    from planforge.interfaces.cli.progress import shown

    if live and not agent:
        raise click.UsageError("--live needs --agent")
    project, run = demos.begin(directory, pace=pace, agent=agent, live=live)
    note = _who(agent, live=live)
    confined = "".join(f"{line}\n" for line in _confinement())
    talk(f"{run} in {project.root}\n{note}\n{confined}\nRequest: {story.REQUEST}\n")
    with shown() as screen:
        ended = driver.drive(project, run, screen, screen)
    document = report.of_run(project, run)
    show(document, lambda document: _story(document, project.root, note))
    return ended.exit_code


def _who(agent: str, *, live: bool) -> str:
    """The agent that plays, and its cost."""
    if not agent:
        return NO_MODEL
    if live:
        return f"Agent {agent} asks its own service, with your account and at its price."
    return (
        f"Agent {agent} is real, its model is a script: no account, no tokens. "
        "Everything else is real: git, tests, ledger."
    )


def _confinement() -> Iterator[str]:
    """A warning, if this machine has no sandbox that protects files."""
    from planforge.workspace.sandbox import Level, strongest

    level = strongest()
    if level is Level.PROCESSES:
        yield "This machine has no sandbox for files: agents and checks can read and change all your files."
    if level is Level.NONE:
        yield "This machine has no sandbox: agents and checks can read and change all your files."
        yield "The demo runs anyway, because it is Planforge's own script. A real agent is refused until you"
        yield "install a sandbox or set `unconfined = true`; `planforge doctor` says what is missing."


def _story(document: Document, root: Path, note: str) -> str:
    shown = visible(str(root))
    parts = [f"\n{'✓' if document.status == 'done' else '✗'} {document.reason}. {note}"]
    tries = ((step.step, attempt) for step in document.steps for attempt in step.attempts)
    parts += [_caught(step, attempt) for step, attempt in tries if attempt.rejected]
    scores = ", ".join(f"{step.step} {step.score.value}" for step in document.steps if step.score)
    parts.append(f"Score: {document.score} of 1000 ({scores})")
    places = [
        f"repository   {shown} (its checkout is unchanged)",
        f"plan         {document.path}",
        f"landed work  branch {document.branch} at {document.landed_commit[:12]}",
        "ledger       .planforge/ledger.db, bodies in .planforge/objects",
        "kept tries   refs/planforge/archive/",
    ]
    parts.append("\n".join(places))
    command = _command()
    commands = [
        f"cd {visible(shlex.quote(str(root)))}",
        f"{command} status",
        f"{command} log",
        f"{command} plan show 1",
        f"{command} verify",
        f"git log --stat {document.branch}",
        f"{command} land",
    ]
    parts.append("Try next:\n" + "\n".join(f"  {line}" for line in commands))
    return "\n\n".join(parts)


def _caught(step: str, attempt: Attempt) -> str:
    evidence = attempt.evidence[-1] if attempt.evidence else None
    seen = f"{evidence.outcome.value}: {evidence.reason}" if evidence else attempt.rejected
    return (
        f"Caught in {step}, attempt {attempt.attempt}:\n"
        f"  the agent said  {first_line(attempt.claim)}\n"
        f"  Planforge saw   {seen}"
    )


def _command() -> str:
    """How to call this program from another directory."""
    called = Path(sys.argv[0])
    on_path = shutil.which("planforge")
    if on_path and called.exists() and Path(on_path).samefile(called):
        return "planforge"
    if called.name in ("planforge", "pf"):
        return shlex.quote(str(called.resolve()))
    return f"{shlex.quote(sys.executable)} -m planforge"
