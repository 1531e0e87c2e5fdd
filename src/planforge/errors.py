"""
Everything Planforge can say no with, and the exit code each no has.

    PlanforgeError                     1  failed
    ├── InvalidInput                   2  the command or a setting is wrong
    │   ├── InvalidDocument               a plan or phases file does not parse
    │   └── InvalidGraph                  steps with a cycle, an unknown or a doubled id
    ├── NotFound                       3  what was asked for is not there, or cannot be read
    │   ├── NoRepository                  no git, no repository, or one without files
    │   ├── NotInitialised                a repository without `.planforge`
    │   └── LedgerUnreadable              a ledger that is corrupt, too new, or out of reach
    ├── NoAgent                        4  no agent program, or one that cannot be used
    │   ├── AgentUnavailable              its program, its adapter or its service is not there
    │   └── AgentUnauthenticated          it wants its person to log in
    ├── RefusedByGate                  5  a gate is closed: no approval, or it was voided
    │   ├── StepBlocked                   the step waits for something, each thing named
    │   ├── PhasesStale                   the plan is another than its phases were made from
    │   ├── StaleView                     a decision twice, too late, or about what is not there any more
    │   ├── StaleFence                    the lease of a change is not, or no longer, its holder's
    │   └── Unleased                      a change to a path that no lease of its holder covers
    ├── NeedsPerson                    6  a person must decide first
    │   └── BudgetGone                    what the work may cost is used up or put aside
    ├── Locked                         7  somebody else is at it
    │   ├── LeaseHeld                     a path is leased to somebody else
    │   └── WouldDeadlock                 waiting for the lease would never end
    ├── TryLater                      75  nothing is wrong, but not now
    │   └── AgentLimited                  the agent's usage limit is reached, until a known time or not
    ├── Interrupted                  130  stopped on request, can be resumed
    ├── LedgerUnwritable               1  the disk is full or the ledger cannot be written
    ├── Conflict                       1  the stream moved on under an append
    │   ├── Fenced                        another driver has taken the run
    │   └── Superseded                    the plan has a newer revision
    ├── Diverged                       1  a replay asks for another effect than was recorded
    └── CannotPerform                  1  an effect was tried and the world said no: an outcome, recorded
        ├── AgentFailed                   the agent did not answer properly
        │   ├── AgentTimedOut                 it was silent, or at it, for too long
        │   ├── AgentCancelled                it was stopped, by us or by itself
        │   ├── AgentMalformed                what it said has not the form it must have
        │   ├── AgentEmpty                    it ended properly and said nothing
        │   ├── AgentStrayed                  it changed what it may not, or reached out of its worktree
        │   └── SessionUnknown                it does not know the conversation it was to go on with
        ├── GitFailed                     git refused
        ├── PlanEdited                    the plan on disk is not the one we wrote
        ├── LeaseLost                     the lease of a change was gone before it could land
        ├── SecretFound                   a change holds a secret, so nothing of it is committed
        └── PerformerFailed               what a flow sees of any of these, live or replayed

A message is one line with code in backticks. A hint, if any, says what to do next, as actions (`actions.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planforge.actions import Hint


class PlanforgeError(Exception):
    """Anything Planforge refuses or fails to do."""

    exit_code = 1

    def __init__(self, message: str, hint: Hint | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidInput(PlanforgeError):
    """The command line or a setting makes no sense."""

    exit_code = 2


class InvalidDocument(InvalidInput):
    """A document does not have the form it must have."""


class InvalidGraph(InvalidInput):
    """Steps that cannot be a plan."""


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


class AgentUnavailable(NoAgent):
    """The program, its adapter or the service behind it is not there."""


class AgentUnauthenticated(NoAgent):
    """The agent wants its person to log in first."""


class RefusedByGate(PlanforgeError):
    """A gate is closed."""

    exit_code = 5


class StepBlocked(RefusedByGate):
    """The step cannot start yet."""


class PhasesStale(RefusedByGate):
    """The plan has changed since its phases were made."""


class StaleView(RefusedByGate):
    """A person decided what is decided, gone, or not what they looked at; what is so now is said."""

    def __init__(self, message: str, hint: Hint | None = None, *, current: object = None) -> None:
        super().__init__(message, hint)
        self.current = current
        """What is so now, for programs."""


class StaleFence(RefusedByGate):
    """A change was made under a lease that its holder does not have any more."""


class Unleased(RefusedByGate):
    """A change touches a path that its holder has not leased."""


class NeedsPerson(PlanforgeError):
    """The run waits for a person's decision."""

    exit_code = 6


class BudgetGone(NeedsPerson):
    """The next reservation does not fit into what is left; a person may allow more."""


class Locked(PlanforgeError):
    """Another process holds what this one needs."""

    exit_code = 7


class LeaseHeld(Locked):
    """A path is leased to somebody else."""

    def __init__(self, path: str, holder: str, until: str, hint: Hint | None = None) -> None:
        super().__init__(f"`{path}` is leased to `{holder}` until {until}", hint)
        self.path = path
        self.holder = holder
        self.until = until


class WouldDeadlock(Locked):
    """Those who would be waited for wait, in the end, for whoever asks."""


class TryLater(PlanforgeError):
    """Nothing is wrong and nothing is lost, but it cannot be done now."""

    exit_code = 75


class AgentLimited(TryLater):
    """The agent's usage limit is reached."""

    def __init__(self, message: str, hint: Hint | None = None, *, until: str = "") -> None:
        super().__init__(message, hint)
        self.until = until
        """When it can go on, as an instant in UTC; empty if the agent did not say."""


class Interrupted(PlanforgeError):
    """Stopped on request; nothing is lost."""

    exit_code = 130


class LedgerUnwritable(PlanforgeError):
    """An event could not be recorded, so nothing that depends on it may go on."""


class Conflict(PlanforgeError):
    """The stream has another version than the writer expected."""


class Fenced(Conflict):
    """Another driver has taken the run, so this one may record nothing more."""


class Superseded(Conflict):
    """The plan was rescoped; what belongs to an earlier revision cannot go on."""


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


class AgentTimedOut(AgentFailed):
    """The agent was silent for too long, or took too long."""


class AgentCancelled(AgentFailed):
    """The agent was stopped before its end."""


class AgentMalformed(AgentFailed):
    """What the agent said is not of the form that was to be expected."""


class AgentEmpty(AgentFailed):
    """The agent ended its turn and said nothing."""


class AgentStrayed(AgentFailed):
    """The agent changed what it may not; asking it again would be asking for more of that."""


class SessionUnknown(AgentFailed):
    """The agent does not know the conversation that it was to go on with; a new one may do."""


class GitFailed(CannotPerform):
    """Git refused."""


class PlanEdited(CannotPerform):
    """The plan file was changed by somebody else since Planforge last wrote it."""


class LeaseLost(CannotPerform):
    """What was made under a lease cannot land, because somebody else may have the files by now."""


class SecretFound(CannotPerform):
    """Something that must not be in any commit was about to be committed."""


class PerformerFailed(CannotPerform):
    """A recorded failure of an effect, as the flow meets it."""

    def __init__(self, error: str, message: str, hint: Hint | None = None) -> None:
        super().__init__(message, hint)
        self.error = error


# What was probably meant


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that `name` is most probably a slip for; empty if none is near."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1)), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: `; did you mean …?`, or nothing if none is near."""
    near = nearest(name, known)
    return f"; did you mean `{near}`?" if near else ""
