"""
An issue on GitHub: how people name one, and what `gh issue view --json` says of it.

Whoever may write there is anybody. Nothing of an issue becomes a section of a plan: it is quoted, and what
the plan has to say is left to be said.
"""

from __future__ import annotations

import re

import msgspec

from planforge.documents.imports import Imported, one_line, plain
from planforge.documents.imports.bodies import assembled
from planforge.errors import InvalidInput

FIELDS = "author,body,comments,createdAt,labels,number,state,title,url"
"""What is asked of `gh`."""

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_])?"
REFERENCE = re.compile(rf"(?:(?P<owner>{NAME})/(?P<repository>{NAME}))?#?(?P<number>[1-9][0-9]{{0,9}})")
ADDRESS = re.compile(
    rf"https://(?P<host>[A-Za-z0-9.-]{{1,200}})/(?P<owner>{NAME})/(?P<repository>{NAME})"
    rf"/issues/(?P<number>[1-9][0-9]{{0,9}})/?(?:[?#].*)?"
)


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """Which issue is meant."""

    number: str
    repository: str = ""
    """`owner/name`, with the host before it unless that is github.com; empty is the project's own."""

    def __str__(self) -> str:
        return f"{self.repository}#{self.number}"


def reference(text: str) -> Reference | None:
    """The issue that `owner/repo#12`, `#12` or an address means, or nothing if it means none."""
    said = text.strip()
    found = ADDRESS.fullmatch(said)
    if found:
        host = "" if found["host"].lower() in ("github.com", "www.github.com") else f"{found['host']}/"
        return Reference(number=found["number"], repository=f"{host}{found['owner']}/{found['repository']}")
    found = REFERENCE.fullmatch(said)
    if not found or (found["owner"] and "#" not in said):  # `specs/001` is a path
        return None
    repository = f"{found['owner']}/{found['repository']}" if found["owner"] else ""
    return Reference(number=found["number"], repository=repository)


class _Person(msgspec.Struct, frozen=True):
    login: str = ""


class _Label(msgspec.Struct, frozen=True):
    name: str = ""


class _Comment(msgspec.Struct, frozen=True, rename="camel"):
    author: _Person | None = None
    body: str | None = None
    created_at: str | None = None


class _Issue(msgspec.Struct, frozen=True, rename="camel"):
    title: str
    number: int = 0
    body: str | None = None
    url: str | None = None
    state: str | None = None
    author: _Person | None = None
    created_at: str | None = None
    labels: tuple[_Label, ...] = ()
    comments: tuple[_Comment, ...] = ()


def read(content: bytes, source: str) -> Imported:
    """The issue that such JSON tells of."""
    try:
        issue = msgspec.json.decode(content, type=_Issue)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"`{source}` is not an issue as `gh` writes it: {error}",
            f"make one with `gh issue view 12 --json {FIELDS} > issue.json`",
        ) from error
    title = one_line(issue.title) or f"Issue {issue.number}"
    named = _named(issue) or source
    text = _text(issue, title, named)
    body = assembled(title, {"Objective": [f"Resolve {named}."]})
    return Imported(title=title, text=text, source=named, kind="issue", body=body, context=text)


def _named(issue: _Issue) -> str:
    found = reference(issue.url or "")
    return str(found) if found else ""


def _text(issue: _Issue, title: str, named: str) -> str:
    labels = ", ".join(filter(None, (one_line(label.name) for label in issue.labels)))
    about = [
        f"Issue {named}: {title}",
        f"Opened{_by(issue.author, issue.created_at)}; {one_line(issue.state or 'state unknown').lower()}"
        + (f"; labels: {labels}" if labels else ""),
    ]
    parts = ["\n".join(about), plain(issue.body or "").strip() or "(no description)"]
    for comment in issue.comments:
        parts.append(f"Comment{_by(comment.author, comment.created_at)}:")
        parts.append(plain(comment.body or "").strip() or "(empty)")
    return "\n\n".join(parts) + "\n"


def _by(author: _Person | None, at: str | None) -> str:
    who = f" by {one_line(author.login)}" if author and author.login else ""
    return f"{who} on {one_line(at)[:10]}" if at else who
