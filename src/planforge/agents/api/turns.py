"""
One question to a model, and everything it does until it has answered.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import msgspec
from pydantic_ai import Agent, CancellationToken, StructuredDict, TextOutput, ToolOutput
from pydantic_ai.exceptions import ModelRetry, RunCancelled, UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model
from pydantic_ai.output import NativeOutput
from pydantic_ai.run import AgentRun
from pydantic_ai.usage import RunUsage, UsageLimits

from planforge.agents.acp.answers import StopReason
from planforge.agents.api import failures, histories, providers
from planforge.agents.api.histories import History
from planforge.agents.api.options import Mode, Options
from planforge.agents.api.toolset import Toolset
from planforge.agents.api.updates import Updates
from planforge.agents.rpc import Fields

ABOUT = {
    "text": "You have no tools. Answer with text alone.",
    "read": "You can read, list and search files. You cannot change anything.",
    "ask": "You can read, list and search files, write and edit them, and run commands.",
    "write": "You can read, list and search files, write and edit them, and run commands.",
}


class Question(msgspec.Struct, kw_only=True):
    """What a turn is about."""

    prompt: str
    root: Path
    mode: Mode
    model: Model[Any]
    schema: dict[str, Any] | None = None


class Turn:
    """One turn of one conversation."""

    def __init__(self, options: Options, updates: Updates, history: History, question: Question) -> None:
        self._options = options
        self._updates = updates
        self._history = history
        self._question = question
        self._token = CancellationToken()
        self._usage = RunUsage()
        self._before = len(history.messages)
        self._nothing: ModelResponse | None = None
        """The last response, if there was nothing in it."""

    def cancel(self) -> None:
        """Stop; what was done stays in the conversation."""
        self._token.cancel()

    async def take(self) -> Fields:
        """Ask, and answer the client's prompt; a failure is raised as an error of the protocol."""
        try:
            return self._response(await self._run())
        except RunCancelled as cancelled:
            self._keep(cancelled.all_messages())
            return self._response("cancelled")
        except UsageLimitExceeded:
            return self._response("max_turn_requests")
        except Exception as error:  # whatever a service and its client come up with is told
            if self._nothing is not None and isinstance(error, UnexpectedModelBehavior):
                return self._response(
                    _stop_reason(self._nothing)
                )  # to say nothing is an answer, if a poor one
            raise failures.refusal(error) from error

    async def _run(self) -> StopReason:
        agent = self._agent()
        async with agent.iter(
            self._question.prompt,
            message_history=self._history.messages,
            model_settings=providers.settings(self._options),
            usage_limits=UsageLimits(request_limit=self._options.requests),
            usage=self._usage,
            cancellation_token=self._token,
        ) as run:
            try:
                async for node in run:
                    if Agent.is_model_request_node(node):
                        self._updates.new_message()
                        async with node.stream(run.ctx) as stream:
                            async for event in stream:
                                await self._tell(event)
                        await self._tell_context(run)
                        self._keep(run.all_messages())
            finally:
                self._nothing = _said_nothing(run.all_messages())
                self._keep(run.all_messages())
            assert run.result is not None
            if self._question.schema is not None:
                await self._updates.say(json.dumps(run.result.output, ensure_ascii=False))
            return _stop_reason(run.result.response)

    def _agent(self) -> Agent[None, Any]:
        question = self._question
        tools = Toolset(question.root, question.mode, self._options, self._updates).offered()
        return Agent(
            question.model,
            output_type=_output(question.schema, question.model, bool(tools)),
            instructions=f"Working directory: {question.root}\n{ABOUT[question.mode]}",
            tools=tools,
            retries={"tools": 2, "output": 2 if question.schema else 0},
            capabilities=[providers.patience(self._options)],
        )

    async def _tell(self, event: object) -> None:
        match event:
            case (
                PartStartEvent(part=TextPart(content=text))
                | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
            ):
                # What is to have a form is said once it has it; until then it is a sign of life.
                await (self._updates.say if self._question.schema is None else self._updates.think)(text)
            case PartStartEvent(part=ThinkingPart(content=text)):
                await self._updates.think(text)
            case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
                await self._updates.think(text)

    async def _tell_context(self, run: AgentRun[None, Any]) -> None:
        last = next((m for m in reversed(run.all_messages()) if isinstance(m, ModelResponse)), None)
        if last is not None and (used := last.usage.input_tokens + last.usage.output_tokens):
            await self._updates.context(used, self._question.model.context_window or 0)

    def _keep(self, messages: list[Any]) -> None:
        """
        Save the conversation so far, if the model has said anything.

        A disk that takes nothing more costs the resumption, not the turn.
        """
        if not any(isinstance(m, ModelResponse) and m.parts for m in messages[self._before :]):
            return
        self._history.messages = messages
        with contextlib.suppress(OSError):
            histories.save(self._history)

    def _response(self, reason: StopReason) -> Fields:
        return {"stopReason": reason, **_usage(self._usage)}


def _output(schema: dict[str, Any] | None, model: Model[Any], with_tools: bool) -> Any:
    """How the model is held to a schema: by its service where it can, by a tool where not."""
    if schema is None:
        return str
    form = StructuredDict(schema, name=str(schema.get("title") or "answer"))
    able = bool(model.profile.get("supports_json_schema_output"))
    if able and not (with_tools and model.system.startswith("google")):
        return NativeOutput(form)
    return [ToolOutput(form), TextOutput(_parsed)]


def _parsed(text: str) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise ModelRetry(f"answer with JSON alone: {error}") from error
    if not isinstance(answer, dict):
        raise ModelRetry("answer with one JSON object alone")
    return answer


def _said_nothing(messages: list[Any]) -> ModelResponse | None:
    last = next((message for message in reversed(messages) if isinstance(message, ModelResponse)), None)
    return None if last is None or last.text or last.tool_calls else last


def _stop_reason(response: ModelResponse) -> StopReason:
    match response.finish_reason:
        case "length":
            return "max_tokens"
        case "content_filter":
            return "refusal"
        case _:
            return "end_turn"


def _usage(usage: RunUsage) -> Fields:
    if not usage.input_tokens and not usage.output_tokens:
        return {}  # the service said nothing: that is unknown, not nothing
    figures = {
        "totalTokens": usage.input_tokens + usage.output_tokens,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedReadTokens": usage.cache_read_tokens,
        "cachedWriteTokens": usage.cache_write_tokens,
    }
    return {"usage": figures}
