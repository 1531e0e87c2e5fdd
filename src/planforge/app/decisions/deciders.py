"""
Who may decide, and about what: the same for plans, gates and questions.

A decision is a person's. It is refused to the names of agents, to every process that
Planforge has started, and to whoever looked at something else than what is there now.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from planforge.actions import Action, Advice
from planforge.errors import InvalidInput, NeedsPerson, RefusedByGate, StaleView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planforge.app.project import Project

ENOUGH = 12
"""How many characters of a hash are enough to say which one was looked at."""


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """What is so now, for somebody whose decision was refused because they could not know it."""

    what: str
    """The plan, the gate or the question."""
    status: str
    hash: str
    """What `--seen` has to say."""
    actor: str = ""
    """Who has decided, if anybody has."""
    answer: str = ""
    reason: str = ""
    at: str = ""
    next: Action
    """Shows it."""


# Who


def person(
    project: Project,
    given: str | None,
    *,
    terminal: bool,
    environment: Mapping[str, str] | None = None,
    where: str = "at a gate",
) -> str:
    """Who decides: somebody at a terminal, by what git knows of them, or whoever is named."""
    from planforge.workspace.git import FALLBACK_NAME

    require_no_agent(project, environment)
    if given is not None:
        return _named(given)
    if not terminal:
        raise NeedsPerson(f"only a person decides {where}, and there is no terminal", "say who: `--as NAME`")
    if project.git.identity()[0] == FALLBACK_NAME:
        raise InvalidInput(
            "git does not know who you are", "run `git config user.name NAME`, or say who: `--as NAME`"
        )
    return project.person


def person_or_script(
    project: Project, given: str | None, *, environment: Mapping[str, str] | None = None
) -> str:
    """The same for plans, which people approve from scripts of their own: by git, or else by their login."""
    from getpass import getuser

    from planforge.workspace.git import FALLBACK_NAME

    require_no_agent(project, environment)
    if given is not None:
        return _named(given)
    if project.git.identity()[0] != FALLBACK_NAME:
        return project.person
    try:
        return getuser()
    except (OSError, KeyError) as error:
        raise InvalidInput("nobody here has a name", "say who decides: `--as NAME`") from error


def _named(given: str) -> str:
    if not given.strip():
        raise InvalidInput("`--as` names nobody", "say who decides: `--as NAME`")
    return given.strip()


def require_other_author(project: Project, plan: str, actor: str) -> None:
    """Refuse the name of an agent, however it is spelled: of this plan's, of those that are known, of any."""
    from planforge.agents.known import KNOWN

    agents = {*_authors(project, plan), *KNOWN, *project.settings.agents.profiles}
    names = {_plain(actor), _plain(actor.partition("<")[0])}
    if any(_plain(agent) in names for agent in agents if agent):
        raise RefusedByGate(
            f"`{actor}` is the name of an agent, and who makes a change does not let it through",
            "a person decides, under a name of their own",
        )


def require_no_agent(project: Project, environment: Mapping[str, str] | None = None) -> None:
    """Refuse a process that Planforge has started, and those that such a one has started."""
    if is_agent(project, environment):
        raise RefusedByGate(
            "this process was started by Planforge, and agents do not decide at gates",
            "decide in a terminal of your own",
        )


def is_agent(project: Project, environment: Mapping[str, str] | None = None) -> bool:
    """Whether Planforge has started this process, or one that it descends from."""
    from planforge.workspace.launch import trees
    from planforge.workspace.sandbox import RECORDS

    if (os.environ if environment is None else environment).get(trees.COOKIE):
        return True
    prefix = f"{trees.COOKIE}=".encode()
    pid, seen = os.getppid(), set[int]()
    while pid > 1 and pid not in seen:
        seen.add(pid)
        for variable in _environment_of(pid):
            if variable.startswith(prefix):
                cookie = os.fsdecode(variable.removeprefix(prefix))
                if cookie.isalnum() and (project.state / RECORDS / cookie).exists():
                    return True
        parent = trees.row(pid)
        pid = parent.parent if parent else 0
    return False


def _authors(project: Project, plan: str) -> Iterator[str]:
    """Whoever has made something of this plan: a change of its, or a part of the plan itself."""
    from planforge.kernel.effects import AgentAnswer
    from planforge.kernel.events import EffectCompleted
    from planforge.kernel.payloads import unpack

    yield from (agent for (agent,) in project.ledger.query("SELECT agent FROM authors WHERE plan = ?", plan))
    for (run,) in list(project.ledger.query("SELECT run FROM runs WHERE subject = ?", plan)):
        for recorded in project.ledger.stream(run):
            match recorded.event:
                case EffectCompleted(effect="RunAgent", outcome=outcome):
                    yield msgspec.json.decode(unpack(project.ledger, outcome), type=AgentAnswer).agent


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name)).casefold()


def _environment_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


# About what


def require_current(seen: str | None, current: Current) -> None:
    """Refuse a decision from a view that is not what is there now. Who does not say what they saw, may."""
    if seen is None:
        return
    given = seen.strip().lower()
    if len(given) < ENOUGH or not re.fullmatch(r"[0-9a-f]+", given):
        hint = Advice(f"give at least {ENOUGH} characters of what {{}} says", current.next)
        raise InvalidInput(f"`--seen {seen}` is no hash", hint)
    if not current.hash.startswith(given):
        raise StaleView(
            f"you looked at `{given[:ENOUGH]}`, and `{current.what}` is `{current.hash[:ENOUGH]}` now",
            Advice("look again: {}", current.next),
            current=current,
        )
