"""
A finished plan as a pull request: its branch pushed as it is, its evidence as the text, opened by `gh`.

Everything happens as the person: their login, their `gh`. What may not land may not be proposed either, and
nothing is pushed before `gh` has answered. What was opened is on record.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import see
from planforge.app import landing
from planforge.app.decisions import deciders
from planforge.app.items import plan_evidence, plans
from planforge.app.landing import queue
from planforge.app.plans import github
from planforge.documents import evidence_page
from planforge.errors import NotFound, PlanforgeError, RefusedByGate
from planforge.kernel.events import PullRequestOpened
from planforge.kernel.graph.steps import happened
from planforge.kernel.ledger import Write
from planforge.workspace.landing import remotes

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.kernel.effects import QueuedPlan
    from planforge.workspace.landing.remotes import Remote

HEARD = 1024 * 1024
TITLE = 200
"""So many characters a title has at most."""


class PullRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was, or would be, proposed."""

    schema_version: int = 1
    plan: str
    title: str
    branch: str
    base: str
    commit: str
    remote: str
    """The address that the branch is pushed to, without a login."""
    body: str
    url: str = ""
    opened: bool = False
    """It was opened now; False is before, or not at all."""
    differs: str = ""
    """The commit that the pull request has, if that is not the plan's."""


class _Found(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A pull request as `gh` lists it."""

    url: str
    base_ref_name: str
    head_ref_oid: str


def preview(project: Project, name: str, *, onto: str | None = None, remote: str = "origin") -> PullRequest:
    """What would be pushed and proposed; nobody outside is asked anything."""
    plan = plans.row(project, name).plan
    base = landing.branch_named(project, onto)
    item = _fit(project, plan, base, project.git.commit_of(f"refs/heads/{base}"))
    return _drawn(project, item, base, remotes.remote(project.git, remote))


def open_(
    project: Project, name: str, *, actor: str, onto: str | None = None, remote: str = "origin"
) -> PullRequest:
    """Push the plan's branch and open a pull request for it, or find the one that is open."""
    deciders.require_no_agent(project)
    drawn = preview(project, name, onto=onto, remote=remote)
    for found in _listed(project, drawn.branch):
        if found.base_ref_name == drawn.base:
            differs = "" if found.head_ref_oid == drawn.commit else found.head_ref_oid
            known = msgspec.structs.replace(drawn, url=_address(found.url), differs=differs)
            if not differs:
                _record(project, known, actor)
            return known
    _pushed(project, drawn, remotes.remote(project.git, remote))
    opened = msgspec.structs.replace(drawn, url=_opened(project, drawn), opened=True)
    _record(project, opened, actor)
    return opened


def _fit(project: Project, plan: str, base: str, tip: str) -> QueuedPlan:
    """The plan as it may be proposed for `base`, which is at `tip`."""
    found = queue.queue(project, base, tip, (plan,))
    if plan in found.landed:
        raise RefusedByGate(f"`{base}` has `{plan}` already")
    for held in found.held:
        raise RefusedByGate(f"`{plan}` is not proposed: {held.reason}", see("plan evidence", plan))
    item = found.ready[0]
    if item.after:
        names = ", ".join(f"`{other}`" for other in item.after)
        raise RefusedByGate(
            f"`{plan}` is built on {names}, which `{base}` does not have", "propose that first"
        )
    return item


def _drawn(project: Project, item: QueuedPlan, base: str, remote: Remote) -> PullRequest:
    page = plan_evidence.page(project, item.plan)
    title = " ".join("".join(letter if letter.isprintable() else " " for letter in page.title).split())
    return PullRequest(
        plan=item.plan,
        title=(title if len(title) <= TITLE else title[: TITLE - 1] + "…") or item.plan,
        branch=item.branch,
        base=base,
        commit=item.commit,
        remote=remote.shown,
        body=evidence_page.markdown(page),
    )


def _listed(project: Project, branch: str) -> list[_Found]:
    words = ("pr", "list", f"--head={branch}", "--state=open", "--limit=50")
    said = github.ask([*words, "--json=url,baseRefName,headRefOid"], cwd=project.root, limit=HEARD)
    try:
        return msgspec.json.decode(said or b"[]", type=list[_Found])
    except msgspec.MsgspecError as error:
        raise PlanforgeError("`gh` said something that is no list of pull requests") from error


def _pushed(project: Project, drawn: PullRequest, remote: Remote) -> None:
    """Have the branch there, exactly as it is here."""
    git = project.git
    there = remotes.tips(git, remote, drawn.branch, drawn.base)
    if drawn.base not in there:
        raise NotFound(
            f"`{remote.name}` has no branch `{drawn.base}`",
            f"push it first, `git push {remote.name} {drawn.base}`, or say which: `--onto BRANCH`",
        )
    known = next(
        tip
        for tip in (
            git.ref(f"{there[drawn.base]}^{{commit}}"),
            git.ref(f"refs/remotes/{remote.name}/{drawn.base}^{{commit}}"),
            git.ref(f"refs/heads/{drawn.base}^{{commit}}"),
        )
        if tip is not None
    )
    # What the other side does not have of the base would go along as if it were the plan's.
    _fit(project, drawn.plan, drawn.base, known)
    at = there.get(drawn.branch)
    remotes.require_forward(git, remote, drawn.branch, drawn.commit, at)
    if at != drawn.commit:
        remotes.push(git, remote, drawn.commit, drawn.branch)


def _opened(project: Project, drawn: PullRequest) -> str:
    with tempfile.TemporaryDirectory(prefix="planforge-") as place:
        body = Path(place, "body.md")
        body.write_text(drawn.body, encoding="utf-8")
        words = ("pr", "create", f"--head={drawn.branch}", f"--base={drawn.base}")
        said = github.ask(
            [*words, f"--title={drawn.title}", f"--body-file={body}"], cwd=project.root, limit=HEARD
        )
    lines = said.decode("utf-8", "replace").split()
    return _address(lines[-1] if lines else "")


def _address(said: str) -> str:
    if not said.startswith("https://") or not said.isprintable() or len(said) > 500:
        raise PlanforgeError("`gh` did not say where the pull request is", "see `gh pr list`, then try again")
    return said


def _record(project: Project, opened: PullRequest, actor: str) -> None:
    event = PullRequestOpened(
        plan=opened.plan,
        url=opened.url,
        branch=opened.branch,
        commit=opened.commit,
        actor=actor,
        base=opened.base,
    )

    def decide() -> list[Write]:
        known = (item.event for item in happened(project.ledger, opened.plan))
        if any(isinstance(each, PullRequestOpened) and each.url == event.url for each in known):
            return []
        return [Write(opened.plan, None, [event])]

    project.ledger.transact(decide)
