"""
Every error of Planforge, with its exit code.

    PlanforgeError                     1  failed
    ├── InvalidInput                   2  the command or a setting is wrong
    │   ├── InvalidDocument               a plan or phases file does not parse
    │   └── InvalidGraph                  steps with a cycle, or with an unknown or duplicate id
    ├── NotFound                       3  the requested thing does not exist, or cannot be read
    │   ├── NoRepository                  no git, no repository, or one without files
    │   ├── NotInitialised                a repository without `.planforge`
    │   └── LedgerUnreadable              the ledger is corrupt, too new, or cannot be opened
    ├── NoAgent                        4  no agent is installed, or it cannot be used
    │   ├── AgentUnavailable              its program, its adapter or its service is missing
    │   └── AgentUnauthenticated          its user has to log in
    ├── RefusedByGate                  5  a gate is closed: no approval, or it was voided
    │   ├── StepBlocked                   the step has to wait; each cause is named
    │   ├── PhasesStale                   the plan was edited after its phases were generated
    │   ├── StaleView                     a decision that is repeated, late, or about outdated content
    │   ├── StaleFence                    the lease of a change does not belong to its holder (any more)
    │   └── Unleased                      a change to a path that its holder has not leased
    ├── NeedsPerson                    6  a person must decide first
    │   └── BudgetGone                    the budget is spent or reserved
    ├── Locked                         7  another process is using it
    │   ├── LeaseHeld                     a path is leased to another holder
    │   └── WouldDeadlock                 waiting for the lease would never end
    ├── TryLater                      75  nothing is wrong, but not now
    │   └── AgentLimited                  the agent's usage limit is reached, maybe until a known time
    ├── Interrupted                  130  stopped on request, can be resumed
    ├── LedgerUnwritable               1  the disk is full or the ledger cannot be written
    ├── Conflict                       1  the stream changed before an append
    │   ├── Fenced                        another driver has taken over the run
    │   └── Superseded                    the plan has a newer revision
    ├── Diverged                       1  a flow asks for another effect than the recorded one
    └── CannotPerform                  1  an effect failed; this outcome is recorded
        ├── AgentFailed                   the agent did not answer properly
        │   ├── AgentTimedOut                 it was silent, or took too long
        │   ├── AgentCancelled                it was stopped, by us or by itself
        │   ├── AgentMalformed                its answer does not have the required form
        │   ├── AgentEmpty                    it ended without an answer
        │   ├── AgentStrayed                  it changed forbidden files, or something outside of its worktree
        │   └── SessionUnknown                it does not know the conversation to resume
        ├── GitFailed                     git refused
        ├── PlanEdited                    the plan on disk is not the one we wrote
        ├── LeaseLost                     the lease ended before the change could land
        ├── SecretFound                   a change contains a secret, so none of it is committed
        └── PerformerFailed               how a flow sees any of these, live or replayed

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
    """The command line or a setting is invalid."""

    exit_code = 2


class InvalidDocument(InvalidInput):
    """A document does not have the required form."""


class InvalidGraph(InvalidInput):
    """The steps do not form a valid plan."""


class NotFound(PlanforgeError):
    """The requested thing does not exist here."""

    exit_code = 3


class NoRepository(NotFound):
    """There is no git repository with files to work on."""


class NotInitialised(NotFound):
    """The repository has no `.planforge` yet."""


class LedgerUnreadable(NotFound):
    """The ledger exists but cannot be used."""


class NoAgent(PlanforgeError):
    """No agent can do the work."""

    exit_code = 4


class AgentUnavailable(NoAgent):
    """The program, its adapter or its service is missing."""


class AgentUnauthenticated(NoAgent):
    """The agent's user has to log in first."""


class RefusedByGate(PlanforgeError):
    """A gate is closed."""

    exit_code = 5


class StepBlocked(RefusedByGate):
    """The step cannot start yet."""


class PhasesStale(RefusedByGate):
    """The plan was edited after its phases were generated."""


class StaleView(RefusedByGate):
    """A decision is repeated, late, or about outdated content; the message has the current state."""

    def __init__(self, message: str, hint: Hint | None = None, *, current: object = None) -> None:
        super().__init__(message, hint)
        self.current = current
        """The current state, for programs."""


class StaleFence(RefusedByGate):
    """A change was made under a lease that its holder has lost."""


class Unleased(RefusedByGate):
    """A change touches a path that its holder has not leased."""


class NeedsPerson(PlanforgeError):
    """The run waits for a person's decision."""

    exit_code = 6


class BudgetGone(NeedsPerson):
    """The next reservation does not fit into the budget; a person may allow more."""


class Locked(PlanforgeError):
    """Another process holds what this one needs."""

    exit_code = 7


class LeaseHeld(Locked):
    """A path is leased to another holder."""

    def __init__(self, path: str, holder: str, until: str, hint: Hint | None = None) -> None:
        super().__init__(f"`{path}` is leased to `{holder}` until {until}", hint)
        self.path = path
        self.holder = holder
        self.until = until


class WouldDeadlock(Locked):
    """Waiting for the lease would close a cycle of holders that wait for each other."""


class TryLater(PlanforgeError):
    """Nothing is wrong and nothing is lost, but it cannot be done now."""

    exit_code = 75


class AgentLimited(TryLater):
    """The agent's usage limit is reached."""

    def __init__(self, message: str, hint: Hint | None = None, *, until: str = "") -> None:
        super().__init__(message, hint)
        self.until = until
        """When the limit ends, as an instant in UTC; empty if the agent did not say."""


class Interrupted(PlanforgeError):
    """Stopped on request; nothing is lost."""

    exit_code = 130


class LedgerUnwritable(PlanforgeError):
    """An event could not be recorded, so nothing that depends on it may continue."""


class Conflict(PlanforgeError):
    """The stream has another version than the writer expected."""


class Fenced(Conflict):
    """Another driver has taken over the run, so this one may record nothing more."""


class Superseded(Conflict):
    """The plan was rescoped; work on an earlier revision cannot continue."""


class Diverged(PlanforgeError):
    """The flow asked for another effect than the recorded one."""

    def __init__(self, key: str, recorded: str, asked: str) -> None:
        super().__init__(f"effect `{key}` diverged: recorded {recorded}, asked {asked}")
        self.key = key
        self.recorded = recorded
        self.asked = asked


class CannotPerform(PlanforgeError):
    """An effect failed; the driver records this as its outcome."""


class AgentFailed(CannotPerform):
    """The agent did not give a proper answer."""


class AgentTimedOut(AgentFailed):
    """The agent was silent for too long, or took too long."""


class AgentCancelled(AgentFailed):
    """The agent was stopped before its end."""


class AgentMalformed(AgentFailed):
    """The agent's answer does not have the required form."""


class AgentEmpty(AgentFailed):
    """The agent ended its turn without an answer."""


class AgentStrayed(AgentFailed):
    """The agent changed forbidden files; it is not asked again."""


class SessionUnknown(AgentFailed):
    """The agent does not know the conversation to resume; a new one may work."""


class GitFailed(CannotPerform):
    """Git refused."""


class PlanEdited(CannotPerform):
    """The plan file was edited since Planforge last wrote it."""


class LeaseLost(CannotPerform):
    """A change cannot land because its lease ended; another holder may have the files now."""


class SecretFound(CannotPerform):
    """A change contains a secret, which must not be committed."""


class PerformerFailed(CannotPerform):
    """A recorded failure of an effect, as the flow sees it."""

    def __init__(self, error: str, message: str, hint: Hint | None = None) -> None:
        super().__init__(message, hint)
        self.error = error


# Suggestions for unknown names


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most similar to `name`; empty if none is similar."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1)), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: `; did you mean …?`, or nothing if none is similar."""
    near = nearest(name, known)
    return f"; did you mean `{near}`?" if near else ""
