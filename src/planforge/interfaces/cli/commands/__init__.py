"""
The click commands, each loaded when it is called.

Data goes to standard output, talk to standard error.
"""

from __future__ import annotations

from importlib import import_module

import click

from planforge import __version__
from planforge.errors import Interrupted, InvalidInput, did_you_mean
from planforge.interfaces.cli import help_sections

SECTIONS = {
    "Get work done": {
        "forge": ("forge", "Turn a request into an audited plan, or resume a plan"),
        "plan": ("plan", "Write, approve, run and land plans"),
        "fix": ("fix", "Make a small change without a plan"),
        "pipeline": ("pipeline", "Take a request through stages, reviews and gates"),
        "task": ("task", "List, show and resume the tasks that pipelines work on"),
        "chat": ("chat", "Type short commands, and talk to an agent about the project"),
        "land": ("land", "Merge finished plans into your branch, tested again"),
        "link": ("link", "Say which plans and tasks have to land before another one"),
        "resume": ("run", "Resume interrupted runs"),
        "cancel": ("run", "Cancel a run, also one in another terminal"),
    },
    "Decide": {
        "gate": ("gate", "Approve or reject changes that need a person"),
        "question": ("question", "Answer the questions of runs"),
        "lesson": ("lesson", "Decide what agents are told from past plans"),
    },
    "Look": {
        "status": ("status", "Show plans, runs, what waits for you, and the next command"),
        "log": ("status", "Show what happened, event by event"),
        "graph": ("graph", "Show plans, their steps and their dependencies"),
        "why": ("graph", "Explain why a step has not started"),
        "budget": ("budget", "Show what work has cost and may still cost"),
        "context": ("context", "Show what each agent was told"),
        "handoff": ("handoff", "Show what an agent left for its successor"),
        "worktree": ("worktree", "List the worktrees that agents work in"),
        "lease": ("lease", "List and release file leases"),
        "states": ("states", "Show the status diagrams"),
    },
    "Trust": {
        "evidence": ("evidence", "Run the project's own checks on a commit"),
        "score": ("graph", "Score a step from its evidence"),
        "scan": ("scan", "Find tests that cannot fail, and other weak spots"),
        "recover": ("worktree", "List archived work and get it back"),
        "verify": ("ledger", "Check that nobody changed the ledger"),
        "replay": ("replay", "Replay a recorded run and compare"),
        "backtest": ("replay", "Replay a run with other settings and compare"),
        "prove": ("replay", "Write a proof of a run to one file"),
        "check-proof": ("replay", "Check a proof, without the repository"),
        "bench": ("bench", "Measure which misbehaving agents are caught"),
    },
    "Set up": {
        "demo": ("demo", "Watch a whole run with a scripted agent: no model, no account"),
        "init": ("setup", "Set up this repository for Planforge"),
        "doctor": ("setup", "Check this machine and this repository"),
        "agent": ("agent", "List, test, add and remove agents"),
        "role": ("role", "List and show the roles that agents play"),
        "policy": ("policy", "List the loop policies, and simulate one"),
        "cleanup": ("worktree", "Remove worktrees and branches that are no longer needed"),
    },
    "For programs": {
        "verdict": ("verdict", "Parse a review and print its verdict"),
        "schema": ("ledger", "Print the JSON Schema of events and documents"),
        "rebuild": ("ledger", "Rebuild the projections from the events"),
    },
}
"""Every command in the order of `--help`, with the module that has it and its line there."""

COMMANDS = {name: command for commands in SECTIONS.values() for name, command in commands.items()}

EPILOG = """\
Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 no agent, 5 refused by a gate, 6 needs a person,
7 locked, 75 try later, 130 interrupted.
"""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, _: click.Context) -> list[str]:
        """The names, without loading anything."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        found = getattr(import_module(f"{__name__}.{COMMANDS[cmd_name][0]}"), cmd_name.replace("-", "_"))
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, so that `--help` loads none of them."""
        help_sections.write(
            formatter,
            {
                title: [(name, text) for name, (_, text) in commands.items()]
                for title, commands in SECTIONS.items()
            },
        )


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="planforge", message="%(prog)s %(version)s")
def planforge() -> None:
    """Take a request to landed code with coding agents, and believe none of them

    \b
    See it work, with no model and no account:
      planforge demo
    In your repository, with your agent:
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
    """An error of click as an error of ours."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.exceptions.NoSuchCommand) and context:
        assert isinstance(context.command, click.Group)
        known = (*context.command.list_commands(context), "--help")
        message = f"there is no command `{error.command_name}`{did_you_mean(error.command_name, known)}"
    return InvalidInput(message, f"see `{context.command_path if context else 'planforge'} --help`")
