"""
Every command as data: how it is typed, what it does and who may give it.

A command is a tagged structure, so that it can be recorded, sent and compared. Help, usage errors and the
documentation are made from its usage and its docstring.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody may type to a chat."""

    usage: ClassVar[str]
    """How it is typed."""
    person: ClassVar[bool] = False
    """Whether only a person may give it."""

    @classmethod
    def meaning(cls) -> str:
        """What it does, as help says it."""
        said = (cls.__doc__ or "").removesuffix(".")
        return said[:1].lower() + said[1:]


# Plans


class PlanHelp(Command, frozen=True, kw_only=True, tag="plan help"):
    """List these commands."""

    usage = "!plan [help]"


class PlanCreate(Command, frozen=True, kw_only=True, tag="plan create"):
    """Create a plan from a description."""

    usage = "!plan <description>"
    description: str
    context: str = ""
    """What was said around it; a person's command has none of its own."""


class PlanList(Command, frozen=True, kw_only=True, tag="plan list"):
    """List plans, one line each."""

    usage = "!plan list [<status>]"
    status: str = ""


class PlanShow(Command, frozen=True, kw_only=True, tag="plan show"):
    """Show a plan and its status."""

    usage = "!plan show <plan-id|task-id>"
    plan: str


class PlanApprove(Command, frozen=True, kw_only=True, tag="plan approve"):
    """Approve a plan as it is now."""

    usage = "!plan approve <id>"
    person = True
    plan: str


class PlanClose(Command, frozen=True, kw_only=True, tag="plan close"):
    """Close a finished plan."""

    usage = "!plan close <id> [<reason>]"
    person = True
    plan: str
    reason: str = ""


class PlanCancel(Command, frozen=True, kw_only=True, tag="plan cancel"):
    """Cancel a plan and its run; alone: stop the run in this chat."""

    usage = "!plan cancel [<id> [<reason>]]"
    person = True
    plan: str = ""
    reason: str = ""


class PlanPhases(Command, frozen=True, kw_only=True, tag="plan phases"):
    """Show its phases; generate them if there are none."""

    usage = "!plan phases [--regenerate [--keep-done]] <id>"
    plan: str
    regenerate: bool = False
    keep_done: bool = False


class PlanRun(Command, frozen=True, kw_only=True, tag="plan run"):
    """Run all remaining phases."""

    usage = "!plan run <id>"
    plan: str


class PlanRunOne(Command, frozen=True, kw_only=True, tag="plan run-one"):
    """Run only the next phase."""

    usage = "!plan run-one <id>"
    plan: str


class PlanRunPhase(Command, frozen=True, kw_only=True, tag="plan run-phase"):
    """Run one phase."""

    usage = "!plan run-phase <id> <phase-id>"
    plan: str
    phase: str


class PlanSkip(Command, frozen=True, kw_only=True, tag="plan skip"):
    """Skip the running or failed phase."""

    usage = "!plan skip <id> [<phase-id>] [<reason>]"
    person = True
    plan: str
    phase: str = ""
    reason: str = ""


class PlanSkipTo(Command, frozen=True, kw_only=True, tag="plan skip-to"):
    """Skip all phases before this one."""

    usage = "!plan skip-to <id> <phase-id> [<reason>]"
    person = True
    plan: str
    phase: str
    reason: str = ""


class PlanRetry(Command, frozen=True, kw_only=True, tag="plan retry"):
    """Retry the failed phase."""

    usage = "!plan retry <id> [<phase-id>]"
    person = True
    plan: str
    phase: str = ""


class PlanAudit(Command, frozen=True, kw_only=True, tag="plan audit"):
    """Check its form, then audit it."""

    usage = "!plan audit <id>"
    plan: str


class PlanLand(Command, frozen=True, kw_only=True, tag="plan land"):
    """Land a finished plan."""

    usage = "!plan land <id>"
    person = True
    plan: str


class PlanDiff(Command, frozen=True, kw_only=True, tag="plan diff"):
    """What changed since its last audit."""

    usage = "!plan diff <id>"
    plan: str


# Forges


class ForgeHelp(Command, frozen=True, kw_only=True, tag="forge help"):
    """List these commands."""

    usage = "!forge [help]"


class ForgeCreate(Command, frozen=True, kw_only=True, tag="forge create"):
    """Draft a plan and audit it until nothing blocks."""

    usage = "!forge <description>"
    description: str
    context: str = ""


class ForgeResume(Command, frozen=True, kw_only=True, tag="forge resume"):
    """Resume its audits; if it is approved, run it."""

    usage = "!forge <plan-id>"
    plan: str


class ForgeStatus(Command, frozen=True, kw_only=True, tag="forge status"):
    """Show whether a forge is running."""

    usage = "!forge status"


class ForgeCancel(Command, frozen=True, kw_only=True, tag="forge cancel"):
    """Cancel the running forge."""

    usage = "!forge cancel"


class ForgeAudit(Command, frozen=True, kw_only=True, tag="forge audit"):
    """The same as !plan audit."""

    usage = "!forge audit <id>"
    plan: str


# Everything


class Fix(Command, frozen=True, kw_only=True, tag="fix"):
    """Make a small change without a plan."""

    usage = "!fix <description>"
    person = True
    description: str


class Status(Command, frozen=True, kw_only=True, tag="status"):
    """Show plans, runs, what waits, and the next command."""

    usage = "!status"


class Stop(Command, frozen=True, kw_only=True, tag="stop"):
    """Stop the running work; nothing is lost."""

    usage = "!stop"


class Resume(Command, frozen=True, kw_only=True, tag="resume"):
    """Resume interrupted or waiting runs."""

    usage = "!resume [<run-id>]"
    run: str = ""


class Help(Command, frozen=True, kw_only=True, tag="help"):
    """List all commands."""

    usage = "!help"


TABLE: tuple[type[Command], ...] = tuple(Command.__subclasses__())
"""All of them, in the order in which help lists them."""


def rows(word: str = "") -> tuple[type[Command], ...]:
    """The commands that begin with `!word`, or all."""
    return tuple(found for found in TABLE if not word or found.usage.split()[0] == f"!{word}")
