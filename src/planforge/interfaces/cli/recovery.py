"""`planforge worktree`, `recover` and `cleanup`: what agents left, getting it back, and being rid of it."""

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
    from planforge.workspace.cleaning import Item


@click.group()
def worktree() -> None:
    """List the worktrees that agents work in

    Each attempt of a step has a worktree of its own, on a branch of its own. What is in it is archived
    before it goes: see `planforge recover`.
    """


@worktree.command(name="list")
@json_option
def list_(as_json: bool) -> None:
    """Show each worktree, whose it is and what is in it

    A line has the run with its status, the worktree, where it began, its branch, whether its files have
    changed, how many commits its agent made, and how much of the disk it takes up.

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
    "--to", "directory", type=click.Path(path_type=Path), help="Write its files into this new directory."
)
@click.option("--branch", metavar="NAME", help="Make this branch of it.")
@click.option("--run", default="", metavar="RUN", help="List only work of this run.")
@click.option("--plan", default="", metavar="PLAN", help="List only work for this plan.")
@click.option(
    "--text", default="", metavar="TEXT", help="List only work whose name or message has this in it."
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
    """List what is archived, and get it back

    Everything that agents left is kept: what was committed, what lay in a worktree when it went, and
    commits, stashes and branches that an agent made by itself. Without NAME, all of it is listed. NAME
    is what the list says, the end of it, or a commit; it shows what that changes, `--to` writes its
    files and `--branch` makes a branch of it. Nothing is ever overwritten.

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
            raise click.UsageError("say what to recover: a NAME from `planforge recover`")
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
@click.option("--yes", is_flag=True, help="Really remove it.")
@click.option(
    "--older-than", type=int, metavar="DAYS", help="Also archived work that is older and has landed."
)
@click.option("--archived", is_flag=True, help="…and older work that has not landed: it is gone then.")
@click.option("--interrupted", is_flag=True, help="Also worktrees of runs that can be resumed.")
@json_option
def cleanup(yes: bool, older_than: int | None, archived: bool, interrupted: bool, as_json: bool) -> None:
    """List or remove what is no longer needed

    Without `--yes` nothing is removed. What can go: worktrees of runs that have ended, after they were
    archived; checkouts that a process which died has left; branches `planforge/work/…` whose commits are
    archived. Archived work goes only if it is old enough and a branch or a tag reaches it, or with
    `--archived`. Nothing of a run that is being driven is touched, nor any worktree of yours. Exits with 5
    if something stays because it is kept nowhere else.

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
        raise RefusedByGate(f"kept nowhere else, so not removed: {names}", "see `planforge cleanup`")


def _worktrees(found: WorktreeList) -> str:
    if not found.worktrees:
        return "no worktree stands"
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
    return "\n\n".join(parts) or "there is nothing to clean up"


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
