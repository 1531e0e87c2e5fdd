"""
What an agent has said and done so far, as far as it is kept.

Every program says different things in different words; this is what they have in common, and where the
limits are: of the text, of the tools that are listed, of the figures that are believed.
"""

from __future__ import annotations

import re
from collections import OrderedDict

import msgspec

from planforge.agents.faults import one_line
from planforge.agents.protocol import Place, Task
from planforge.errors import AgentEmpty, AgentMalformed, PlanforgeError
from planforge.kernel.effects import HANDED_OVER, AgentAnswer, ToolUse, Usage
from planforge.kernel.tokens import TokenState, estimate

TEXT_LIMIT = 1024 * 1024
"""How many characters an answer may have; a longer one is refused, not cut."""

TOOLS_LISTED = 200
"""How many tool calls are on record, the last ones."""

TITLE_LIMIT = 200
DENIED = "denied"
SESSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,127}")
"""What a conversation may be called: it goes into a command, where it must not be taken for an option."""


class Transcript:
    """What one agent has said and done."""

    def __init__(self, task: Task, place: Place) -> None:
        self._place = place
        self.session = ""
        self.model = task.model
        self.text = ""
        self.output = ""
        self.tool_calls = 0
        self.usage: Usage | None = None
        self.money: int | None = None
        self.context = TokenState(used=estimate(len(task.prompt)), threshold=task.threshold, estimated=True)
        self.ended = False
        """Its turn has ended, properly or not; a new one may begin."""
        self.trouble = ""
        """What it complained of last, if it has not got on since."""
        self.hopeless = False
        """It goes on trying what will not work."""
        self._characters = len(task.prompt)
        self._tools: OrderedDict[str, ToolUse] = OrderedDict()

    # What it is told

    def said(self, what: str) -> None:
        """Pass on a sign of life, in words."""
        self._place.heard(one_line(what)[:TITLE_LIMIT])

    def named(self, session: str | None) -> None:
        """The conversation has a name."""
        if session and session != self.session and SESSION.fullmatch(session):
            self.session = session
            self._place.noted(session=session)

    def counted(self, usage: Usage | None, money: int | None = None) -> None:
        """This is what the call has used by now."""
        known = (self.usage, self.money)
        self.usage = usage or self.usage
        self.money = self.money if money is None else money
        if known != (self.usage, self.money):
            self._place.noted(usage=self.usage, money=self.money)

    def filled(self, tokens: int) -> None:
        """So many tokens are in its context, as it says."""
        if tokens > 0:
            self.context = self.context.reported(tokens)

    def grew(self, characters: int) -> None:
        """So many characters came into its context, for those that do not say how many tokens that is."""
        self._characters += characters
        self.context = self.context.guessed(self._characters)

    # Tools

    def used(self, identity: str, *, kind: str = "", title: str = "", status: str = "") -> ToolUse:
        """What is known by now of a tool that it uses; nothing changes that it was kept from one."""
        if identity not in self._tools:
            self.tool_calls += 1
        known = self._tools.get(identity) or ToolUse(kind="other", title="")
        self._tools[identity] = ToolUse(
            kind=kind or known.kind,
            title=one_line(title)[:TITLE_LIMIT] or known.title,
            status=status if status and known.status != DENIED else known.status,
        )
        if len(self._tools) > TOOLS_LISTED:
            self._tools.popitem(last=False)
        return self._tools[identity]

    def began(self, identity: str, kind: str, title: str) -> None:
        """It uses a tool."""
        if identity not in self._tools:
            self.used(identity, kind=kind, title=title)
            self.said(title)

    def finished(self, identity: str, status: str) -> None:
        """It has used the tool, or was kept from it."""
        if identity in self._tools:
            self.used(identity, status=status)

    # What comes of it

    def answer(self, name: str) -> AgentAnswer:
        """The answer so far."""
        return AgentAnswer(
            agent=name,
            text=self.text,
            stop_reason="end_turn",
            tool_calls=self.tool_calls,
            usage=self.usage,
            money=self.money,
            model=self.model,
            session=self.session,
            output=self.output,
            tools=tuple(self._tools.values()),
        )

    def unusable(self, name: str) -> PlanforgeError | None:
        """The error for an answer that cannot be taken, because it is too long or empty."""
        if max(len(self.text), len(self.output)) > TEXT_LIMIT:
            return AgentMalformed(f"agent `{name}` gave an answer of more than {TEXT_LIMIT} characters")
        if not self.text.strip():
            return AgentEmpty(f"agent `{name}` gave an empty answer")
        return None

    def handed_over(self, name: str) -> AgentAnswer:
        """The answer of an agent that was stopped because its context was nearly full."""
        return msgspec.structs.replace(self.answer(name), stop_reason=HANDED_OVER, context=self.context)
