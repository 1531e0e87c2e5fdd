"""
What kind of failure it was, from what an agent says of it.

Agents say it in words, in status codes and in the bodies that their services sent. `classify` is given such a
text only when it is already known that the agent failed: what an agent answers is never looked at here, so a
task may be about rate limits and status codes. `failure` makes the error of it that is raised.
"""

from __future__ import annotations

import re
from datetime import tzinfo

import msgspec

from planforge.actions import Action, Advice, see
from planforge.agents import resets
from planforge.errors import (
    AgentFailed,
    AgentLimited,
    AgentTimedOut,
    AgentUnauthenticated,
    AgentUnavailable,
    PlanforgeError,
)

HEAD, TAIL = 20_000, 8_000
"""How many characters of a text are looked at, at its beginning and at its end."""

MOST_VALUES, DEEPEST = 500, 12
"""How much of a structure is looked at."""

NOT_LOGGED_IN = -32000
"""The Agent Client Protocol's code for an agent that wants its person to log in first."""

SAID_LIMIT = 500
"""How many characters of what an agent said go into a message of ours."""

STATUS = re.compile(
    r"""
    (?: \b status (?: [ _-]? code )? ["']? [ ]? (?: of | is | with )? [ :=(]{1,3} ["']?
      | \b HTTP (?: /[\d.]{1,3} )? [ :]{1,2} (?: status [ ] (?: code [ ] )? | error [ :]{1,2} )?
      | \b (?: API | HTTP | server ) [ ] error [ :(]{1,3}
      | \b error [ _]? code ["']? [ :=]{1,3} ["']?
      | \b rejected [ ] [(]
      | ["'] code ["'] [ ]? : [ ]?
      | \A \W{0,20} (?: (?: Api | API )? Error : [ ] )?
    )
    ( [45] \d\d ) \b (?! [.,] \d )
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""A status code where one is meant, which a number alone is not."""

REASON = re.compile(
    r"\b([45]\d\d)\b[ ,:)\]}\"'-]{1,4}(?:Unauthorized|Forbidden|Payment Required|Too Many Requests|"
    r"Request Timeout|Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out|Overloaded)\b",
    re.IGNORECASE,
)
"""A number is a status code, too, if the words that belong to it follow."""


def _any_of(*ways: str) -> re.Pattern[str]:
    return re.compile("|".join(ways), re.IGNORECASE)


LIMITED = _any_of(
    r"rate_limit_(?:error|exceeded|reached)",
    r"RateLimit(?:Error|Exceeded)",
    r"usage_limit_(?:reached|exceeded)",
    r"usage_not_included",
    r"errorKind: (?:rate_limit|billing)",
    r"insufficient_quota",
    r"billing_error",
    r"RESOURCE_EXHAUSTED",
    r"QUOTA_EXHAUSTED",
    r"\bquota[ _](?:is |was |has been )?(?:exceeded|exhausted|used up)",
    r"\b(?:exceeded|exhausted) (?:your |the )?(?:\w{1,20} ){0,4}(?:quota|capacity|rate limit|usage limit)",
    r"\b(?:rate|usage|session|weekly|daily|monthly|hour|spend(?:ing)?|request|token|credit) ?limit"
    r"(?: was| has been| is)? (?:reached|exceeded|hit)",
    r"\b(?:reached|hit|exceed(?:ed|s)?|over) (?:your|the|its|my|our) (?:[\w'\u2019-]{1,20} ){0,4}"
    r"(?:limit|spend cap|quota)\b",
    r"\bout of (?:\w{1,20} )?(?:credits|quota|usage)\b",
    r"\bcredit balance is too low\b",
    r"\btoo many requests\b",
    r"\brate[- ]limited\b",
    r"\blimit reached\b.{0,40}(?:\breset|\|)",
    r"\bquota will reset\b",
)

UNAUTHENTICATED = _any_of(
    r"authentication_(?:error|failed)",
    r"AuthenticationError",
    r"ProviderAuthError",
    r"invalid_api_key",
    r"API_KEY_INVALID",
    r"permission_error",
    r"UNAUTHENTICATED",
    r"PERMISSION_DENIED",
    r"\bauthentication (?:is )?(?:required|failed)",
    r"\bfailed to authenticate\b",
    r"\bnot (?:logged|signed) in\b",
    r"\b(?:please|must|need to|have to) (?:run |use )?[`'\"]?(?:\w{1,20} )?/?"
    r"(?:log ?in|sign in|auth login|re-?authenticate)\b",
    r"\b(?:invalid|incorrect|missing|expired|no) (?:\w{1,20} )?"
    r"(?:api[ -]?key|x-api-key|access token|oauth token|credentials?)\b",
    r"\bapi key (?:is )?(?:not valid|invalid|expired|missing|not found|required)",
    r"\b(?:token|session|login|credentials?) (?:has |have |is |was )?(?:expired|revoked)\b",
    r"\bset an Auth method\b",
    r"\bno auth(?:entication)? method\b",
    r"\brefresh token\b.{0,60}\b(?:expired|revoked|used)",
)

UNAVAILABLE = _any_of(
    r"\b(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ENETDOWN|ERR_NAME_NOT_RESOLVED)\b",
    r"\b(?:ConnectionRefused|UnableToConnect|FailedToOpenSocket)\b",
    r"\b(?:CERT_HAS_EXPIRED|SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT)\b",
    r"\b(?:UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT|ERR_TLS_CERT_ALTNAME_INVALID)",
    r"\b(?:certificate verify failed|certificate has expired|invalid peer certificate)\b",
    r"\bself[- ]signed certificate\b",
    r"\btls handshake\b",
    r"\bssl routines\b",
    r"\bconnection (?:refused|error|failed)\b",
    r"\bwaiting for network\b",
    r"\bname or service not known\b",
    r"\bname resolution\b",
    r"\bdns (?:error|lookup|failure)",
    r"\b(?:no route to host|network is unreachable|host is unreachable)\b",
    r"\bunable to connect\b",
    r"\b(?:could not|cannot|can't|failed to) (?:connect to|reach|resolve)\b",
    r"\bfetch failed\b",
    r"\berror sending request for url\b",
    r"\btcp connect error\b",
    r"\ball connection attempts failed\b",
)

TIMED_OUT = _any_of(
    r"\b(?:ETIMEDOUT|ESOCKETTIMEDOUT|UND_ERR_\w{1,20}_TIMEOUT|DEADLINE_EXCEEDED|timeout_error)\b",
    r"\b(?:request|connection|operation|response|stream|api call|read) (?:has |was )?tim(?:ed|e) ?out\b",
    r"\bidle timeout\b",
    r"\bdeadline exceeded\b",
    r"\btimed out (?:waiting|after)\b",
)

WORDS: tuple[tuple[re.Pattern[str], type[PlanforgeError]], ...] = (
    (LIMITED, AgentLimited),
    (UNAUTHENTICATED, AgentUnauthenticated),
    (TIMED_OUT, AgentTimedOut),
    (UNAVAILABLE, AgentUnavailable),
)
"""Which words mean what, the more telling first; all others say that the agent just failed."""

STATUS_KEYS = frozenset({"status", "statuscode", "httpstatus", "httpstatuscode", "apierrorstatus", "code"})

ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,20}[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|\x1b.?")


CONTROLS = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\r\n"}


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What kind of failure it was."""

    error: type[PlanforgeError]
    until: str = ""
    """When the agent can be asked again, as an instant in UTC; empty if it said nothing sensible of that."""


def classify(
    text: str,
    *,
    code: int | None = None,
    status: int | None = None,
    data: object = None,
    now: float,
    zone: tzinfo | None = None,
) -> Fault:
    """
    What kind of failure an agent means by `text`.

    `code` is one of JSON-RPC, `status` one of HTTP, `data` whatever structure came with it, `now` the time in
    seconds since 1970. A time of day without a zone is one of `zone`, which is this machine's if not given.
    """
    said = _bounded(text)
    found, details = _values(data)
    whole = f"{said}\n{details}"
    if code is not None and 400 <= code <= 599:  # where one of JSON-RPC belongs, Gemini puts one of HTTP
        status = status or code
    meant = status or found or _status(whole)
    error = _of_status(meant, whole) if meant else None
    if error is None and code == NOT_LOGGED_IN:
        error = AgentUnauthenticated
    if error is None:
        error = next((kind for words, kind in WORDS if words.search(whole)), AgentFailed)
    until = resets.find(whole, now=now, zone=zone) if error is AgentLimited else ""
    return Fault(error=error, until=until)


def failure(
    name: str,
    text: str,
    *,
    code: int | None = None,
    status: int | None = None,
    data: object = None,
    now: float,
    login: str = "",
) -> PlanforgeError:
    """The error to raise for a failure of agent `name`; `login` is the command its person logs in with."""
    fault = classify(text, code=code, status=status, data=data, now=now)
    said = one_line(text) or "it did not say why"
    if fault.error is AgentLimited:
        when = f" until {fault.until}" if fault.until else ""
        return AgentLimited(f"agent `{name}` has reached its limit{when}: {said}", until=fault.until)
    if fault.error is AgentUnauthenticated:
        how = f"log in with `{login}`" if login else "log in with the agent's own command"
        hint = Advice("{}, then run {}", how, Action("resume"))
        return AgentUnauthenticated(f"agent `{name}` is not logged in ({said})", hint)
    if fault.error is AgentUnavailable:
        return AgentUnavailable(f"agent `{name}` does not reach its service: {said}", see("agent list"))
    if fault.error is AgentTimedOut:
        return AgentTimedOut(f"agent `{name}` timed out: {said}")
    return AgentFailed(f"agent `{name}` failed: {said}")


def plain(text: str) -> str:
    """A text without anything that would move a cursor, ring a bell or end a string."""
    return ESCAPES.sub("", text).translate(CONTROLS)


def one_line(text: object) -> str:
    """What an agent said, fit to stand in a message of ours: one line, short, nothing that moves a cursor."""
    plain = ESCAPES.sub("", str(text)[: SAID_LIMIT * 8])
    words = " ".join(plain.split())
    return "".join(letter for letter in words if letter.isprintable())[:SAID_LIMIT]


def _bounded(text: str) -> str:
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def _status(text: str) -> int | None:
    """The last status code in a text: earlier ones were retried."""
    found = [(match.start(1), int(match[1])) for words in (STATUS, REASON) for match in words.finditer(text)]
    return max(found)[1] if found else None


def _of_status(status: int, text: str) -> type[PlanforgeError] | None:
    """What a status code means; None if the words must say."""
    if status == 401:
        return AgentUnauthenticated
    if status in (402, 429):
        return AgentLimited
    if status == 403:  # also what services say when a plan is used up
        return AgentLimited if LIMITED.search(text) else AgentUnauthenticated
    if status in (408, 504):
        return AgentTimedOut
    return AgentFailed if status >= 500 else None


def _values(data: object) -> tuple[int | None, str]:
    """The status code in a structure, if it has one, and its values as text, within limits."""
    status: int | None = None
    lines: list[str] = []
    waiting: list[tuple[str, object, int]] = [("", data, 0)]
    for _ in range(MOST_VALUES):
        if not waiting:
            break
        key, value, depth = waiting.pop()
        if isinstance(value, dict) and depth < DEEPEST:
            inner = list(value.items())[:MOST_VALUES]
            waiting += [(str(name)[:100], item, depth + 1) for name, item in reversed(inner)]
        elif isinstance(value, list | tuple) and depth < DEEPEST:
            waiting += [(key, item, depth + 1) for item in reversed(value[:MOST_VALUES])]
        elif isinstance(value, bool) or value is None:
            continue
        elif isinstance(value, int | float | str):
            if _is_status(key, value):
                status = int(value)
            lines.append(f"{key}: {str(value)[:HEAD]}")
    return status, _bounded("\n".join(lines))


def _is_status(key: str, value: object) -> bool:
    plain = key.replace("_", "").replace("-", "").lower()
    if plain not in STATUS_KEYS or not isinstance(value, int | str):
        return False
    return bool(re.fullmatch(r"[45]\d\d", str(value)[:5]))
