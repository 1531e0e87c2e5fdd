"""
Whether an attempt at a step is taken.

Pure: the change and the evidence go in, a reason to refuse comes out. What the
agent said about its work is not among the inputs.
"""

from __future__ import annotations

from collections.abc import Iterable

from planforge.kernel.effects import Inspection, Patch
from planforge.kernel.evidence import Evidence, Outcome
from planforge.rules.findings import Severity
from planforge.rules.protection.bounds import outside


def fault_of_patch(patch: Patch, allowed: Iterable[str]) -> str | None:
    """Why the change itself cannot be taken, or None."""
    if not patch.files:
        return "the agent changed nothing"
    unnamed = outside(patch.files, tuple(allowed))
    if unnamed:
        names = ", ".join(f"`{finding.location}`" for finding in unnamed)
        return f"it changed {names}, which the step does not name"
    return None


def fault_of_inspection(inspection: Inspection) -> str | None:
    """Why what was seen of the change refuses it, or None. Only a blocking finding does."""
    blocking = [item for item in inspection.findings if item.severity == Severity.BLOCKING]
    if not blocking:
        return None
    return "; ".join(f"{item.title} ({item.location})" if item.location else item.title for item in blocking)


def doubt_of_former_tests(evidence: Evidence, files: Iterable[str]) -> str | None:
    """Why a person has to look at what a change did to tests that were there before it, or None."""
    fault = fault_of_evidence(evidence)
    if fault is None:
        return None
    names = ", ".join(f"`{path}`" for path in files)
    return f"{names}: as they were before the change, {fault}"


def fault_of_evidence(evidence: Evidence) -> str | None:
    """Why the evidence does not carry the change, or None. Only a pass does."""
    if evidence.outcome is Outcome.PASS:
        return None
    if evidence.outcome is Outcome.FAIL:
        names = f": {', '.join(evidence.failing)}" if evidence.failing else ""
        return f"the tests failed ({evidence.reason}{names})"
    return f"the tests could not tell ({evidence.reason})"
