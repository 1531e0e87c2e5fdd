"""`planforge role`: list the roles, and show one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.caller import settings_root
from planforge.interfaces.cli.layout import paragraphs, section, table
from planforge.interfaces.cli.output import JsonGroup, show

if TYPE_CHECKING:
    from planforge.app.agents.roles import RoleView


@click.group(cls=JsonGroup)
def role() -> None:
    """List and show the roles that agents play

    A role has a persona, skills, access rights, a tier and a format for its answer. Change the built-in
    roles, or add your own, in `planforge/roles` of the repository.
    """


@role.command("list")
def list_() -> None:
    """List all roles with their agents and models

    Shows which agent would be asked now, from `agents.roles`, `agents.default`, `agents.cross_vendor_auditor`
    and the installed agents. `planforge role show ROLE` explains why.
    """
    from planforge.app.agents import roles

    rows = roles.listed(settings_root())
    head = ("role", "access", "tier", "agent", "model", "answers", "skills")
    shown = [
        (
            row.role,
            row.access,
            row.tier,
            row.agent or "nobody",
            row.model or "its own",
            row.output or "freely",
            ", ".join(row.skills),
        )
        for row in rows
    ]
    show(rows, table([head, *shown]))


@role.command("show")
@click.argument("name")
def show_(name: str) -> None:
    """Show one role: its rights, its texts and its prompt

    \b
    Example:
      planforge role show developer
    """
    from planforge.app.agents import roles

    show(roles.show(settings_root(), name), _page)


def _page(found: RoleView) -> str:
    row = found.row
    rows = [
        ("described in", row.source),
        ("access", row.access),
        ("tier", row.tier),
        ("agent", f"{row.agent or 'nobody'} ({row.because})"),
        ("model", f"{row.model or 'its own'} ({found.why})"),
        ("tools", "yes" if row.tools else "no: it gets the files of its task in the prompt"),
        ("answers", row.output or "freely"),
        ("continues", found.continues or "nobody"),
        ("architecture", "yes" if found.architecture else "no"),
        ("summaries", found.summaries),
        ("overlay", "yes" if found.overlay else "no"),
        ("lessons", "yes" if found.lessons else "no"),
    ]
    sources = [(path, digest[:12]) for path, digest in found.sources]
    return paragraphs(row.role, table(rows, "  "), section("texts", sources), found.block)
