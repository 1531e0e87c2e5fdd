"""`planforge worktree`, `recover` and `cleanup`: list, restore and remove the work of agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from planforge.errors import RefusedByGate
from planforge.interfaces.cli.printing import table
from planforge.interfaces.cli.show import json_option, show, talk
from planforge.interfaces.cli.views import here
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planforge.app.cleanup import Cleanup
    from planforge.app.recovery import Recoverable, Restored, Shown, WorktreeList
    from planforge.workspace.worktrees.cleanup import Item


@click.group()
def worktree() -> None:
    """List the worktrees that agents work in

    Each attempt of a step has its own worktree and branch. Its content is archived before it is removed: see
    `planforge recover`.
    """


@worktree.command(name="list")
@json_option
def list_(as_json: bool) -> None:
    """List each worktree with its run and its changes

    Each line shows the run and its status, the worktree, its first commit, its branch, whether files have
    changed, how many commits the agent made, and the disk space.

    \b
    Examples:
      planforge worktree list
      planforge worktree list --json | jq '.worktrees[] | select(.dirty).path'
    """
    from planforge.app import recovery

    found = recovery.worktrees(here())
    show(found, lambda: _worktrees(found), as_json=as_json)


@click.command()
@click.argument("name", required=False)
@click.option(
    "--to", "directory", type=click.Path(path_type=Path), help="Write the files to this new directory."
)
@click.option("--branch", metavar="NAME", help="Create this branch from it.")
@click.option("--run", default="", metavar="RUN", help="List only work of this run.")
@click.option("--plan", default="", metavar="PLAN", help="List only work for this plan.")
@click.option(
    "--text", default="", metavar="TEXT", help="List only work with this text in its name or message."
)
@click.option("--path", default="", metavar="PATH", help="List only work on this file, directory or glob.")
@json_option
def recover(
    name: str | None,
    directory: Path | None,
    branch: str | None,
    run: str,
    plan: str,
    text: str,
    path: str,
    as_json: bool,
) -> None:
    """List archived work and get it back

    All work of agents is kept: commits, uncommitted files of removed worktrees, and commits, stashes and
    branches that an agent made on its own. Without NAME, lists all of it. NAME is a name from the list, the
    end of one, or a commit. With NAME alone, shows the change; `--to` writes the files and `--branch` creates
    a branch. Nothing is ever overwritten.

    \b
    Examples:
      planforge recover --path src/app.py
      planforge recover run-002/phase-1-1.left
      planforge recover run-002/phase-1-1.left --to /tmp/look
      planforge recover run-002/phase-1-1.left --branch rescued
    """
    from planforge.app import recovery

    if name is None:
        if directory or branch:
            raise click.UsageError("name the work to recover: a NAME from `planforge recover`")
        found = recovery.archived(here(), run=run, plan=plan, text=text, path=path)
        show(found, lambda: _recoverable(found), as_json=as_json)
    elif directory or branch:
        project = here()
        restored: list[Restored] = []
        if branch:
            recovery.require_branch(project, name, branch)
        if directory:
            restored.append(recovery.write_to(project, name, directory))
        if branch:
            restored.append(recovery.make_branch(project, name, branch))
        show(restored if len(restored) > 1 else restored[0], lambda: _restored(restored), as_json=as_json)
    else:
        shown = recovery.show(here(), name)
        show(shown, lambda: _shown(shown), as_json=as_json)


@click.command()
@click.option("--yes", is_flag=True, help="Remove it; without this, only list it.")
@click.option(
    "--older-than",
    type=int,
    metavar="DAYS",
    help="Also archived work that is older than this and has landed.",
)
@click.option(
    "--archived", is_flag=True, help="With --older-than: also work that has not landed. It is lost then."
)
@click.option("--interrupted", is_flag=True, help="Also worktrees of runs that can be resumed.")
@json_option
def cleanup(yes: bool, older_than: int | None, archived: bool, interrupted: bool, as_json: bool) -> None:
    """List or remove what is no longer needed

    Without `--yes` nothing is removed. Removable are: worktrees of ended runs, once archived; checkouts of
    dead processes; branches `planforge/work/…` whose commits are archived. Archived work is removed only if
    it is old enough and a branch or tag reaches it, or with `--archived`. Running work and your own worktrees
    are never touched. Exits with 5 if something stays because no other copy exists.

    \b
    Examples:
      planforge cleanup
      planforge cleanup --yes
      planforge cleanup --older-than 30 --yes
    """
    from planforge.app import cleanup as cleaning

    done = cleaning.clean(here(), yes=yes, older_than=older_than, archived=archived, interrupted=interrupted)
    show(done, lambda: _cleaned(done), as_json=as_json)
    for note in done.notes:
        talk(note)
    if done.dry and done.gone and not as_json:
        talk("nothing was removed; add `--yes` to remove it")
    if yes and done.refused:
        names = ", ".join(f"`{item.name}`" for item in done.refused)
        raise RefusedByGate(f"not removed, because no other copy exists: {names}", "see `planforge cleanup`")


def _worktrees(found: WorktreeList) -> str:
    if not found.worktrees:
        return "no worktrees"
    rows = [
        (
            item.run,
            item.status,
            item.name,
            f"at {item.base[:12]}" if item.base else "",
            {True: "changed", False: "clean", None: ""}[item.dirty],
            counted(item.commits, "commit") if item.commits else "",
            _size(item.bytes),
            item.branch,
        )
        for item in found.worktrees
    ]
    return table(rows)


def _recoverable(found: Recoverable) -> str:
    parts = []
    if found.work:
        rows = [
            (
                item.name,
                _clock(item.at),
                f"{counted(len(item.files), 'file')}, {counted(item.changed_lines, 'line')}",
                "landed" if item.landed else "",
                item.why,
            )
            for item in found.work
        ]
        parts.append(table(rows))
    if found.quarantined:
        outside = [
            (item.name, _clock(item.at), counted(len(item.files), "file"), item.why)
            for item in found.quarantined
        ]
        parts.append("Outside git\n" + table(outside, "  "))
    return "\n\n".join(parts) or "nothing is archived"


def _shown(shown: Shown) -> str:
    return "\n\n".join(part for part in (f"{shown.work.name}  {shown.message}", shown.stat) if part)


def _restored(restored: Sequence[Restored]) -> str:
    lines = []
    for item in restored:
        if item.directory:
            lines.append(f"wrote the files of `{item.name}` into `{item.directory}`")
        if item.branch:
            lines.append(f"branch `{item.branch}` is at `{item.commit[:12]}`")
    return "\n".join(lines)


def _cleaned(done: Cleanup) -> str:
    parts = []
    if done.gone:
        head = "Would go" if done.dry else "Gone"
        parts.append(f"{head} ({_size(done.bytes)})\n" + table([_line(item) for item in done.gone], "  "))
    if done.stays:
        parts.append("Stays\n" + table([_line(item) for item in done.stays], "  "))
    return "\n\n".join(parts) or "nothing to clean up"


def _line(item: Item) -> tuple[str, ...]:
    return (item.kind.value, item.name, _size(item.bytes) if item.bytes else "", item.reason)


def _clock(at: str) -> str:
    return f"{at[:10]} {at[11:16]}"


def _size(count: int) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count //= 1000
    return f"{count} GB"
