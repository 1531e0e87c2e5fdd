"""
Every command as data: how it is typed, what it does and who may give it.

`TABLE` has a row for each command. Help, usage errors and the documentation are made from it, and what a
command takes is read from its usage. A command that was given is one structure, so that it can be recorded,
sent and compared.
"""

from __future__ import annotations

import re

import msgspec

FIELDS = {"id": "plan", "plan-id": "plan", "plan-id|task-id": "plan", "phase-id": "phase", "run-id": "run"}
"""Which field of a command a word of a usage stands for; any other word is the name of a field itself."""
ARGUMENT = re.compile(r"(?P<optional>\[)?<(?P<word>[^<>]+)>")
FLAG = re.compile(r"--[a-z-]+")


class Form(msgspec.Struct, frozen=True):
    """A row of the table."""

    name: str
    usage: str
    """How it is typed: `<id>` must be there, `[<reason>]` may."""
    meaning: str
    """What it does, as help says it."""

    @property
    def person(self) -> bool:
        """Whether only a person may give it."""
        return self.name in PERSONAL

    @property
    def takes(self) -> dict[str, bool]:
        """The fields of a command that its words fill, in order, and whether each must be given."""
        found = ARGUMENT.finditer(self.usage)
        return {FIELDS.get(each["word"], each["word"]): not each["optional"] for each in found}

    @property
    def flags(self) -> dict[str, str]:
        """Its flags, each with the field of a command that it sets."""
        return {flag: flag.removeprefix("--").replace("-", "_") for flag in FLAG.findall(self.usage)}


TABLE = (
    Form("plan help", "!plan [help]", "list these commands"),
    Form("plan create", "!plan <description>", "create a plan from a description"),
    Form("plan list", "!plan list [<status>]", "list plans, one line each"),
    Form("plan show", "!plan show <plan-id|task-id>", "show a plan and its status"),
    Form("plan approve", "!plan approve <id>", "approve a plan as it is now"),
    Form("plan close", "!plan close <id> [<reason>]", "close a finished plan"),
    Form(
        "plan cancel",
        "!plan cancel [<id> [<reason>]]",
        "cancel a plan and its run; alone: stop the run in this chat",
    ),
    Form(
        "plan phases",
        "!plan phases [--regenerate [--keep-done]] <id>",
        "show its phases; generate them if there are none",
    ),
    Form("plan run", "!plan run <id>", "run all remaining phases"),
    Form("plan run-one", "!plan run-one <id>", "run only the next phase"),
    Form("plan run-phase", "!plan run-phase <id> <phase-id>", "run one phase"),
    Form("plan skip", "!plan skip <id> [<phase-id>] [<reason>]", "skip the running or failed phase"),
    Form("plan skip-to", "!plan skip-to <id> <phase-id> [<reason>]", "skip all phases before this one"),
    Form("plan retry", "!plan retry <id> [<phase-id>]", "retry the failed phase"),
    Form("plan audit", "!plan audit <id>", "check its form, then audit it"),
    Form("plan land", "!plan land <id>", "land a finished plan"),
    Form("plan diff", "!plan diff <id>", "what changed since its last audit"),
    Form("forge help", "!forge [help]", "list these commands"),
    Form("forge create", "!forge <description>", "draft a plan and audit it until nothing blocks"),
    Form("forge resume", "!forge <plan-id>", "resume its audits; if it is approved, run it"),
    Form("forge status", "!forge status", "show whether a forge is running"),
    Form("forge cancel", "!forge cancel", "cancel the running forge"),
    Form("forge audit", "!forge audit <id>", "the same as !plan audit"),
    Form("fix", "!fix <description>", "make a small change without a plan"),
    Form("status", "!status", "show plans, runs, what waits, and the next command"),
    Form("stop", "!stop", "stop the running work; nothing is lost"),
    Form("resume", "!resume [<run-id>]", "resume interrupted or waiting runs"),
    Form("help", "!help", "list all commands"),
)
"""All commands, in the order in which help lists them."""

FORMS = {form.name: form for form in TABLE}

FOR_PERSONS = ("approve", "close", "cancel", "skip", "skip-to", "retry", "land")
PERSONAL = frozenset(["fix", *(f"plan {word}" for word in FOR_PERSONS)])


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody has typed to a chat; which of the fields it has, its row of the table says."""

    name: str = msgspec.field(name="type")
    description: str = ""
    context: str = ""
    """What was said around the description; a person's command has none of its own."""
    plan: str = ""
    phase: str = ""
    reason: str = ""
    status: str = ""
    run: str = ""
    regenerate: bool = False
    keep_done: bool = False

    @property
    def form(self) -> Form:
        """Its row of the table."""
        return FORMS[self.name]


def rows(word: str = "") -> tuple[Form, ...]:
    """The commands that begin with `!word`, or all."""
    return tuple(found for found in TABLE if not word or found.usage.split()[0] == f"!{word}")
