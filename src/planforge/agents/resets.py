"""
When an agent that has reached its limit can be asked again, from what it says of that.

Every vendor has its own way: headers, fields of a body, and sentences with a duration or a time of day. A
time that has passed, or that is further ahead than any limit lasts, is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from itertools import chain
from zoneinfo import ZoneInfo

FURTHEST = timedelta(days=8)
"""Limits are by the minute, the hour, the day and the week."""

JUST_PASSED = timedelta(minutes=15)
"""A time of day that passed this recently is today's, not tomorrow's."""

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

UNIT = r"(?:milliseconds?|millis|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])"
PIECE = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?) ?({UNIT})", re.IGNORECASE)
DURATION = rf"(?:\d{{1,9}}(?:\.\d{{1,9}})? ?{UNIT}(?:, and |,? and |, | )?){{1,6}}"

EPOCH = re.compile(
    r"(?:unified-reset|resets?[_-]?at|reset[_-]?time|ratelimit-reset|limit reached[^|\n]{0,40}\|)"
    r"[\"']?[ :=]{0,3}[\"']?(\d{10}|\d{13})\b",
    re.IGNORECASE,
)
INSTANT = re.compile(
    r"(?:quotaResetTimeStamp|resets?[_-]?at|reset[_-]?time|[\w-]{0,60}-reset|resets?|again|until|retry-after)"
    r"[\"']?[ :=]{0,3}(?:at |on )?[\"']?"
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?: ?Z| ?UTC|[+-]\d\d:?\d\d)?)",
    re.IGNORECASE,
)
MILLISECONDS = re.compile(
    r"retry[-_]?after[-_]?ms[\"']?[ :=]{1,3}[\"']?(\d{1,12}(?:\.\d{1,6})?)\b", re.IGNORECASE
)
RETRY_AFTER = re.compile(
    r"(?:retry[-_]?after(?:[-_]?seconds)?|resets?[-_]in[-_]seconds)[\"']?[ :=]{1,3}[\"']?"
    r"(\d{1,9}(?:\.\d{1,6})?)(?![\w.:-])(?! ?[a-z])",
    re.IGNORECASE,
)
HTTP_DATE = re.compile(
    r"retry-after[\"']?[ :=]{1,3}[\"']?(\w{3}, \d{1,2} \w{3} \d{4} \d\d:\d\d:\d\d GMT)", re.IGNORECASE
)
FIELD = re.compile(
    r"(?:retryDelay|quotaResetDelay|retry-after|ratelimit-reset(?:-\w{1,20})?)[\"']?[ :=]{1,3}[\"']?"
    rf"({DURATION})",
    re.IGNORECASE,
)
PHRASE = re.compile(
    r"(?:again|retry|retrying|resets?|available|wait)(?: again)?(?: in| after| for)?(?: about| another)? "
    rf"({DURATION})",
    re.IGNORECASE,
)

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ZONE = r"(?: [A-Z][A-Za-z]{1,15} / [A-Za-z0-9_+-]{1,30} (?: / [A-Za-z_]{1,30} )? | UTC | GMT )"
CLOCK = re.compile(
    rf"""
    (?: again | resets? | until | available ) (?: [ ] (?: again | at | on ) ){{0,2}} [ :]{{1,2}}
    (?:
        (?P<tomorrow> tomorrow )
      | (?P<day> {"|".join(DAYS)} ) [a-z]{{0,6}}
      | (?P<month> {"|".join(MONTHS)} ) [a-z]{{0,6}} [.]? [ ] (?P<date> \d{{1,2}} ) (?: st | nd | rd | th )?
        (?: ,? [ ] (?P<year> 20\d\d ) )?
    )?
    (?: ,? [ ]? (?: at [ ] )? )
    (?P<hour> \d{{1,2}} ) (?: : (?P<minute> \d\d ) (?: : \d\d )? )? [ ]? (?P<half> [ap] [.]? m \b )?
    (?: [ ] [(] (?P<zone> {ZONE} ) [)] | [ ] (?P<bare> {ZONE} ) \b )?
    (?P<odd> [ ] [(] )?
    """,
    re.VERBOSE | re.IGNORECASE,
)


def find(text: str, *, now: float, zone: tzinfo | None = None) -> str:
    """The instant, in UTC, at which the limit that `text` is about ends; empty if it says none."""
    moment = datetime.fromtimestamp(now, UTC)
    # The more exact first.
    every = chain(_epochs(text), _instants(text, zone), _delays(text, moment), _clocks(text, moment, zone))
    for found in every:
        if moment < found <= moment + FURTHEST:
            whole = found.replace(microsecond=0)  # rounded up: not a moment too early
            later = whole if whole == found else whole + timedelta(seconds=1)
            return later.astimezone(UTC).isoformat(timespec="seconds")
    return ""


def _epochs(text: str) -> Iterator[datetime]:
    for match in EPOCH.finditer(text):
        digits = match[1]
        yield datetime.fromtimestamp(int(digits) / (1000 if len(digits) == 13 else 1), UTC)


def _instants(text: str, zone: tzinfo | None) -> Iterator[datetime]:
    for match in INSTANT.finditer(text):
        written = match[1].upper().replace(" UTC", "Z").replace(" Z", "Z")
        try:
            found = datetime.fromisoformat(written)
            yield found if found.tzinfo else _local(found, zone)
        except (ValueError, OverflowError):
            continue


def _delays(text: str, now: datetime) -> Iterator[datetime]:
    for match in MILLISECONDS.finditer(text):
        yield from _later(now, float(match[1]) / 1000)
    for match in RETRY_AFTER.finditer(text):
        yield from _later(now, float(match[1]))
    for match in HTTP_DATE.finditer(text):
        try:
            yield parsedate_to_datetime(match[1])
        except (ValueError, TypeError):
            continue
    for words in (FIELD, PHRASE):
        for match in words.finditer(text):
            yield from _later(now, _seconds(match[1]))


def _clocks(text: str, now: datetime, zone: tzinfo | None) -> Iterator[datetime]:
    for match in CLOCK.finditer(text):
        if match["minute"] is None and match["half"] is None:
            continue  # a number that may be anything
        if match["odd"]:
            continue  # something follows that may be a zone, and is none that we know
        try:
            yield _time_of_day(match, now, zone)
        except (ValueError, OverflowError, OSError, KeyError):  # no such hour, day or zone
            continue


def _later(now: datetime, seconds: float) -> Iterator[datetime]:
    if seconds <= FURTHEST.total_seconds():
        yield now + timedelta(seconds=max(seconds, 1.0))


def _seconds(duration: str) -> float:
    total = 0.0
    for match in PIECE.finditer(duration):
        unit = match[2].lower()
        key = "ms" if unit.startswith(("ms", "milli")) else unit[0]
        total += float(match[1]) * SECONDS[key]
    return total


def _local(moment: datetime, zone: tzinfo | None) -> datetime:
    return moment.replace(tzinfo=zone) if zone else moment.astimezone()


def _time_of_day(match: re.Match[str], now: datetime, zone: tzinfo | None) -> datetime:
    """The next instant with this time of day, on the day that is named if one is."""
    named = match["zone"] or match["bare"]
    if named:
        zone = UTC if named.upper() in ("UTC", "GMT") else ZoneInfo(named)
    here = now.astimezone(zone)
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if match["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(f"{hour} is no hour of half a day")
        hour = hour % 12 + (12 if match["half"][0] in "pP" else 0)
    day = here.replace(tzinfo=None, hour=hour, minute=minute, second=0, microsecond=0)
    if match["month"]:
        return _local(_dated(match, day), zone)
    if match["tomorrow"]:
        return _local(day + timedelta(days=1), zone)
    step = timedelta(days=1)
    if match["day"]:
        day += timedelta(days=(DAYS.index(match["day"].lower()) - day.weekday()) % 7)
        step = timedelta(days=7)
    while _local(day, zone) < now - JUST_PASSED:
        day += step
    return _local(day, zone)


def _dated(match: re.Match[str], day: datetime) -> datetime:
    month, date = MONTHS.index(match["month"].lower()) + 1, int(match["date"])
    if match["year"]:
        return day.replace(year=int(match["year"]), month=month, day=date)
    years = (day.year - 1, day.year, day.year + 1)
    return min((day.replace(year=year, month=month, day=date) for year in years), key=lambda d: abs(d - day))
