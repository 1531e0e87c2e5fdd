"""
Everything Planforge can say no with, and the exit code each no has.

    PlanforgeError                     1  failed
    ├── InvalidInput                   2  the command or a setting is wrong
    │   └── InvalidDocument               a plan or phases file does not parse
    ├── NotFound                       3  what was asked for is not there, or cannot be read
    │   ├── NoRepository                  no git, no repository, or one without files
    │   ├── NotInitialised                a repository without `.planforge`
    │   └── LedgerUnreadable              a ledger that is corrupt, too new, or out of reach
    ├── NoAgent                        4  no agent program, or one that is not logged in
    ├── RefusedByGate                  5  a gate is closed: no approval, or it was voided
    ├── NeedsPerson                    6  a person must decide first
    ├── Locked                         7  somebody else is at it
    ├── Interrupted                  130  stopped on request, can be resumed
    ├── LedgerUnwritable               1  the disk is full or the ledger cannot be written
    ├── Conflict                       1  the stream moved on under an append
    │   └── Fenced                        another driver has taken the run
    ├── Diverged                       1  a replay asks for another effect than was recorded
    └── CannotPerform                  1  an effect was tried and the world said no: an outcome, recorded
        ├── AgentFailed                   the agent did not answer properly
        ├── GitFailed                     git refused
        ├── PlanEdited                    the plan on disk is not the one we wrote
        └── PerformerFailed               what a flow sees of any of these, live or replayed

A message is one line with code in backticks. A hint, if any, is the next command to type.
"""

from __future__ import annotations


class PlanforgeError(Exception):
    """Anything Planforge refuses or fails to do."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidInput(PlanforgeError):
    """The command line or a setting makes no sense."""

    exit_code = 2


class InvalidDocument(InvalidInput):
    """A document does not have the form it must have."""


class NotFound(PlanforgeError):
    """What was asked for does not exist here."""

    exit_code = 3


class NoRepository(NotFound):
    """There is no git repository with files to work on."""


class NotInitialised(NotFound):
    """The repository has no `.planforge` yet."""


class LedgerUnreadable(NotFound):
    """The ledger is there but cannot be used."""


class NoAgent(PlanforgeError):
    """There is no agent that could do the work."""

    exit_code = 4


class RefusedByGate(PlanforgeError):
    """A gate is closed."""

    exit_code = 5


class NeedsPerson(PlanforgeError):
    """The run waits for a person's decision."""

    exit_code = 6


class Locked(PlanforgeError):
    """Another process holds what this one needs."""

    exit_code = 7


class Interrupted(PlanforgeError):
    """Stopped on request; nothing is lost."""

    exit_code = 130


class LedgerUnwritable(PlanforgeError):
    """An event could not be recorded, so nothing that depends on it may go on."""


class Conflict(PlanforgeError):
    """The stream has another version than the writer expected."""


class Fenced(Conflict):
    """Another driver has taken the run, so this one may record nothing more."""


class Diverged(PlanforgeError):
    """The flow asked for another effect than the one on record."""

    def __init__(self, key: str, recorded: str, asked: str) -> None:
        super().__init__(f"effect `{key}` diverged: recorded {recorded}, asked {asked}")
        self.key = key
        self.recorded = recorded
        self.asked = asked


class CannotPerform(PlanforgeError):
    """An effect was tried and did not work; the driver records it as the effect's outcome."""


class AgentFailed(CannotPerform):
    """The agent did not give a proper answer."""


class GitFailed(CannotPerform):
    """Git refused."""


class PlanEdited(CannotPerform):
    """The plan file was changed by somebody else since Planforge last wrote it."""


class PerformerFailed(CannotPerform):
    """A recorded failure of an effect, as the flow meets it."""

    def __init__(self, error: str, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.error = error
