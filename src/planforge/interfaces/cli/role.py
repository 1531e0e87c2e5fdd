"""Commands about roles: `role list`, `role show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.printing import table
from planforge.interfaces.cli.show import json_option, show

if TYPE_CHECKING:
    from planforge.app.roles import RoleView


@click.group()
def role() -> None:
    """List and show the roles that agents play

    A role has a persona, skills, access rights, a tier and a format for its answer. Change the built-in
    roles, or add your own, in `planforge/roles` of the repository.
    """


def _root() -> Path:
    """Where the settings are, if there are any; no repository is needed."""
    from planforge.app.scanning import project_of

    return project_of(Path.cwd())


@role.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List all roles with their agents and models

    Shows which agent would be asked now, from `agents.roles`, `agents.default`, `agents.cross_vendor_auditor`
    and the installed agents. `planforge role show ROLE` explains why.
    """
    from planforge.app import roles

    rows = roles.listed(_root())
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
    show(rows, lambda: table([head, *shown]), as_json=as_json)


@role.command("show")
@click.argument("name")
@json_option
def show_(name: str, as_json: bool) -> None:
    """Show one role: its rights, its texts and its prompt

    \b
    Example:
      planforge role show developer
    """
    from planforge.app import roles

    found = roles.show(_root(), name)
    show(found, lambda: _page(found), as_json=as_json)


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
    return "\n\n".join([row.role, table(rows, "  "), "texts\n" + table(sources, "  "), found.block])
