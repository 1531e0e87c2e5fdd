"""What agents say of their failures, in the words of the programs and of their vendors, and what is meant."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from planforge.agents import faults
from planforge.agents.faults import classify, failure, one_line
from planforge.errors import (
    AgentFailed,
    AgentLimited,
    AgentTimedOut,
    AgentUnauthenticated,
    AgentUnavailable,
    PlanforgeError,
)
from planforge.interfaces.cli.typed import text

NOON = datetime(2026, 11, 16, 12, 0, tzinfo=UTC).timestamp()
"""A Monday."""


@pytest.mark.parametrize(
    "text",
    [
        # as the programs put it, with a server that answers 401
        "API Error: 401 bad key",
        "Failed to authenticate. API Error: 401 bad key",
        "unexpected status 401 Unauthorized: bad key, url: http://127.0.0.1:46519/v1/responses",
        '{"error":{"code":401,"message":"bad key","status":"UNAUTHENTICATED"}}',
        "Authentication required",
        "401: bad key",
        # as services and programs put it otherwise
        "Invalid API key · Please run /login",
        "Not logged in · Please run /login",
        "Please run `codex login`",
        "OAuth token has expired. Please obtain a new token or refresh your existing token.",
        'API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"invalid"}}',
        "Incorrect API key provided: sk-***. You can find your API key at https://platform.openai.com.",
        "Error code: 401 - {'error': {'code': 'invalid_api_key'}}",
        "API key not valid. Please pass a valid API key.",
        "Please set an Auth method in your settings.json or specify GEMINI_API_KEY",
        "HTTP/1.1 403 Forbidden",
        "Your session has expired. Please log in again.",
        "Your access token could not be refreshed because your refresh token was already used.",
        "ProviderAuthError: no key",
    ],
)
def test_an_agent_that_wants_a_login_is_unauthenticated(text: str) -> None:
    assert classify(text, now=NOON).error is AgentUnauthenticated


@pytest.mark.parametrize(
    "text",
    [
        # as the programs put it, with a server that answers 429
        "Internal error: API Error: Request rejected (429) · too fast",
        "exceeded retry limit, last status: 429 Too Many Requests",
        '429: {"message":"too fast","type":"requests","code":"rate_limit_exceeded"}',
        "You\u2019ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro)",
        # as services put it
        'API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"slow"}}',
        "You've hit your session limit · resets 3pm (Europe/Berlin)",
        "You've hit your weekly limit · resets Nov 20, 3pm (Europe/Berlin)",
        "5-hour limit reached ∙ resets 7pm",
        "You exceeded your current quota, please check your plan and billing details.",
        "Resource has been exhausted (e.g. check quota). RESOURCE_EXHAUSTED",
        "You have exhausted your daily quota on this model.",
        "Quota exceeded. Check your plan and billing details.",
        "Your credit balance is too low to access the Anthropic API.",
        "402 Payment Required",
        "Error code: 429 - {'error': {'type': 'insufficient_quota'}}",
        "Your workspace is out of credits. Add credits to continue.",
        "403 Forbidden: monthly spend limit reached",
        "Too many requests, please slow down",
        "This request would exceed your organization's rate limit of 50 requests per minute.",
        "AI_APICallError: This request would exceed your rate limit.",
    ],
)
def test_an_agent_at_its_limit_is_limited(text: str) -> None:
    assert classify(text, now=NOON).error is AgentLimited


@pytest.mark.parametrize(
    "text",
    [
        "connect ECONNREFUSED 127.0.0.1:443",
        "Internal error: getaddrinfo ENOTFOUND api.anthropic.com",
        "getaddrinfo EAI_AGAIN generativelanguage.googleapis.com",
        "API Error: Connection error.",
        "API Error: Unable to connect to API (ConnectionRefused)",
        "stream disconnected before completion: error sending request for url (http://127.0.0.1:9/v1/responses)",
        "exception TypeError: fetch failed sending request",
        "Cannot connect to API: Unable to connect. Is the computer able to access the url?",
        "self-signed certificate in certificate chain",
        "unable to get local issuer certificate (UNABLE_TO_GET_ISSUER_CERT_LOCALLY)",
        "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate",
        "error trying to connect: dns error: failed to lookup address information: Name or service not known",
        "Network is unreachable (os error 101)",
    ],
)
def test_an_agent_that_does_not_reach_its_service_is_unavailable(text: str) -> None:
    assert classify(text, now=NOON).error is AgentUnavailable


@pytest.mark.parametrize(
    "text",
    [
        "API Error: Request timed out.",
        "504 Gateway Timeout",
        "stream error: idle timeout waiting for SSE",
        "connect ETIMEDOUT 10.0.0.1:443",
        "HTTP 408",
        "DEADLINE_EXCEEDED",
    ],
)
def test_an_agent_whose_service_takes_too_long_has_timed_out(text: str) -> None:
    assert classify(text, now=NOON).error is AgentTimedOut


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Internal error",
        "API Error: 500 oh no. This is a server-side issue, usually temporary — try again in a moment.",
        '{"error":{"code":500,"message":"oh no","status":"INTERNAL"}}',
        'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        "502 Bad Gateway",
        "HTTP 503: The model is overloaded. Please try again later.",
        "We\u2019re currently experiencing high demand, which may cause temporary errors.",
        "400 prompt is too long: 210000 tokens > 200000 maximum",
        # what it was about is not what went wrong
        "tests/test_rate_limit.py:401: AssertionError: 429 != 200",
        "could not apply the patch to src/login.py at line 403",
        "the tool returned 401 lines and 429 words",
        "cannot add a handler for rate limits",
        "port 4290 is in use; see http://127.0.0.1:401/status",
        "version 4.0.1 of 429.lib has no member `quota`",
        "Error: 401.5 is not an integer",
        # tried again, and then something else
        "attempt 1 failed with status 429. Retrying with backoff... attempt 2 failed with status 500.",
    ],
)
def test_all_else_has_just_failed(text: str) -> None:
    assert classify(text, now=NOON).error is AgentFailed


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"code": -32000}, AgentUnauthenticated),
        ({"code": -32000, "status": 429}, AgentLimited),
        ({"code": 401}, AgentUnauthenticated),  # Gemini over the Agent Client Protocol
        ({"code": 429}, AgentLimited),
        ({"code": -32603}, AgentFailed),
        ({"status": 401}, AgentUnauthenticated),
        ({"status": 500}, AgentFailed),
        ({"status": 400}, AgentFailed),
        ({"data": {"errorKind": "rate_limit"}}, AgentLimited),  # Claude over the Agent Client Protocol
        ({"data": {"errorName": "ProviderAuthError"}}, AgentUnauthenticated),
        ({"data": {"error": {"status": 429}}}, AgentLimited),
        ({"data": {"httpStatusCode": "401"}}, AgentUnauthenticated),
        ({"data": {"status_code": 503}}, AgentFailed),
        ({"data": {"details": "connect ECONNREFUSED"}}, AgentUnavailable),
        ({"data": {"status": True, "code": None, "port": 401, "lines": 429}}, AgentFailed),
        ({"data": "HTTP 429"}, AgentLimited),
        ({"data": [{"a": [{"code": 401}]}]}, AgentUnauthenticated),
        ({"data": object()}, AgentFailed),
    ],
)
def test_codes_and_structures_are_understood(given: dict[str, object], kind: type[PlanforgeError]) -> None:
    assert classify("Internal error", now=NOON, **given).error is kind  # type: ignore[arg-type]


# When it ends


@pytest.mark.parametrize(
    ("text", "until"),
    [
        # headers and fields
        ("retry-after: 30", "2026-11-16T12:00:30+00:00"),
        ('"retry-after": "30"', "2026-11-16T12:00:30+00:00"),
        ("Retry-After: Mon, 16 Nov 2026 13:30:00 GMT", "2026-11-16T13:30:00+00:00"),
        ("retry-after-ms: 1500", "2026-11-16T12:00:02+00:00"),
        ("anthropic-ratelimit-unified-reset: 1794834000", "2026-11-16T13:00:00+00:00"),
        ("anthropic-ratelimit-unified-reset: 1794834000\nretry-after: 5", "2026-11-16T13:00:00+00:00"),
        ("anthropic-ratelimit-tokens-reset: 2026-11-16T12:05:00Z", "2026-11-16T12:05:00+00:00"),
        ('{"resets_at": 1794834000, "plan_type": "plus"}', "2026-11-16T13:00:00+00:00"),
        ('{"resetsAt": 1794834000000}', "2026-11-16T13:00:00+00:00"),
        ('{"resets_in_seconds": 90}', "2026-11-16T12:01:30+00:00"),
        ("Claude AI usage limit reached|1794834000", "2026-11-16T13:00:00+00:00"),
        ('"retryDelay": "34s"', "2026-11-16T12:00:34+00:00"),
        ('"retryDelay": "34.074824224s"', "2026-11-16T12:00:35+00:00"),
        ('"quotaResetDelay": "4h32m1s"', "2026-11-16T16:32:01+00:00"),
        ('"quotaResetTimeStamp": "2026-11-16T20:00:00Z"', "2026-11-16T20:00:00+00:00"),
        ("x-ratelimit-reset-requests: 6m0s", "2026-11-16T12:06:00+00:00"),
        # durations
        ("Please retry in 12.3s.", "2026-11-16T12:00:13+00:00"),
        ("too fast Please retry in 3600s.\nSuggested retry after 3600s.", "2026-11-16T13:00:00+00:00"),
        ("Please try again in 4h32m", "2026-11-16T16:32:00+00:00"),
        ("Please try again in 20ms.", "2026-11-16T12:00:01+00:00"),
        ("Try again in 3 days 4 hours 5 minutes.", "2026-11-19T16:05:00+00:00"),
        ("try again in 2 hours, 5 minutes and 10 seconds", "2026-11-16T14:05:10+00:00"),
        ("Your quota will reset after 12h34m56s.", "2026-11-17T00:34:56+00:00"),
        # times of day
        ("resets 3pm (Europe/Berlin)", "2026-11-16T14:00:00+00:00"),
        ("resets 3:30pm (America/New_York)", "2026-11-16T20:30:00+00:00"),
        ("resets 3am (Europe/Berlin)", "2026-11-17T02:00:00+00:00"),
        ("resets 3pm UTC.", "2026-11-16T15:00:00+00:00"),
        ("resets 12am (UTC)", "2026-11-17T00:00:00+00:00"),
        ("resets 12:30pm (UTC)", "2026-11-16T12:30:00+00:00"),
        ("resets Nov 20, 3pm (Europe/Berlin)", "2026-11-20T14:00:00+00:00"),
        ("resets Nov 20 at 3pm (Europe/Berlin)", "2026-11-20T14:00:00+00:00"),
        ("resets Thursday 9am (UTC)", "2026-11-19T09:00:00+00:00"),
        ("resets Mon 9:00am (UTC)", "2026-11-23T09:00:00+00:00"),
        ("Your limit will reset at 7pm", "2026-11-16T18:00:00+00:00"),
        ("resets 19:05", "2026-11-16T18:05:00+00:00"),
        ("or try again at 8:57 PM.", "2026-11-16T19:57:00+00:00"),
        ("or try again at Nov 17th, 2026 3:04 PM.", "2026-11-17T14:04:00+00:00"),
        ("available again tomorrow at 9am (UTC)", "2026-11-17T09:00:00+00:00"),
        ("limit resets at 2026-11-16 18:00 UTC", "2026-11-16T18:00:00+00:00"),
        ("resets 2026-11-16T18:00:00+02:00", "2026-11-16T16:00:00+00:00"),
        # nothing that can be
        ("resets soon", ""),
        ("try again later", ""),
        ("retry-after: -5", ""),
        ("retry-after: 99999999", ""),
        ("anthropic-ratelimit-unified-reset: 1794800000", ""),
        ("anthropic-ratelimit-unified-reset: 1", ""),
        ("resets_at: 9999999999", ""),
        ("resets_at: 99999999999999999999999", ""),
        ("try again in 30 days", ""),
        ("try again in 999999999 days", ""),
        ("resets 11:50am (UTC)", ""),  # just now
        ("resets 25:99", ""),
        ("resets 13pm (UTC)", ""),
        ("resets Feb 31, 3pm (UTC)", ""),
        ("resets Jan 3, 3pm (UTC)", ""),
        ("resets 3pm (PST)", ""),
        ("resets 3pm (Europe/Nowhere)", ""),
        ("resets 3pm (Europe/Berlin/../x)", ""),
        ("resets 3pm (Europe/../../../../etc/passwd)", ""),
        ("resets 3", ""),
        ('"quotaResetTimeStamp": "2026-99-99T20:00:00Z"', ""),
        ("Retry-After: Xyz, 99 Nov 2026 13:30:00 GMT", ""),
    ],
)
def test_the_end_of_a_limit_is_read_if_it_makes_sense(text: str, until: str) -> None:
    found = classify(f"429 Too Many Requests: {text}", now=NOON, zone=ZoneInfo("Europe/Berlin"))
    assert (found.error, found.until) == (AgentLimited, until)


def test_the_end_of_a_limit_is_found_in_structures() -> None:
    data = {
        "error": {
            "code": 429,
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}],
        }
    }
    assert classify("too fast", data=data, now=NOON).until == "2026-11-16T12:00:34+00:00"
    headers = {"headers": {"retry-after": "20", "anthropic-ratelimit-unified-reset": "1794834000"}}
    assert classify("429 slow", data=headers, now=NOON).until == "2026-11-16T13:00:00+00:00"


def test_a_time_on_the_day_when_clocks_change_is_a_time_of_that_zone() -> None:
    before = datetime(2026, 10, 24, 22, 0, tzinfo=UTC).timestamp()  # the night in which summer time ends
    found = classify("429: resets 9am (Europe/Berlin)", now=before)
    assert found.until == "2026-10-25T08:00:00+00:00"


def test_what_is_no_limit_has_no_end() -> None:
    assert classify("500: try again in 5s", now=NOON).until == ""


# What is too much


@pytest.mark.parametrize(
    "text",
    [
        "429 " * 1_000_000,
        "1h" * 1_000_000,
        "try again in " + "1 hour " * 500_000,
        "retry-after:" + " " * 1_000_000,
        "resets " * 500_000,
        "\x1b[" * 1_000_000,
        "\x1b]" * 1_000_000,
        "status" * 500_000 + "4",
        "exceeded " * 500_000,
        "hit your a " * 300_000,
        "9" * 1_000_000,
        "limit reached" * 300_000,
        "refresh token " * 300_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    classify(text, data={"details": text, "more": [text] * 100}, now=NOON)
    failure("a", text, now=NOON)
    assert time.process_time() - began < 2.0


def test_the_beginning_and_the_end_of_a_long_text_are_read() -> None:
    padding = "x" * 10_000_000
    assert classify(f"HTTP 429 {padding}", now=NOON).error is AgentLimited
    assert classify(f"{padding} HTTP 429", now=NOON).error is AgentLimited


def test_a_structure_without_end_is_read_to_a_depth() -> None:
    deep: object = {"code": 401}
    for _ in range(50_000):
        deep = [deep]
    assert classify("oh", data=deep, now=NOON).error is AgentFailed
    assert classify("oh", data={str(n): n for n in range(100_000)}, now=NOON).error is AgentFailed
    circle: dict[str, object] = {}
    circle["again"] = circle
    assert classify("oh", data=circle, now=NOON).error is AgentFailed


# The error to raise


def test_each_kind_of_failure_has_its_words_and_a_way_on() -> None:
    limited = failure("claude", "429 slow. Try again in 1h.", now=NOON)
    assert isinstance(limited, AgentLimited)
    assert limited.until == "2026-11-16T13:00:00+00:00"
    assert limited.message == (
        "agent `claude` has reached its limit until 2026-11-16T13:00:00+00:00: 429 slow. Try again in 1h."
    )
    login = failure("claude", "Please run /login", now=NOON, login="claude auth login")
    assert (type(login), text(login.hint)) == (
        AgentUnauthenticated,
        "log in with `claude auth login`, then run `planforge resume`",
    )
    assert failure("claude", "connect ECONNREFUSED", now=NOON).message == (
        "agent `claude` does not reach its service: connect ECONNREFUSED"
    )
    assert type(failure("claude", "Request timed out", now=NOON)) is AgentTimedOut
    assert failure("claude", "", now=NOON).message == "agent `claude` failed: it did not say why"


def test_what_an_agent_said_is_fit_to_stand_in_a_message() -> None:
    said = one_line("a\x1b[31mb\x1b]0;title\x07c\r\nd\x00\x08\u202ee" + "x" * 1_000_000)
    assert said.startswith("abc de")
    assert len(said) == faults.SAID_LIMIT
    assert said.isprintable()
