"""Runs: which there are (`table.py`) and how one begins (`start.py`); both are quick to load."""

from planforge.app.runs.start import begin, require_free, require_turn
from planforge.app.runs.table import (
    RunRow,
    events,
    is_due,
    of_subject,
    request,
    rows,
    started,
    to_resume,
    waiting_for,
)

__all__ = [
    "RunRow",
    "begin",
    "events",
    "is_due",
    "of_subject",
    "request",
    "require_free",
    "require_turn",
    "rows",
    "started",
    "to_resume",
    "waiting_for",
]
