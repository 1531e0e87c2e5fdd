"""What every merge of the landing queue has: its message, its evidence, its conflicts in words."""

from __future__ import annotations

from planforge.kernel.effects import Merged, Note, RunCheck
from planforge.kernel.events import MergeChecked
from planforge.kernel.evidence import Evidence

SHOWN = 5


def message(run: str, subject: str, plan: str = "") -> str:
    """The message of a merge, with trailers that say where it comes from."""
    trailers = [f"Planforge-Run: {run}"] + ([f"Planforge-Plan: {plan}"] if plan else [])
    return f"{subject}\n\n" + "\n".join(trailers) + "\n"


async def checked(branch: str, plan: str, commit: str, tree: str, onto: str) -> Evidence:
    """Check a commit that is on its way to `branch`, for the record."""
    evidence = await RunCheck(commit=commit, tree=tree)
    await Note(MergeChecked(branch=branch, plan=plan, onto=onto, evidence=evidence))
    return evidence


def conflicts(merged: Merged) -> str:
    """The paths that could not be merged."""
    names = [f"`{conflict.path}`" for conflict in merged.conflicts]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (", ".join(names[:SHOWN]) or "a way that git does not name") + more
