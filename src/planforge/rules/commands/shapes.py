"""
Every command as data, and the table that says how each is typed, what it does and who may give it.

A command is a tagged structure, so that it can be recorded, sent and compared. The table is what help, usage
errors and the documentation are made from; a command that is missing in it does not load.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

# Plans


class PlanHelp(msgspec.Struct, frozen=True, kw_only=True, tag="plan help"):
    """List the commands about plans."""


class PlanCreate(msgspec.Struct, frozen=True, kw_only=True, tag="plan create", omit_defaults=True):
    """Make a plan from a description, to be filled in by hand or by a forge."""

    description: str
    context: str = ""
    """What was said around it; a person's command has none of its own."""


class PlanList(msgspec.Struct, frozen=True, kw_only=True, tag="plan list", omit_defaults=True):
    """One line for each plan, or for those with one status."""

    status: str = ""


class PlanShow(msgspec.Struct, frozen=True, kw_only=True, tag="plan show"):
    """One plan."""

    plan: str


class PlanApprove(msgspec.Struct, frozen=True, kw_only=True, tag="plan approve"):
    """Say yes to a plan."""

    plan: str


class PlanClose(msgspec.Struct, frozen=True, kw_only=True, tag="plan close", omit_defaults=True):
    """Say that nothing more is to be done with a plan."""

    plan: str
    reason: str = ""


class PlanCancel(msgspec.Struct, frozen=True, kw_only=True, tag="plan cancel", omit_defaults=True):
    """Stop the run of a plan and give the plan up; without one, stop the run of a plan that goes on here."""

    plan: str = ""
    reason: str = ""


class PlanPhases(msgspec.Struct, frozen=True, kw_only=True, tag="plan phases", omit_defaults=True):
    """Show the phases of a plan, making them if there are none."""

    plan: str
    regenerate: bool = False
    keep_done: bool = False


class PlanRun(msgspec.Struct, frozen=True, kw_only=True, tag="plan run"):
    """Carry out what is left of a plan."""

    plan: str


class PlanRunOne(msgspec.Struct, frozen=True, kw_only=True, tag="plan run-one"):
    """Carry out the next phase."""

    plan: str


class PlanRunPhase(msgspec.Struct, frozen=True, kw_only=True, tag="plan run-phase"):
    """Carry out one phase."""

    plan: str
    phase: str


class PlanSkip(msgspec.Struct, frozen=True, kw_only=True, tag="plan skip", omit_defaults=True):
    """Leave out the phase that is under way or has failed, or the one that is named."""

    plan: str
    phase: str = ""
    reason: str = ""


class PlanSkipTo(msgspec.Struct, frozen=True, kw_only=True, tag="plan skip-to", omit_defaults=True):
    """Leave out whatever comes before a phase."""

    plan: str
    phase: str
    reason: str = ""


class PlanRetry(msgspec.Struct, frozen=True, kw_only=True, tag="plan retry", omit_defaults=True):
    """Try the phase that has failed once more, or the one that is named."""

    plan: str
    phase: str = ""


class PlanAudit(msgspec.Struct, frozen=True, kw_only=True, tag="plan audit"):
    """Audit a plan as it is now."""

    plan: str


class PlanLand(msgspec.Struct, frozen=True, kw_only=True, tag="plan land"):
    """Land a finished plan."""

    plan: str


class PlanDiff(msgspec.Struct, frozen=True, kw_only=True, tag="plan diff"):
    """Show what changed in a plan since its last audit."""

    plan: str


# Forges


class ForgeHelp(msgspec.Struct, frozen=True, kw_only=True, tag="forge help"):
    """List the commands about forging."""


class ForgeCreate(msgspec.Struct, frozen=True, kw_only=True, tag="forge create", omit_defaults=True):
    """Draft a plan and audit it until nothing blocks."""

    description: str
    context: str = ""


class ForgeResume(msgspec.Struct, frozen=True, kw_only=True, tag="forge resume"):
    """Go on with the forge of a plan; one that is approved is carried out."""

    plan: str


class ForgeStatus(msgspec.Struct, frozen=True, kw_only=True, tag="forge status"):
    """Say whether a forge is under way."""


class ForgeCancel(msgspec.Struct, frozen=True, kw_only=True, tag="forge cancel"):
    """End the forge that is under way, for good."""


class ForgeAudit(msgspec.Struct, frozen=True, kw_only=True, tag="forge audit"):
    """Audit a plan as it is now."""

    plan: str


# Everything


class Help(msgspec.Struct, frozen=True, kw_only=True, tag="help"):
    """List all commands."""


class Status(msgspec.Struct, frozen=True, kw_only=True, tag="status"):
    """Show what there is, what waits and what to type next."""


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """Stop what goes on here. Nothing is lost."""


class Resume(msgspec.Struct, frozen=True, kw_only=True, tag="resume", omit_defaults=True):
    """Go on with a run, or with every run that can go on."""

    run: str = ""


class Fix(msgspec.Struct, frozen=True, kw_only=True, tag="fix"):
    """Mend something small without a plan."""

    description: str


Command: TypeAlias = (
    PlanHelp
    | PlanCreate
    | PlanList
    | PlanShow
    | PlanApprove
    | PlanClose
    | PlanCancel
    | PlanPhases
    | PlanRun
    | PlanRunOne
    | PlanRunPhase
    | PlanSkip
    | PlanSkipTo
    | PlanRetry
    | PlanAudit
    | PlanLand
    | PlanDiff
    | ForgeHelp
    | ForgeCreate
    | ForgeResume
    | ForgeStatus
    | ForgeCancel
    | ForgeAudit
    | Help
    | Status
    | Stop
    | Resume
    | Fix
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """How a command is typed, what it does, and whether only a person may give it."""

    command: type[Command]
    usage: str
    meaning: str
    person: bool = False


TABLE: tuple[Row, ...] = (
    Row(command=PlanHelp, usage="!plan [help]", meaning="list these commands"),
    Row(command=PlanCreate, usage="!plan <description>", meaning="create a plan from a description"),
    Row(command=PlanList, usage="!plan list [<status>]", meaning="list plans, one line each"),
    Row(command=PlanShow, usage="!plan show <plan-id|task-id>", meaning="show a plan and its status"),
    Row(command=PlanApprove, usage="!plan approve <id>", meaning="approve a plan as it is now", person=True),
    Row(
        command=PlanClose,
        usage="!plan close <id> [<reason>]",
        meaning="close a finished plan",
        person=True,
    ),
    Row(
        command=PlanCancel,
        usage="!plan cancel [<id> [<reason>]]",
        meaning="cancel a plan and its run; alone: stop the run in this chat",
        person=True,
    ),
    Row(
        command=PlanPhases,
        usage="!plan phases [--regenerate [--keep-done]] <id>",
        meaning="show its phases; generate them if there are none",
    ),
    Row(command=PlanRun, usage="!plan run <id>", meaning="run all remaining phases"),
    Row(command=PlanRunOne, usage="!plan run-one <id>", meaning="run only the next phase"),
    Row(command=PlanRunPhase, usage="!plan run-phase <id> <phase-id>", meaning="run one phase"),
    Row(
        command=PlanSkip,
        usage="!plan skip <id> [<phase-id>] [<reason>]",
        meaning="skip the running or failed phase",
        person=True,
    ),
    Row(
        command=PlanSkipTo,
        usage="!plan skip-to <id> <phase-id> [<reason>]",
        meaning="skip all phases before this one",
        person=True,
    ),
    Row(
        command=PlanRetry,
        usage="!plan retry <id> [<phase-id>]",
        meaning="retry the failed phase",
        person=True,
    ),
    Row(command=PlanAudit, usage="!plan audit <id>", meaning="check its form, then audit it"),
    Row(command=PlanLand, usage="!plan land <id>", meaning="land a finished plan", person=True),
    Row(command=PlanDiff, usage="!plan diff <id>", meaning="what changed since its last audit"),
    Row(command=ForgeHelp, usage="!forge [help]", meaning="list these commands"),
    Row(
        command=ForgeCreate,
        usage="!forge <description>",
        meaning="draft a plan and audit it until nothing blocks",
    ),
    Row(
        command=ForgeResume,
        usage="!forge <plan-id>",
        meaning="resume its audits; if it is approved, run it",
    ),
    Row(command=ForgeStatus, usage="!forge status", meaning="show whether a forge is running"),
    Row(command=ForgeCancel, usage="!forge cancel", meaning="cancel the running forge"),
    Row(command=ForgeAudit, usage="!forge audit <id>", meaning="the same as !plan audit"),
    Row(
        command=Fix,
        usage="!fix <description>",
        meaning="make a small change without a plan",
        person=True,
    ),
    Row(command=Status, usage="!status", meaning="show plans, runs, what waits, and the next command"),
    Row(command=Stop, usage="!stop", meaning="stop the running work; nothing is lost"),
    Row(command=Resume, usage="!resume [<run-id>]", meaning="resume interrupted or waiting runs"),
    Row(command=Help, usage="!help", meaning="list all commands"),
)

_ROWS: dict[type[Command], Row] = {row.command: row for row in TABLE}


def row(kind: type[Command]) -> Row:
    """What the table says of a kind of command."""
    return _ROWS[kind]


def usage(kind: type[Command]) -> str:
    """How a kind of command is typed."""
    return _ROWS[kind].usage


def rows(word: str = "") -> tuple[Row, ...]:
    """The commands that begin with `!word`, or all."""
    return tuple(found for found in TABLE if not word or found.usage.split()[0] == f"!{word}")
