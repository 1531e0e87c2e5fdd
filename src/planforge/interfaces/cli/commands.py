"""
The commands, by click, each loaded when it is called.

Data goes to standard output, talk to standard error.
"""

from __future__ import annotations

from importlib import import_module

import click

from planforge import __version__
from planforge.errors import Interrupted, InvalidInput, did_you_mean

COMMANDS = {
    "agent": ("planforge.interfaces.cli.agent", "List, test, add and remove agents"),
    "backtest": ("planforge.interfaces.cli.prove", "Replay a run with other settings and compare"),
    "bench": ("planforge.interfaces.cli.bench", "Measure which misbehaviour of agents is caught"),
    "budget": ("planforge.interfaces.cli.budget", "Show what work has cost and may cost"),
    "cancel": ("planforge.interfaces.cli.work", "Cancel a run, also from another terminal"),
    "chat": ("planforge.interfaces.cli.chat", "Type commands, and talk to an agent about the project"),
    "check-proof": ("planforge.interfaces.cli.prove", "Check a proof without the repository"),
    "cleanup": ("planforge.interfaces.cli.recovery", "List or remove what is no longer needed"),
    "context": ("planforge.interfaces.cli.context", "Show what agents were told, part by part"),
    "demo": ("planforge.interfaces.cli.demo", "Play the whole story with the rehearsal agent"),
    "doctor": ("planforge.interfaces.cli.look", "Check this machine and this repository"),
    "evidence": ("planforge.interfaces.cli.evidence", "Run the project's own checks on a tree"),
    "fix": ("planforge.interfaces.cli.fix", "Make a small change, without a plan"),
    "forge": ("planforge.interfaces.cli.forge", "Turn a request into an audited plan, or resume a plan"),
    "gate": ("planforge.interfaces.cli.gate", "Review changes that need a person's decision"),
    "graph": ("planforge.interfaces.cli.graph", "Show plans, steps and what they depend on"),
    "handoff": ("planforge.interfaces.cli.handoff", "Show what an agent left to its successor"),
    "init": ("planforge.interfaces.cli.work", "Set up this repository for Planforge"),
    "land": ("planforge.interfaces.cli.land", "Land finished plans on your branch"),
    "lease": ("planforge.interfaces.cli.lease", "List and release file leases"),
    "lesson": ("planforge.interfaces.cli.lesson", "Add, list and review lessons"),
    "log": ("planforge.interfaces.cli.look", "Show what happened"),
    "pipeline": ("planforge.interfaces.cli.pipeline", "List, show, check and run pipelines"),
    "plan": ("planforge.interfaces.cli.plan", "Make, list, show, approve, run, cancel and close plans"),
    "policy": ("planforge.interfaces.cli.policy", "List loop policies, and simulate one"),
    "prove": ("planforge.interfaces.cli.prove", "Write a proof of a run into one file"),
    "question": ("planforge.interfaces.cli.question", "List and answer the questions of runs"),
    "rebuild": ("planforge.interfaces.cli.ledger", "Rebuild the projections from the events"),
    "recover": ("planforge.interfaces.cli.recovery", "List archived work and get it back"),
    "replay": ("planforge.interfaces.cli.prove", "Replay a recorded run and compare"),
    "resume": ("planforge.interfaces.cli.work", "Resume interrupted runs"),
    "role": ("planforge.interfaces.cli.role", "List and show the roles that agents play"),
    "scan": ("planforge.interfaces.cli.scan", "Find tests that are worth less than they look"),
    "schema": ("planforge.interfaces.cli.ledger", "Print the JSON Schema of events and documents"),
    "score": ("planforge.interfaces.cli.graph", "Show what a step's evidence is worth"),
    "states": ("planforge.interfaces.cli.states", "Show the status diagrams"),
    "status": ("planforge.interfaces.cli.look", "Show plans, runs and what to do next"),
    "task": ("planforge.interfaces.cli.task", "List, show and resume tasks"),
    "verdict": ("planforge.interfaces.cli.verdict", "Parse a review and print its verdict"),
    "verify": ("planforge.interfaces.cli.look", "Check the integrity of the ledger"),
    "why": ("planforge.interfaces.cli.graph", "Explain why a step has not started"),
    "worktree": ("planforge.interfaces.cli.recovery", "List the worktrees that agents work in"),
}

EPILOG = """\
Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 no agent, 5 refused by a gate, 6 needs a person,
7 locked, 75 try later, 130 interrupted.
"""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, without loading anything."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        found = getattr(import_module(COMMANDS[cmd_name][0]), cmd_name.replace("-", "_"))
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, so that `--help` loads none of them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="planforge", message="%(prog)s %(version)s")
def planforge() -> None:
    """Take a request to landed code by driving coding agents, and believe none of them

    \b
    See it work, with no model and no account:
      planforge demo
    In a repository of yours, with an agent you have:
      planforge init
      planforge forge "say what you want"
      planforge plan approve 1
      planforge plan run 1
    """


def call(words: list[str]) -> int:
    """Carry out one command line and return its exit code."""
    try:
        code = planforge.main(args=words, prog_name="planforge", standalone_mode=False)
    except click.exceptions.Abort:
        raise Interrupted("stopped") from None
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        raise _misused(error) from error
    return code if isinstance(code, int) else 0


def _misused(error: click.ClickException) -> InvalidInput:
    """What click says of a command line, as we say it."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.exceptions.NoSuchCommand) and context:
        assert isinstance(context.command, click.Group)
        known = (*context.command.list_commands(context), "--help")
        message = f"there is no command `{error.command_name}`{did_you_mean(error.command_name, known)}"
    return InvalidInput(message, f"see `{context.command_path if context else 'planforge'} --help`")
