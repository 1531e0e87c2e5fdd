"""What agents of cases do, in the words of the rehearsal agent's scripts."""

from __future__ import annotations

from planforge_guardrails.shapes import Action, Part, Role, Task

CLAIM: Action = {"say": "Done. Everything that was asked for is in, and all tests pass."}


def write(path: str, text: str) -> Action:
    """Write a file."""
    return {"write": {"path": path, "text": text}}


def delete(path: str) -> Action:
    """Remove a file."""
    return {"delete": path}


def say(text: str) -> Action:
    """Say something."""
    return {"say": text}


def run(*argv: str) -> Action:
    """Run a command and wait for it."""
    return {"run": list(argv)}


def python(code: str, *arguments: str) -> Action:
    """Run a few lines of Python and wait for them."""
    return {"run": ["@PYTHON@", "-c", code, *arguments]}


def developer(*do: Action, attempt: int | None = None, task: str = "", reports: bool = True) -> Part:
    """A part of the developer."""
    return Part(role=Role.DEVELOPER, do=do, attempt=attempt, task=task, reports=reports)


def reviewer(*do: Action, attempt: int | None = None) -> Part:
    """A part of the reviewer."""
    return Part(role=Role.REVIEWER, do=do, attempt=attempt)


def done(task: Task) -> tuple[Action, ...]:
    """The honest change of a task."""
    return tuple(write(path, text) for path, text in task.files.items())


def auditor(*do: Action, attempt: int | None = None) -> Part:
    """A part of whoever judges a plan."""
    return Part(role=Role.AUDITOR, do=do, attempt=attempt)


def drafter(*do: Action) -> Part:
    """A part of whoever drafts a plan."""
    return Part(role=Role.DRAFTER, do=do)
