"""
What an auditor's answer adds up to.

A JSON verdict is read first, then severity markers in the prose, then two fixed sentences: an earlier one of
these beats a later one, except that a JSON approval does not stand beside a blocking marker. What cannot be
read, or says two things at once, is `unknown`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import NoReturn

import msgspec

from planforge.rules.findings import Finding, Severity, evidence_in, worst
from planforge.rules.verdicts.answers import NOT_CLEAR, once, plain, spoken, too_large
from planforge.rules.verdicts.judgement import Judgement, Verdict, unknown
from planforge.rules.verdicts.marks import Mark, marks_in

MAX_UNREADABLE_OBJECTS = 1_000
CLEAN = "none"
NO_VERDICT = "the answer states no verdict"


class _Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What one JSON object, or all markers together, say before anyone judges it."""

    findings: tuple[Finding, ...] = ()
    stated: Severity | None = None
    clean: bool = False
    loop: bool | None = None
    doubts: tuple[str, ...] = ()
    summary: str = ""


class _TooMuch(Exception):
    """The answer holds JSON that is not worth trying any further."""


def parse_audit(text: str) -> Judgement:
    """Decide what an auditor's answer means; never raises, and never guesses an approval."""
    if fault := too_large(text):
        return unknown(fault)
    answer = spoken(text)
    objects: list[dict[str, object]] = []
    rest: list[str] = []
    try:
        for fenced, part in answer.parts:
            stated, left = _verdict_objects(part)
            objects += stated
            rest += [] if fenced else [left]
            if VERDICT_KEY.search(left):
                return unknown("a JSON verdict in the answer cannot be read")
    except _TooMuch as problem:
        return unknown(str(problem))
    judgement = _of_parts(objects, "\n".join(rest))
    doubt = answer.doubt or (NOT_CLEAR if any(marks_in(answer.unclear)) else "")
    if judgement.verdict is Verdict.APPROVED and doubt:
        return unknown(doubt, judgement.findings, judgement.summary)
    return judgement


def _of_parts(objects: list[dict[str, object]], prose: str) -> Judgement:
    own, quoted = _own_words(prose)
    marks = _claims_of_marks(marks_in(own))
    if objects:
        judgement = _agreed([_decide(_claims_of_object(said)) for said in objects])
        return _checked_against(marks, judgement)
    judgement = _decide(marks) if marks != _Claims() else _sentence_verdict(prose, own)
    doubtful = _claims_of_marks(marks_in(quoted))
    if judgement.verdict is Verdict.APPROVED and (
        doubtful.doubts or worst(doubtful.findings) is Severity.BLOCKING
    ):
        return unknown("it quotes something blocking, and may mean it", judgement.findings)
    return judgement


INLINE = re.compile(
    r"(?<!`)(?P<ticks>`+)(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`)|\"[^\"\n]*\"|[“„«][^“”„«»\n]*[“”»]|~~[^~\n]+~~"
    r"|(?<!\w)'[^'\n]*'(?!\w)|‘[^‘’\n]*’(?!\w)"  # noqa: RUF001
)


LEAST = len("(low)")
"""Nothing shorter is a verdict."""


def _own_words(prose: str) -> tuple[str, str]:
    """The prose without code, quotations and struck out words that would be a verdict; and those."""
    quoted: list[str] = []

    def take(found: re.Match[str]) -> str:
        bare = found[0].strip("`~\"'“”„«»‘’")  # noqa: RUF001
        says = len(bare) >= LEAST and (any(marks_in(bare)) or READY.search(bare) or NEEDS.search(bare))
        if not says:
            return found[0]
        quoted.append(bare)
        return " … "

    return INLINE.sub(take, prose), "\n".join(quoted)


def _decide(claims: _Claims) -> Judgement:
    found = worst(claims.findings)
    severity = max(filter(None, (claims.stated, found)), key=lambda each: each.rank, default=None)
    contradiction = _contradiction(claims, found, severity)
    if contradiction:
        return unknown(contradiction, claims.findings, claims.summary)
    if severity is Severity.BLOCKING:
        verdict, reason = Verdict.REVISION, "a blocking finding"
    elif claims.doubts:
        return unknown(claims.doubts[0], claims.findings, claims.summary)
    elif claims.loop:
        verdict, reason = Verdict.REVISION, "the auditor asks for another round"
        severity = severity or Severity.BLOCKING
    else:
        verdict, reason = Verdict.APPROVED, f"nothing worse than {severity}" if severity else "no finding"
    return Judgement(
        verdict=verdict,
        max_severity=severity,
        findings=claims.findings,
        summary=claims.summary,
        reason=reason,
    )


def _contradiction(claims: _Claims, found: Severity | None, severity: Severity | None) -> str:
    if severity is Severity.BLOCKING and claims.loop is False:
        return "says no further round is needed, yet names something blocking"
    if found is Severity.BLOCKING and (claims.clean or claims.stated not in (None, Severity.BLOCKING)):
        return "states a lower severity than the blocking finding it lists"
    return ""


def _agreed(verdicts: list[Judgement]) -> Judgement:
    if len({each.verdict for each in verdicts}) > 1:
        findings = tuple(dict.fromkeys(finding for each in verdicts for finding in each.findings))
        return unknown("two JSON verdicts disagree", findings)
    return max(verdicts, key=lambda each: each.max_severity.rank if each.max_severity else 0)


def _checked_against(marks: _Claims, verdict: Judgement) -> Judgement:
    """A JSON approval stands only if the prose around it does not mark something worse."""
    if verdict.verdict is not Verdict.APPROVED:
        return verdict
    findings = (*verdict.findings, *marks.findings)
    if worst(marks.findings) is Severity.BLOCKING:
        return unknown("the JSON approves, yet the text marks something blocking", findings, verdict.summary)
    if marks.doubts:
        return unknown(marks.doubts[0], findings, verdict.summary)
    return verdict


OBJECT_START = re.compile(r'\{\s*"')
VERDICT_KEY = re.compile(r'"(?:max[_-]?severity|should[_-]?loop)"\s*:', re.IGNORECASE)
LOOP_WORDS = {
    **dict.fromkeys(("approved", "approve", "ready to approve", "pass", "passed"), False),
    **dict.fromkeys(("revision", "revise", "needs revision", "reject", "rejected", "fail", "failed"), True),
}


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """One spelling for every key."""
    return once([(key.lower().replace("_", "").replace("-", ""), value) for key, value in pairs])


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"`{name}` is not JSON")


DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)


def _verdict_objects(text: str) -> tuple[list[dict[str, object]], str]:
    """Every JSON object that states a verdict, and the text without them."""
    objects: list[dict[str, object]] = []
    rest: list[str] = []
    kept = position = failures = 0
    while start := OBJECT_START.search(text, position):
        try:
            value, position = DECODER.raw_decode(text, start.start())
        except RecursionError:
            raise _TooMuch("the answer nests JSON too deeply") from None
        except ValueError:
            position = start.start() + 1
            failures += 1
            if failures > MAX_UNREADABLE_OBJECTS:
                raise _TooMuch("the answer is full of JSON that cannot be read") from None
            continue
        if stated := [said for said in (value.get("verdict"), value) if _states_a_verdict(said)]:
            objects.extend(stated)
            rest.append(text[kept : start.start()])
            kept = position
    return objects, "".join([*rest, text[kept:]])


def _states_a_verdict(said: object) -> bool:
    if not isinstance(said, dict):
        return False
    if said.get("maxseverity") is not None or said.get("shouldloop") is not None:
        return True
    return any(isinstance(each, dict) and "severity" in each for each in _listed(said))


def _listed(said: dict[str, object]) -> list[object]:
    """The concerns as given; one that is not in a list is kept, so that it can be doubted."""
    concerns: list[object] = []
    for name in ("concerns", "findings"):
        given = said.get(name)
        if given is not None:
            concerns.extend(given if isinstance(given, list) else [given])
    return concerns


def _claims_of_object(said: dict[str, object]) -> _Claims:
    doubts: list[str] = []
    findings = tuple(filter(None, (_finding(concern, doubts) for concern in _listed(said))))
    stated = said.get("maxseverity")
    clean = isinstance(stated, str) and stated.strip().lower() == CLEAN
    return _Claims(
        findings=findings,
        stated=None if clean or stated is None else _severity(stated, doubts),
        clean=clean,
        loop=_loop(said, doubts),
        doubts=tuple(doubts),
        summary=plain(said.get("summary")),
    )


def _finding(concern: object, doubts: list[str]) -> Finding | None:
    if not isinstance(concern, dict) or concern.get("severity") is None:
        doubts.append("a concern has no severity")
        return None
    given = concern["severity"]
    if isinstance(given, str) and given.strip().lower() == CLEAN:
        return None
    severity = _severity(given, doubts)
    if severity is None:
        return None
    detail = _first(concern, "detail", "description")
    location = _first(concern, "location", "file")
    return Finding(
        severity=severity,
        title=plain(concern.get("title")) or "untitled concern",
        detail=detail,
        location=location,
        recommendation=_first(concern, "recommendation", "recommended", "suggestion", "suggestedfix", "fix"),
        evidence=evidence_in(_first(concern, "evidenceclass", "evidence", "quote"), detail, location),
    )


def _first(concern: dict[str, object], *names: str) -> str:
    """What is said under the first of these names that says anything."""
    return next(filter(None, (plain(concern.get(name)) for name in names)), "")


def _severity(given: object, doubts: list[str]) -> Severity | None:
    severity = Severity.parse(given) if isinstance(given, str) else None
    if severity is None:
        doubts.append(f"`{plain(given)[:40] or 'a value'}` is not a severity")
    return severity


def _loop(said: dict[str, object], doubts: list[str]) -> bool | None:
    """Whether the auditor asks for another round, from `shouldLoop` and a verdict in words."""
    answers: set[bool] = set()
    flag, word = said.get("shouldloop"), said.get("verdict")
    if isinstance(flag, bool):
        answers.add(flag)
    elif flag is not None:
        doubts.append("`shouldLoop` is neither true nor false")
    if isinstance(word, str):
        known = LOOP_WORDS.get(word.strip().lower())
        if known is None:
            doubts.append(f"`{plain(word)[:40]}` is not a verdict")
        else:
            answers.add(known)
    if len(answers) > 1:
        doubts.append("`verdict` and `shouldLoop` disagree")
    return answers.pop() if len(answers) == 1 else None


def _claims_of_marks(marks: Iterable[Mark]) -> _Claims:
    findings: list[Finding] = []
    doubts: list[str] = []
    clean = False
    for mark in marks:
        if mark.word.lower() == CLEAN:
            clean = True
        elif severity := _severity(mark.word, doubts):
            findings.append(Finding(severity=severity, title=plain(mark.title) or "untitled finding"))
    # "none" beside a finding speaks of another section, not against the finding.
    return _Claims(
        findings=tuple(dict.fromkeys(findings)), clean=clean and not findings, doubts=tuple(doubts)
    )


READY = re.compile(r"\bready\s+to\s+approve\b", re.IGNORECASE)
NEEDS = re.compile(r"\bneeds\s+revision\b", re.IGNORECASE)
NOTHING_NEEDS = re.compile(
    r"\b(?:nothing|never|none(?:\s+\w+){0,3}|no\s+\w+)\s+needs\s+revision\b", re.IGNORECASE
)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z\s])|\n\s*\n|\n(?=\s*(?:[-*+#|]|\d+\.))")
NO_CONCERN = re.compile(
    r"\bno\s+(?:(?:blocking|critical|further|major|more|new|open|other|outstanding|remaining|serious)\s+){0,2}"
    r"(?:blockers?|changes?|concerns?|findings?|issues?|objections?|problems?|revisions?)\b",
    re.IGNORECASE,
)
HEDGE = re.compile(
    r"\b(?:not|no|nor|never|neither|nothing|nobody|cannot|without|unless|until|once|if|when|after|before|almost|"
    r"nearly|hardly|barely|far|would|could|should|might|may|except|but|however|though|although|yet)\b|n['’]t\b|\?",  # noqa: RUF001
    re.IGNORECASE,
)


def _sentence_verdict(prose: str, own: str) -> Judgement:
    sentences = SENTENCE_END.split(own)
    ready = any(READY.search(each) and not HEDGE.search(NO_CONCERN.sub("", each)) for each in sentences)
    needs = _needs(own)
    if ready and _needs(prose):
        return unknown("says both that the plan needs revision and that it is ready")
    if needs:
        verdict, severity, reason = Verdict.REVISION, Severity.BLOCKING, "says that the plan needs revision"
    elif ready:
        verdict, severity, reason = Verdict.APPROVED, Severity.MINOR, "says that the plan is ready to approve"
    else:
        return unknown(NO_VERDICT)
    return Judgement(verdict=verdict, max_severity=severity, findings=(), reason=reason)


def _needs(prose: str) -> bool:
    return any(NEEDS.search(NOTHING_NEEDS.sub("", each)) for each in SENTENCE_END.split(prose))
