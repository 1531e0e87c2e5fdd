"""`planforge agent`: which agents there are, and adding and removing ones of one's own."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.agent_test import test
from planforge.interfaces.cli.printing import table
from planforge.interfaces.cli.show import json_option, show
from planforge.interfaces.cli.views import here

if TYPE_CHECKING:
    from planforge.app.agents import AgentList, AgentRow
    from planforge.app.project import Project

SHORT_HASH = 12


@click.group()
def agent() -> None:
    """List, test, add and remove agents

    An agent is a program that writes code: Claude Code, Codex, Gemini CLI and others, each with an account of
    its own that you have. Planforge starts it in a private home, confined, and believes nothing it says.
    """


@agent.command(name="list")
@click.option("--measure", is_flag=True, help="Start each one and see how long it takes until it answers.")
@click.option("--all", "everything", is_flag=True, help="Also those that are only taken when they are named.")
@json_option
def list_(measure: bool, everything: bool, as_json: bool) -> None:
    """Show which agents are installed and logged in

    A line has the name, the version, the login, how long it takes to start if that was measured, the roles
    that the settings give to it, its path and the beginning of the hash of its file: what lies first on PATH
    is what is started. Nothing is asked of the network, and no secret is shown.

    \b
    Examples:
      planforge agent list
      planforge agent list --measure
      planforge agent list --json | jq -r '.agents[] | select(.found) | .name'
    """
    from planforge.app import agents

    found = agents.listed(_project(), measure=measure)
    show(found, lambda: _listed(found, everything=everything), as_json=as_json)


@agent.command()
@click.argument("name")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option(
    "--speaks",
    type=click.Choice(["acp", "claude", "codex"]),
    default="acp",
    show_default=True,
    help="What it speaks: the Agent Client Protocol, or what `claude -p` or `codex exec` print.",
)
@click.option("--vendor", default="", metavar="NAME", help="Whose models it asks, such as `anthropic`.")
@click.option(
    "--env", "variables", multiple=True, metavar="NAME=VALUE", help="A variable for it. No secrets."
)
@click.option("--inherit", multiple=True, metavar="NAME", help="A variable of yours that it gets to see.")
@click.option("--login", multiple=True, metavar="PATH", help="A file of your home that holds its login.")
@json_option
def add(
    name: str,
    command: tuple[str, ...],
    speaks: str,
    vendor: str,
    variables: tuple[str, ...],
    inherit: tuple[str, ...],
    login: tuple[str, ...],
    as_json: bool,
) -> None:
    """Add an agent of your own, by the command that starts it

    Writes a table into `planforge.toml` and changes nothing else in it. In COMMAND and in variables,
    `${root}` stands for the repository, `${home}` for the agent's private home and `${cwd}` for its worktree.

    \b
    Examples:
      planforge agent add mine -- my-agent --acp
      planforge agent add work --speaks claude --inherit WORK_KEY -- claude-at-work -p --verbose
    """
    from planforge.app import agents

    project = here()
    added = agents.add(
        project,
        name,
        command,
        speaks=speaks,
        vendor=vendor,
        env=dict(map(_variable, variables)),
        inherit=inherit,
        login=login,
    )
    lines = [f"added `{added.name}` to {added.settings}", "", added.text.rstrip(), ""]
    if not added.found:
        lines.append(f"`{command[0]}` is not on PATH yet")
    lines.append(f"next: planforge agent test {added.name}")
    show(added, "\n".join(lines), as_json=as_json)


@agent.command()
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Take an agent of your own out of `planforge.toml`

    Prints what was taken out; put back, it is as it was. One that a role or another setting names stays.

    \b
    Example:
      planforge agent remove mine
    """
    from planforge.app import agents

    removed = agents.remove(here(), name)
    text = f"took `{removed.name}` out of {removed.settings}:\n\n{removed.text.rstrip()}"
    show(removed, text, as_json=as_json)


def _project() -> Project | None:
    """The project that we are in, if we are in one: agents are there without."""
    from planforge.app.project import Project
    from planforge.errors import NotFound

    with suppress(NotFound):
        return Project.find(Path.cwd())
    return None


def _variable(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"`{given}` is not of the form NAME=VALUE", param_hint="--env")
    return name, value


def _listed(found: AgentList, *, everything: bool) -> str:
    shown = [row for row in found.agents if everything or row.own or not row.by_name or row.roles]
    there = [row for row in shown if row.found]
    missing = [row for row in shown if not row.found]
    parts = []
    if there:
        head = ("agent", "version", "login", "start", "roles", "program")
        parts.append(table([head, *map(_row, there)]))
    else:
        parts.append("no agent is installed; see it work without one: planforge demo")
    if missing:
        rows = [(row.name, f"`{row.program}`", row.install or "put it on PATH") for row in missing]
        parts.append("Not installed\n" + table(rows, "  "))
    names = [
        f"`{name}` is the first of {', '.join(rest)} that is installed" for name, rest in found.names.items()
    ]
    parts.append("\n".join([*names, _confined(found)]))
    return "\n\n".join(parts)


def _row(row: AgentRow) -> tuple[str, ...]:
    start = f"{row.startup_seconds:.1f} s" if row.startup_seconds is not None else "-"
    return (
        row.name,
        _plain(row.version) or "-",
        _login(row),
        start,
        ", ".join(row.roles) or "-",
        f"{_plain(row.path)} {row.sha256[:SHORT_HASH]}",
    )


def _login(row: AgentRow) -> str:
    if row.login == "no" and row.login_command:
        return f"no: `{row.login_command}`"
    return row.login or "-"


def _confined(found: AgentList) -> str:
    if found.sandbox_problem:
        return f"sandbox: {found.sandbox_problem}"
    weaker = "" if found.sandbox == found.strongest else f", though {found.strongest} works here"
    return f"sandbox: {found.sandbox}{weaker}"


def _plain(text: str) -> str:
    """What a program said of itself, or a path, unable to do anything to a terminal."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


agent.add_command(test)
