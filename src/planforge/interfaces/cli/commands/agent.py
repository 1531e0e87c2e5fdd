"""`planforge agent`: list agents, test them, add and remove your own."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from planforge.app.agents import registry
from planforge.app.agents.registry import AgentList, AgentRow
from planforge.app.project import Project
from planforge.errors import NotFound
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.layout import paragraphs, plain, section, table
from planforge.interfaces.cli.output import JsonGroup, show, talk, wants_json
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from planforge.app.agents.conformance import Checked, Conformance

NONE = "no agent is installed; to see Planforge work without one: planforge demo"
SEEN = 100
"""Columns of an observation that are shown; the JSON has all of it."""


@click.group(cls=JsonGroup)
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
def list_(measure: bool, everything: bool) -> None:
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
    show(registry.listed(_project(), measure=measure), lambda found: _listed(found, everything=everything))


@agent.command()
@click.argument("name")
@click.option("--live", is_flag=True, help="Use the agent's own service, which may cost money.")
@click.option("--only", "only", multiple=True, metavar="CHECK", help="Only this check; can be repeated.")
def test(name: str, live: bool, only: tuple[str, ...]) -> int:
    """Test what an agent really does

    The checks: write, read-only, resume, cancel, time-out, usage, errors.

    The agent works in a temporary repository. A scripted model on this machine answers it, so it costs
    nothing and needs no login. Exits with 0 only if every check passed.

    \b
    Examples:
      planforge agent test claude
      planforge agent test codex --only write --only read-only
      planforge agent test my-agent --live
    """
    import asyncio

    from planforge.app.agents import conformance

    quiet = wants_json()

    def told(checked: Checked) -> None:
        if not quiet:
            talk(f"  {checked.check}: {checked.outcome}")

    found = asyncio.run(conformance.of(name, live=live, only=only, told=told))
    show(found, _tested)
    return 0 if found.conforms else 1


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
def add(
    name: str,
    command: tuple[str, ...],
    speaks: str,
    vendor: str,
    variables: tuple[str, ...],
    inherit: tuple[str, ...],
    login: tuple[str, ...],
) -> None:
    """Add your own agent by the command that starts it

    Adds a table to `planforge.toml` and changes nothing else there. In COMMAND and in variables, `${root}` is
    the repository, `${home}` the agent's private home and `${cwd}` its worktree.

    \b
    Examples:
      planforge agent add mine -- my-agent --acp
      planforge agent add work --speaks claude --inherit WORK_KEY -- claude-at-work -p --verbose
    """
    added = registry.add(
        here(),
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
    show(added, "\n".join(lines))


@agent.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove your own agent from `planforge.toml`

    Prints the removed lines, so that you can put them back. Refused if a role or another setting names the
    agent.

    \b
    Example:
      planforge agent remove mine
    """
    removed = registry.remove(here(), name)
    show(removed, f"removed `{removed.name}` from {removed.settings}:\n\n{removed.text.rstrip()}")


def _project() -> Project | None:
    """The project; `None` outside of one, because agents can be listed without."""
    with suppress(NotFound):
        return here()
    return None


def _variable(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"`{given}` is not of the form NAME=VALUE", param_hint="--env")
    return name, value


def _listed(found: AgentList, *, everything: bool) -> str:
    shown = [row for row in found.agents if everything or row.own or not row.by_name or row.roles]
    there = [_row(row) for row in shown if row.found]
    missing = [
        (row.name, f"`{row.program}`", row.install or "put it on PATH") for row in shown if not row.found
    ]
    names = [
        f"`{name}` is the first of {', '.join(rest)} that is installed" for name, rest in found.names.items()
    ]
    head = ("agent", "version", "login", "start", "roles", "program")
    return paragraphs(
        table([head, *there]) if there else NONE,
        section("Not installed", missing),
        "\n".join([*names, _confined(found)]),
    )


def _row(row: AgentRow) -> tuple[str, ...]:
    start = f"{row.startup_seconds:.1f} s" if row.startup_seconds is not None else "-"
    return (
        row.name,
        plain(row.version) or "-",
        _login(row),
        start,
        ", ".join(row.roles) or "-",
        f"{plain(row.path)} {row.sha256[:12]}",
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


def _tested(found: Conformance) -> str:
    head = ("check", "outcome", "seconds", "what was seen")
    rows = [(line.check, line.outcome, f"{line.seconds:.1f}", _short(line.seen)) for line in found.checks]
    passed = sum(line.outcome == "passed" for line in found.checks)
    where = "its own service" if found.service == "live" else "a scripted model on loopback"
    started = "" if found.startup is None else f"; it started in {found.startup:.1f} s"
    checks = counted(len(found.checks), "check")
    summary = f"`{found.agent}` passed {passed} of {checks} against {where}{started}"
    return paragraphs(table([head, *rows]), summary)


def _short(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= SEEN else f"{plain[: SEEN - 1]}…"
