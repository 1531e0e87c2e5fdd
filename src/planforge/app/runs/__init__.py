"""
Runs: which there are, how one begins, and who drives or ends one.

`table.py` has the rows and `start.py` records a new run; both are quick to load and are what most of `app`
needs. `driver.py` drives runs and alone knows who performs what (`compose.py`), so nothing that a performer
needs may import it. `background.py` has the runs that this process drives beside other work, and
`cancellation.py` ends one from outside.
"""

from planforge.app.runs.start import begin, require_free
from planforge.app.runs.table import Ended, RunRow, events, is_due, rows, started, to_resume, waiting_for

__all__ = [
    "Ended",
    "RunRow",
    "begin",
    "events",
    "is_due",
    "require_free",
    "rows",
    "started",
    "to_resume",
    "waiting_for",
]
