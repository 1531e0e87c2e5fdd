"""
The model that is asked, and how: one client for each provider, no hidden patience in any of them.

The clients' own retries are off, for some of them wait for as long as the service likes. What is worth
trying again is tried again by `patience`, a few times and at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic_ai.capabilities import Hooks
from pydantic_ai.exceptions import (
    ModelConnectionError,
    ModelServerError,
    ModelUnavailableError,
    RetryModelRequest,
)
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.settings import ModelSettings

from planforge.agents.api import keys
from planforge.agents.api.options import Options

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.tools import RunContext

PAUSE = 1.0
"""How long, in seconds, is waited before a request is sent for the second time; each time twice as long."""

OUTPUT_TOKENS = 16_000
"""How long a response of Anthropic's may be, where that must be said."""


class NoKey(Exception):
    """The service wants a key, and none was given."""


def model(options: Options, key: str, name: str) -> Model[Any]:
    """The model called `name` at the provider of the options."""
    if (
        not key
        and options.provider != "openai-compatible"
        and not (options.provider == "openai" and options.base_url)
    ):
        raise NoKey(f"no key: set `{'` or `'.join(keys.variables(options))}`")
    match options.provider:
        case "anthropic":
            return _anthropic(options, key, name)
        case "google":
            return _google(options, key, name)
        case "openai":
            return _openai(options, key, name)
        case "openai-compatible":
            return _compatible(options, key, name)


def settings(options: Options) -> ModelSettings:
    """What every request is made with."""
    chosen = ModelSettings(
        timeout=options.request_seconds, request_timeout=options.request_seconds, parallel_tool_calls=True
    )
    if options.provider != "google":  # whose client is told when it is made
        chosen["max_retries"] = 0
    if options.output_tokens:
        chosen["max_tokens"] = options.output_tokens
    elif options.provider == "anthropic":
        chosen["max_tokens"] = OUTPUT_TOKENS
    if options.provider == "anthropic":
        chosen["cache"] = True
    return chosen


def patience(options: Options) -> Hooks[Any]:
    """Sends a request again that failed for no reason of ours, before anything of its response was heard."""

    async def again(
        ctx: RunContext[Any], /, *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        del ctx
        passing = isinstance(error, ModelConnectionError | ModelServerError | ModelUnavailableError)
        if not passing or isinstance(error, TimeoutError) or request_context.attempt > options.retries:
            raise error
        await asyncio.sleep(PAUSE * 2 ** (request_context.attempt - 1))
        raise RetryModelRequest

    return Hooks(model_request_error=again)


def _openai(options: Options, key: str, name: str) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=options.base_url or None, api_key=key or "none")
    nothing_stays_there = OpenAIResponsesModelSettings(openai_store=False)
    return OpenAIResponsesModel(name, provider=provider, settings=nothing_stays_there)


def _compatible(options: Options, key: str, name: str) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    provider = OpenAICompatibleProvider("compatible", base_url=options.base_url, api_key=key or None)
    return OpenAIChatModel(name, provider=provider)


def _anthropic(options: Options, key: str, name: str) -> Model[Any]:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(api_key=key, base_url=options.base_url or None)
    return AnthropicModel(name, provider=provider)


def _google(options: Options, key: str, name: str) -> Model[Any]:
    from google.genai.types import HttpRetryOptions
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    once = HttpRetryOptions(attempts=1)
    provider = GoogleProvider(api_key=key, base_url=options.base_url or None, retry_options=once)
    return GoogleModel(name, provider=provider)
