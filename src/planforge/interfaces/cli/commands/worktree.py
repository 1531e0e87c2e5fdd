"""Commands about the work of agents: `planforge worktree`, `recover` and `cleanup`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from planforge.app.upkeep import cleanup as cleaning
from planforge.app.upkeep import recovery
from planforge.app.upkeep.cleanup import Cleanup
from planforge.app.upkeep.recovery import Recoverable, Restored, Shown, WorktreeList
from planforge.errors import RefusedByGate
from planforge.interfaces.cli.caller import here
from planforge.interfaces.cli.layout import paragraphs, section, table
from planforge.interfaces.cli.output import JsonCommand, JsonGroup, show, talk, wants_json
from planforge.kernel.wording import counted
from planforge.workspace.worktrees.cleanup import Item


@click.group(cls=JsonGroup)
def worktree() -> None:
    """List the worktrees that agents work in

    Each attempt of a step has its own worktree and branch. Its content is archived before it is removed: see
    `planforge recover`.
    """


@worktree.command(name="list")
def list_() -> None:
    """List each worktree with its run and its changes

    Each line shows the run and its status, the worktree, its first commit, its branch, whether files have
    changed, how many commits the agent made, and the disk space.

    \b
    Examples:
      planforge worktree list
      planforge worktree list --json | jq '.worktrees[] | select(.dirty).path'
    """
    show(recovery.worktrees(here()), _worktrees)


@click.command(cls=JsonCommand)
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
def recover(
    name: str | None, directory: Path | None, branch: str | None, run: str, plan: str, text: str, path: str
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
    if name is None:
        if directory or branch:
            raise click.UsageError("name the work to recover: a NAME from `planforge recover`")
        show(recovery.archived(here(), run=run, plan=plan, text=text, path=path), _recoverable)
    elif directory or branch:
        project = here()
        restored: list[Restored] = []
        if branch:
            recovery.require_branch(project, name, branch)
        if directory:
            restored.append(recovery.write_to(project, name, directory))
        if branch:
            restored.append(recovery.make_branch(project, name, branch))
        show(restored if len(restored) > 1 else restored[0], "\n".join(_restored(restored)))
    else:
        show(recovery.show(here(), name), _shown)


@click.command(cls=JsonCommand)
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
def cleanup(yes: bool, older_than: int | None, archived: bool, interrupted: bool) -> None:
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
    done = cleaning.clean(here(), yes=yes, older_than=older_than, archived=archived, interrupted=interrupted)
    show(done, _cleaned)
    for note in done.notes:
        talk(note)
    if done.dry and done.gone and not wants_json():
        talk("nothing was removed; add `--yes` to remove it")
    if yes and done.refused:
        names = ", ".join(f"`{item.name}`" for item in done.refused)
        raise RefusedByGate(f"not removed, because no other copy exists: {names}", "see `planforge cleanup`")


def _worktrees(found: WorktreeList) -> str:
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
    return table(rows) or "no worktrees"


def _recoverable(found: Recoverable) -> str:
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
    outside = [
        (item.name, _clock(item.at), counted(len(item.files), "file"), item.why) for item in found.quarantined
    ]
    return paragraphs(table(rows), section("Outside git", outside)) or "nothing is archived"


def _shown(shown: Shown) -> str:
    return paragraphs(f"{shown.work.name}  {shown.message}", shown.stat)


def _restored(restored: list[Restored]) -> Iterator[str]:
    for item in restored:
        if item.directory:
            yield f"wrote the files of `{item.name}` into `{item.directory}`"
        if item.branch:
            yield f"branch `{item.branch}` is at `{item.commit[:12]}`"


def _cleaned(done: Cleanup) -> str:
    gone = f"{'Would go' if done.dry else 'Gone'} ({_size(done.bytes)})"
    parts = section(gone, list(map(_line, done.gone))), section("Stays", list(map(_line, done.stays)))
    return paragraphs(*parts) or "nothing to clean up"


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
