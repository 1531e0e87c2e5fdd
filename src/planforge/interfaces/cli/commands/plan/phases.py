"""`planforge plan phases`, `skip` and `skip-to`: show, regenerate and skip the phases of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from planforge.interfaces.cli.caller import deciding, here
from planforge.interfaces.cli.event_words import first_line
from planforge.interfaces.cli.layout import listed, table
from planforge.interfaces.cli.options import actor_option, reason_option
from planforge.interfaces.cli.output import JsonCommand, show, talk, wants_json
from planforge.interfaces.cli.typed import line
from planforge.kernel.wording import counted

if TYPE_CHECKING:
    from planforge.app.plans.phases import PhasesView

SIDE_BY_SIDE = "Split the plan into phases that can run at the same time, or into a chain."


@click.command(cls=JsonCommand)
@click.argument("plan_id")
@click.option("--regenerate", is_flag=True, help="Regenerate the phases from the current plan.")
@click.option("--keep-done", is_flag=True, help="With --regenerate: keep finished phases that are unchanged.")
@click.option("--parallel/--chain", default=None, help=SIDE_BY_SIDE)
def phases(plan_id: str, regenerate: bool, keep_done: bool, parallel: bool | None) -> None:
    """Show the phases of a plan, or regenerate them

    If a plan is edited after its phases were generated, it does not run until they are regenerated. Without
    --keep-done every phase is done again. Commits on the plan's branch stay either way.

    \b
    Examples:
      planforge plan phases 17
      planforge plan phases 17 --regenerate --keep-done
    """
    from planforge.app.plans import phases as found

    if keep_done and not regenerate:
        raise click.UsageError("--keep-done needs --regenerate")
    if parallel is not None and not regenerate:
        raise click.UsageError("--parallel and --chain need --regenerate; see also `plan run --parallel`")
    project = here()
    if regenerate:
        view = found.generate(project, plan_id, parallel=parallel, keep_done=keep_done, actor=project.person)
    else:
        view = found.view(project, plan_id)
    show(view, _phases)
    if not wants_json():
        _warn(view)


def _phases(view: PhasesView) -> list[str]:
    order = "side by side" if view.parallel else "one after the other"
    head = (
        f"{view.plan}  {view.badge}  {counted(len(view.phases), 'phase')}, {order}, from {view.content[:12]}"
    )
    rows = [
        (
            phase.id,
            phase.kind,
            phase.status,
            phase.commit[:12],
            phase.title,
            f"after {listed(phase.depends_on, 40)}" if phase.depends_on else "",
        )
        for phase in view.phases
    ]
    failed = [phase for phase in view.phases if phase.status == "failed"]
    why = [f"✗ {phase.id}: {first_line(phase.reason, 160)}" for phase in failed]
    return [head, table(rows), *why, *(f"next: {line(each)}" for each in view.next)]


def _warn(view: PhasesView) -> None:
    if view.stale:
        talk("! the plan has changed since its phases were generated; nothing runs until you regenerate them")
    for difference in view.edited:
        talk(f"! {view.path}: {difference}")


@click.command(cls=JsonCommand)
@click.argument("plan_id")
@click.argument("phase", required=False)
@actor_option("Who decides")
@reason_option
def skip(plan_id: str, phase: str | None, actor: str | None, reason: str) -> None:
    """Skip a phase, so that later phases can run

    Without PHASE, skips the first phase that was interrupted or failed. Its work is kept but does not land.

    \b
    Examples:
      planforge plan skip 17 --reason "done by hand"
      planforge plan skip 17 phase-3 --reason "not needed any more"
    """
    from planforge.app.plans import phases as found

    project, who = deciding(actor)
    show(found.skip(project, plan_id, phase, actor=who, reason=reason), _phases)


@click.command(name="skip-to", cls=JsonCommand)
@click.argument("plan_id")
@click.argument("phase")
@actor_option("Who decides")
@reason_option
def skip_to(plan_id: str, phase: str, actor: str | None, reason: str) -> None:
    """Skip all phases before PHASE, so that it runs next

    \b
    Example:
      planforge plan skip-to 17 phase-4 --reason "the first three landed by hand"
    """
    from planforge.app.plans import phases as found

    project, who = deciding(actor)
    show(found.skip_to(project, plan_id, phase, actor=who, reason=reason), _phases)
