"""
Puts what a `RunAgent` asks to an agent: which one, which model, in which conversation, at home where.

The agent is that of the role; the tier decides the model; a conversation that is kept is gone on with, in
the private home in which it began. What the answer says of itself (usage, money, session, tools) is recorded
with what Planforge knows better: the program that was started, how it was confined, what it was allowed.
However a call ends, what it is known to have cost is settled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from planforge.agents import homes, prices, programs, usage
from planforge.agents.profiles import Profile
from planforge.agents.protocol import Adapter, Heard, Noted, Permit, Place, Task, unnoted
from planforge.app.agents import sessions
from planforge.app.agents.audience import Audience
from planforge.app.agents.budgets import Bill, Spending
from planforge.app.agents.casting import Cast, Casting, Chosen
from planforge.app.agents.limits import Limits
from planforge.app.agents.permissions import Permissions
from planforge.app.agents.sessions import Sessions
from planforge.app.agents.workplace import Bench, Workroom
from planforge.errors import (
    AgentCancelled,
    AgentFailed,
    AgentLimited,
    AgentStrayed,
    AgentTimedOut,
    NoAgent,
    SessionUnknown,
)
from planforge.kernel.effects import HANDED_OVER, Access, AgentAnswer, Program, RunAgent, Usage
from planforge.kernel.events import SessionKept
from planforge.workspace import processes, sandbox
from planforge.workspace.sandbox import Level
from planforge.workspace.sandbox.home import tools

if TYPE_CHECKING:
    from planforge.app.project import Project
    from planforge.app.runs.leasing import Leasing
    from planforge.app.settings import AgentSettings
    from planforge.kernel.driver import Call

ADAPTERS = {
    "acp": "planforge.agents.acp",
    "claude": "planforge.agents.native.claude",
    "codex": "planforge.agents.native.codex",
}
"""Where the adapter is for what an agent speaks; loaded when it is needed, for one loads a large library."""

TOOLS_KEPT = 200
"""How many of the tools that an agent used are on record."""


class _Sofar:
    """What a call has come to as far as the agent said, should it fail."""

    session = ""
    usage: Usage | None = None
    money: int | None = None

    def __call__(self, *, session: str = "", usage: Usage | None = None, money: int | None = None) -> None:
        self.session = session or self.session
        self.usage = usage or self.usage
        self.money = self.money if money is None else money


class _Question(NamedTuple):
    """What is put to whom, in which conversation."""

    chosen: Chosen
    effect: RunAgent
    call: Call
    conversation: str


class Asking:
    """Puts the tasks of one run to agents."""

    def __init__(
        self,
        project: Project,
        run: str,
        plan: str,
        room: Workroom,
        leasing: Leasing,
        audience: Audience,
        cast: Cast | None = None,
    ) -> None:
        self._project = project
        self._run = run
        self._room = room
        self._leasing = leasing
        self._audience = audience
        self.casting = Casting(project, audience, cast)
        self._sessions = Sessions(project.ledger, run)
        self._spending = Spending(project, run, plan)
        self._programs = programs.Memory(project.state / programs.CACHE)
        self._busy: set[Path] = set()
        """The homes in which an agent is at work."""
        self._abandoned: dict[Path, asyncio.Future[tuple[str, ...]]] = {}
        """Those that are being removed."""

    @property
    def _settings(self) -> AgentSettings:
        # Not before an agent is asked: a demo makes the settings that it is run under.
        return self._project.settings.agents

    # Asking

    async def answer(self, effect: RunAgent, call: Call) -> AgentAnswer:
        """What the agent of the role says; one at its limit is waited for, or another one is asked."""
        await self._leasing.hold(effect)
        limits = Limits(self._project, self._run, self._settings, self._audience)
        name = limits.instead_of(self.casting.agent_of(effect.role), effect.role)
        conversation = effect.session or f"{effect.worktree}{call.key}"
        again = call.resumed
        while True:
            chosen = self.casting.chosen(name, effect)
            self._audience.heard(call.key, f"→ {chosen.name} [{chosen.words}]")
            try:
                return await self._once(_Question(chosen, effect, call, conversation), again=again)
            except AgentLimited as error:
                name = await limits.met(error, chosen.name, effect.role, call.key)
                again = True
                if name != chosen.name:
                    self._sessions.lose(conversation, f"`{name}` goes on instead of `{chosen.name}`")

    async def _once(self, question: _Question, *, again: bool) -> AgentAnswer:
        kept = await self._kept(question, again=again)
        async with self._spending.on(question.effect, question.call) as bill:
            try:
                return await self._said(question, kept, bill, anew=again)
            except SessionUnknown as error:
                if kept is None:
                    raise
                self._sessions.lose(question.conversation, error.message)
            return await self._said(question, None, bill, anew=True)

    async def _kept(self, question: _Question, *, again: bool) -> SessionKept | None:
        """The conversation to go on with, if there is one and it can be."""
        chosen, effect, call, conversation = question
        if chosen.profile.resume == "none":
            return None
        found = self._sessions.find(conversation, chosen.name, chosen.model)
        if found is None:
            return None
        if (self._project.state / found.home) in self._busy:
            return None
        why_not = ""
        if not (self._project.state / found.home).is_dir():
            why_not = "its home is gone"
        elif found.unfinished and not self._room.stands(effect.worktree):
            why_not = "the worktree that it was about is gone"
        elif again and not found.unfinished and effect.access is Access.WRITE:
            why_not = "its last turn was interrupted, and what it had changed is undone"
        if why_not:
            self._sessions.lose(conversation, why_not)
            return None
        # One of them loses the history of a conversation that is taken up too soon.
        early = chosen.profile.resume_after - self._sessions.age(found)
        if early > 0:
            self._audience.heard(call.key, f"waits {early:.0f} s until its conversation can be taken up")
            await asyncio.sleep(early)
        return found

    async def _said(
        self, question: _Question, kept: SessionKept | None, bill: Bill, *, anew: bool
    ) -> AgentAnswer:
        """One answer in one conversation, and what is remembered of that."""
        chosen, effect, _, conversation = question
        sofar, began_at = _Sofar(), kept.began_at if kept else self._sessions.now()
        with self._at_home(chosen, effect, kept) as place:

            def remembered(session: str, used: Usage | None, *, unfinished: bool) -> None:
                whole = usage.together(sessions.used(kept), used) or sessions.NOTHING
                self._sessions.keep(
                    SessionKept(
                        run=self._run,
                        conversation=conversation,
                        agent=chosen.name,
                        model=chosen.model,
                        session=session,
                        home=str(place.relative_to(self._project.state)),
                        began_at=began_at,
                        input_tokens=whole.input_tokens,
                        output_tokens=whole.output_tokens,
                        cached_tokens=whole.cached_tokens,
                        unfinished=unfinished,
                    )
                )

            done = False
            try:
                answer = await self._worked(question, kept, bill, sofar, place, anew=anew)
                done = True
            except SessionUnknown:
                raise
            except AgentFailed as error:
                # What is known of a call that was cut short is the least that it cost.
                bill.note(
                    sofar.usage, sofar.money, whole=not isinstance(error, AgentTimedOut | AgentCancelled)
                )
                self._sessions.lose(conversation, error.message)
                done = True
                raise
            except (AgentLimited, NoAgent) as error:
                bill.note(sofar.usage, sofar.money, whole=False)
                bill.attempted = False
                session = sofar.session or (kept.session if kept else "")
                if session and isinstance(error, AgentLimited) and chosen.profile.resume != "none":
                    remembered(session, sofar.usage, unfinished=True)
                raise
            finally:
                if done and not effect.session:
                    self._abandon(place)
            if answer.stop_reason == HANDED_OVER:
                self._sessions.lose(conversation, "it handed over to another agent")
            elif effect.session and answer.session and chosen.profile.resume != "none":
                remembered(answer.session, answer.usage, unfinished=False)
            return answer

    @contextmanager
    def _at_home(self, chosen: Chosen, effect: RunAgent, kept: SessionKept | None) -> Iterator[Path]:
        """A home that no other call has at the same time."""
        state = self._project.state
        if kept is not None:
            place = state / kept.home
        else:
            label = effect.session or (
                f"{effect.worktree}.{effect.turn}" if effect.turn > 1 else effect.worktree
            )
            place, number = homes.place(state, self._run, label, chosen.name), 1
            while place in self._busy:
                number += 1
                place = homes.place(state, self._run, f"{label}-{number}", chosen.name)
        self._busy.add(place)
        try:
            yield place
        finally:
            if place not in self._abandoned:
                self._busy.discard(place)

    def _abandon(self, place: Path) -> None:
        """Remove a home while work goes on; nobody gets it before it is gone, and the run ends after that."""

        def gone(_: object) -> None:
            self._abandoned.pop(place)
            self._busy.discard(place)

        removal = asyncio.get_running_loop().run_in_executor(None, homes.remove, place)
        self._abandoned[place] = removal
        removal.add_done_callback(gone)

    async def _worked(
        self,
        question: _Question,
        kept: SessionKept | None,
        bill: Bill,
        sofar: _Sofar,
        place: Path,
        *,
        anew: bool,
    ) -> AgentAnswer:
        """Have the agent at work in its worktree, and settle what that cost whatever it has done there."""
        chosen, effect = question.chosen, question.effect
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        going_on = kept is not None and kept.unfinished
        async with self._room.at_work(
            chosen.name, chosen.profile, effect, home=place, anew=anew and not going_on, going_on=going_on
        ) as bench:
            answer = await self._asked(question, kept, sofar, place, bench)
            bill.settle(answer)
        # Where the kernel keeps a reader from writing, there is nothing to look for.
        if effect.access is Access.READ and not sandbox.enough(bench.level, Level.LANDLOCK):
            await asyncio.to_thread(self._require_unchanged, chosen.name, effect)
        return answer

    async def _asked(
        self, question: _Question, kept: SessionKept | None, sofar: _Sofar, place: Path, bench: Bench
    ) -> AgentAnswer:
        from planforge.agents import forms

        chosen, effect, call, _ = question
        permissions = self._permissions(chosen.name, effect, bench, place)
        task = Task(
            prompt=effect.prompt,
            access=effect.access,
            model=chosen.model,
            session=kept.session if kept else "",
            schema=forms.schema(effect.output),
            seconds=self._settings.seconds,
            idle_seconds=self._settings.idle_seconds,
            # Only an agent that another one can follow is stopped before its context is full.
            threshold=chosen.profile.handoff_tokens if effect.turn else 0,
            before=sessions.used(kept),
        )
        # The first time it takes a while, and the agent need not wait for it.
        looking = asyncio.create_task(asyncio.to_thread(self._program, chosen.profile))
        try:
            answer = await put(
                chosen.name,
                chosen.profile,
                task,
                bench,
                home=place,
                root=self._project.root,
                endpoint=self.casting.endpoint,
                permit=permissions,
                heard=lambda what: self._audience.heard(call.key, what),
                noted=sofar,
                told=self._audience.told,
            )
        finally:
            program = await looking
        answer = self._complete(answer, chosen, permissions, bench)
        return msgspec.structs.replace(answer, program=program)

    def _program(self, profile: Profile) -> Program | None:
        """Which program it is that PATH leads to."""
        found = programs.find(profile, self._programs)
        self._programs.keep()
        return Program(path=found.path, hash=found.sha256, version=found.version) if found else None

    def _permissions(self, name: str, effect: RunAgent, bench: Bench, place: Path) -> Permissions:
        asks = self._settings.permissions == "ask" and self._audience.attended
        return Permissions(
            name,
            effect.access,
            cwd=bench.cwd,
            own=[place],
            leased=self._leasing.paths(effect),
            person=self._audience.asked if asks else None,
        )

    def _complete(
        self, answer: AgentAnswer, chosen: Chosen, permissions: Permissions, bench: Bench
    ) -> AgentAnswer:
        """The answer with what we know better than the agent."""
        model = answer.model or chosen.model
        money, source = answer.money, "reported" if answer.money is not None else ""
        if money is None:
            money = prices.cost(model, answer.usage, self._settings.prices)
            source = "estimated" if money is not None else ""
        return msgspec.structs.replace(
            answer,
            agent=chosen.name,
            sandbox=bench.level.value,
            model=model,
            tier=chosen.tier,
            money=money,
            money_source=source,
            tools=(*answer.tools, *permissions.answered)[-TOOLS_KEPT:],
        )

    def _require_unchanged(self, name: str, effect: RunAgent) -> None:
        tree = self._room.tree(effect.worktree)
        if tree != self._project.git.tree_of(effect.base):
            self._room.open(effect.worktree, effect.base)
            raise AgentStrayed(f"agent `{name}` changed files although a {effect.role} only reads")


def adapter(speaks: str) -> Adapter:
    """Whoever can talk to an agent that speaks so."""
    ask: Adapter = import_module(ADAPTERS[speaks]).ask
    return ask


async def put(
    name: str,
    profile: Profile,
    task: Task,
    bench: Bench,
    *,
    home: Path,
    root: Path,
    endpoint: str,
    permit: Permit,
    heard: Heard,
    noted: Noted = unnoted,
    told: Callable[[str], None] = lambda _: None,
) -> AgentAnswer:
    """Put a task to the agent whose private home is `home`; `told` gets what a person should know of that."""
    furnished = await asyncio.to_thread(
        homes.prepare,
        home,
        profile,
        access=task.access,
        root=root,
        cwd=bench.cwd,
        model=task.model,
        endpoint=endpoint,
        confined=sandbox.enough(bench.level, Level.LANDLOCK),
        tools=tools(),
    )
    place = Place(
        cwd=bench.cwd,
        home=furnished.home,
        argv=furnished.argv,
        env=furnished.env,
        launch=bench.launch,
        end=processes.end,
        permit=permit,
        heard=heard,
        noted=noted,
        variables=bench.variables,
    )
    try:
        return await adapter(profile.speaks)(name, furnished.profile, task, place)
    finally:
        for note in await asyncio.to_thread(homes.leave, furnished):
            told(note)


def remove_homes(state: Path, run: str) -> None:
    """Remove the private homes of a run that has ended; renewed logins are brought back first."""
    all_of_them = homes.place(state, run, "-", "-").parents[1]
    for place in all_of_them.glob("*/*"):
        if place.is_dir():
            homes.remove(place)
    for empty in (*all_of_them.glob("*"), all_of_them):  # a process that was killed may have left them
        with suppress(OSError):
            empty.rmdir()
