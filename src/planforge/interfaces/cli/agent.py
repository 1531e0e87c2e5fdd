"""`planforge agent`: list agents, test them, add and remove your own."""

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

    An agent is a program that writes code, such as Claude Code, Codex or Gemini CLI, with your account for
    it. Planforge starts each agent in a sandbox with a private home, and believes nothing it says.
    """


@agent.command(name="list")
@click.option("--measure", is_flag=True, help="Start each agent and measure how long it takes to answer.")
@click.option(
    "--all", "everything", is_flag=True, help="Also agents that are used only if a setting names them."
)
@json_option
def list_(measure: bool, everything: bool, as_json: bool) -> None:
    """Show which agents are installed and logged in

    Each line shows the name, the version, the login, the start-up time if it was measured, the roles from the
    settings, the path and the first digits of the file's hash. The first program on PATH is the one that is
    started. Uses no network and shows no secret.

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
    help="Its protocol: the Agent Client Protocol, or the output of `claude -p` or `codex exec`.",
)
@click.option("--vendor", default="", metavar="NAME", help="The vendor of its models, such as `anthropic`.")
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an environment variable for it; no secrets.",
)
@click.option("--inherit", multiple=True, metavar="NAME", help="Pass on one of your environment variables.")
@click.option("--login", multiple=True, metavar="PATH", help="A file in your home that has its login.")
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
    """Add your own agent by the command that starts it

    Adds a table to `planforge.toml` and changes nothing else there. In COMMAND and in variables, `${root}` is
    the repository, `${home}` the agent's private home and `${cwd}` its worktree.

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
    """Remove your own agent from `planforge.toml`

    Prints the removed lines, so that you can put them back. Refused if a role or another setting names the
    agent.

    \b
    Example:
      planforge agent remove mine
    """
    from planforge.app import agents

    removed = agents.remove(here(), name)
    text = f"removed `{removed.name}` from {removed.settings}:\n\n{removed.text.rstrip()}"
    show(removed, text, as_json=as_json)


def _project() -> Project | None:
    """The project, or None outside of one: agents can be listed without."""
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
        parts.append("no agent is installed; to see Planforge work without one: planforge demo")
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
    """A program's own words, or a path, without control characters."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


agent.add_command(test)
