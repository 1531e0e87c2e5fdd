"""
The commands, by click, each loaded when it is called.

Data goes to standard output, talk to standard error.
"""

from __future__ import annotations

from importlib import import_module

import click

from planforge import __version__
from planforge.errors import Interrupted
from planforge.interfaces.cli.printing import as_document

COMMANDS = {
    "agent": ("planforge.interfaces.cli.agent", "List, test, add and remove agents"),
    "backtest": ("planforge.interfaces.cli.prove", "Say how a run would have gone under other settings"),
    "bench": ("planforge.interfaces.cli.bench", "Measure what agents that misbehave get away with"),
    "budget": ("planforge.interfaces.cli.budget", "Show what work has cost and may cost"),
    "cancel": ("planforge.interfaces.cli.work", "End a run for good, whoever drives it"),
    "chat": ("planforge.interfaces.cli.chat", "Type commands, and talk to an agent about the project"),
    "check-proof": ("planforge.interfaces.cli.prove", "Check a proof without the repository"),
    "cleanup": ("planforge.interfaces.cli.recovery", "Remove what nobody needs any more"),
    "context": ("planforge.interfaces.cli.context", "Show what agents were told, part by part"),
    "demo": ("planforge.interfaces.cli.demo", "Play the whole story with the rehearsal agent"),
    "doctor": ("planforge.interfaces.cli.look", "Check this machine and this repository"),
    "evidence": ("planforge.interfaces.cli.evidence", "Say what the project's own checks say of a tree"),
    "fix": ("planforge.interfaces.cli.fix", "Make a small change, without a plan"),
    "forge": ("planforge.interfaces.cli.forge", "Turn a request into an audited plan, or go on with one"),
    "gate": ("planforge.interfaces.cli.gate", "Look at changes that need a person, and decide"),
    "graph": ("planforge.interfaces.cli.graph", "Show plans, steps and what they depend on"),
    "handoff": ("planforge.interfaces.cli.handoff", "Show what an agent left to its successor"),
    "init": ("planforge.interfaces.cli.work", "Make this repository ready"),
    "land": ("planforge.interfaces.cli.land", "Land finished plans on your branch"),
    "lease": ("planforge.interfaces.cli.lease", "List and release file leases"),
    "lesson": ("planforge.interfaces.cli.lesson", "Keep what was learned, and look at it"),
    "log": ("planforge.interfaces.cli.look", "Show what happened"),
    "pipeline": ("planforge.interfaces.cli.pipeline", "List, show, check and run pipelines"),
    "plan": ("planforge.interfaces.cli.plan", "Make, list, show, approve, run, cancel and close plans"),
    "policy": ("planforge.interfaces.cli.policy", "Try the policies of loops on a trajectory"),
    "prove": ("planforge.interfaces.cli.prove", "Write everything that shows how a run came about"),
    "question": ("planforge.interfaces.cli.question", "Look at what runs ask, and answer"),
    "rebuild": ("planforge.interfaces.cli.ledger", "Fold the tables anew from the events"),
    "recover": ("planforge.interfaces.cli.recovery", "List archived work and get it back"),
    "replay": ("planforge.interfaces.cli.prove", "Decide a recorded run again and compare"),
    "resume": ("planforge.interfaces.cli.work", "Go on with interrupted runs"),
    "role": ("planforge.interfaces.cli.role", "List and show the roles that agents play"),
    "scan": ("planforge.interfaces.cli.scan", "Find tests that are worth less than they look"),
    "schema": ("planforge.interfaces.cli.ledger", "Print the JSON Schema of events and documents"),
    "score": ("planforge.interfaces.cli.graph", "Show what a step's evidence is worth"),
    "states": ("planforge.interfaces.cli.states", "Show which status follows which"),
    "status": ("planforge.interfaces.cli.look", "Show what there is and what to do next"),
    "task": ("planforge.interfaces.cli.task", "List and show tasks, and go on with those that are stuck"),
    "verdict": ("planforge.interfaces.cli.verdict", "Say what a review comes to"),
    "verify": ("planforge.interfaces.cli.look", "Check that the ledger is what was written"),
    "why": ("planforge.interfaces.cli.graph", "Say why a step has not started"),
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
    except click.ClickException as error:
        error.show()
        if "--json" in words:
            said = {"code": error.exit_code, "error": type(error).__name__, "message": error.format_message()}
            click.echo(as_document({"error": {**said, "hint": None}}))
        return error.exit_code
    return code if isinstance(code, int) else 0
