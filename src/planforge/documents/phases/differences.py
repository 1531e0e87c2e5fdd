"""
What a phases file says, only to hold it against the ledger: nothing is ever believed of it.

Tolerant: whatever people did to the file, it is read. Only `## phase-N:` begins a phase,
and only the lines of its preamble, before the description, are its fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from planforge.documents import markdown

PHASE_HEADING = re.compile(r"(?P<id>phase-[0-9]+):.*", re.IGNORECASE)
FIELD = re.compile(r"[ \t]*\*\*(?P<key>[^*:]+):\*\*[ \t]*(?P<value>.*?)[ \t]*")
SPEC = "change spec"
PLAN_HASH = re.compile(r"Plan hash:[ \t]*(?P<value>.*?)[ \t]*")


class _Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A phase as a file has it."""

    id: str
    status: str
    text: str


def read_phases(text: str) -> tuple[tuple[str, str], ...]:
    """Each phase of a phases file and its status, which is empty where the file does not say."""
    return tuple((phase.id, phase.status) for phase in _phases(text))


def differences(text: str, rendered: str) -> tuple[str, ...]:
    """
    In words, what a phases file says that the ledger does not, from the file and from what it should be.

    Dates are left out, and how lines end: neither is anybody's edit.
    """
    found: list[str] = []
    said, recorded = _hash(text) or "nothing", _hash(rendered) or "nothing"
    if said != recorded:
        found.append(f"edited plan hash: the file says {said}, the ledger says {recorded}")
    file, ledger = _by_id(text), _by_id(rendered)
    for name, shown in ledger.items():
        if name not in file:
            found.append(f"removed: `{name}` is in the ledger and not in the file")
        elif file[name].status != shown.status:
            found.append(
                f"edited status of `{name}`: the file says {file[name].status or 'nothing'}, "
                f"the ledger says {shown.status}"
            )
        elif file[name].text != shown.text:
            found.append(f"edited text of `{name}`: the plan is what is carried out, not this file")
    found += [f"added: `{name}` is in the file and not in the ledger" for name in file if name not in ledger]
    names = [name for name, _ in read_phases(text)]
    found += [
        f"`{name}` is in the file more than once" for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    return tuple(found)


def _hash(text: str) -> str:
    for line in markdown.lines(text):
        if markdown.heading(line) is not None:
            break
        if not line.fenced and (found := PLAN_HASH.fullmatch(line.text)):
            return found["value"]
    return ""


def _by_id(text: str) -> Mapping[str, _Shown]:
    """The phases of a file; of two with one name, the first."""
    found: dict[str, _Shown] = {}
    for phase in _phases(text):
        found.setdefault(phase.id, phase)
    return found


def _phases(text: str) -> list[_Shown]:
    text = text.removeprefix("\ufeff")
    found = []
    for section in markdown.sections(text):
        if heading := PHASE_HEADING.fullmatch(section.name):
            body = text[section.start : section.end]
            whole = "\n".join(line.text.rstrip() for line in markdown.raw_lines(body)).strip()
            status = _status(text[section.body_start : section.end])
            found.append(_Shown(id=heading["id"].lower(), status=status, text=whole))
    return found


def _status(body: str) -> str:
    """The status in a phase's preamble: the fields before its description."""
    for line in markdown.lines(body):
        field = None if line.fenced else FIELD.fullmatch(line.text)
        if field and field["key"].strip().lower() == "status":
            return field["value"].lower()
        if line.text.strip() and (field is None or field["key"].strip().lower() == SPEC):
            break
    return ""
