"""
Checks of this machine and this repository, each with its evidence and its fix.

`machine` checks installed programs, `project` git, the settings and the ledger (`tools` the commands in
them), `leftovers` what ended and dead runs left. `remedies` repairs what can be repaired without
losing anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from planforge.app.upkeep.doctor import leftovers, machine, project, remedies
from planforge.app.upkeep.doctor.findings import FAIL, WARN, Diagnosis, Finding
from planforge.errors import PlanforgeError

__all__ = ["Diagnosis", "Finding", "diagnose", "mend"]

Look = Callable[[Path], Iterator[Finding]]

LOOKS: dict[str, Look] = {
    "python": machine.python,
    "sqlite": machine.sqlite,
    "git": machine.git,
    "sandbox": machine.sandbox,
    "repository": project.repository,
    "ledger": project.ledger,
    "state": project.state,
    "settings": project.settings,
    "sandbox level": project.confinement,
    "checks": project.checks,
    "preparation": project.preparation,
    "agents": project.agents,
    "runs": leftovers.runs,
    "worktrees": leftovers.worktrees,
    "processes": leftovers.processes,
    "quarantine": leftovers.quarantine,
    "disk": machine.disk,
}

JUMP_SECONDS = 1.0


def diagnose(start: Path) -> Diagnosis:
    """Run all checks; a check that fails to run is a finding, and the others continue."""
    began = time.time() - time.monotonic()
    findings = [finding for name, look in LOOKS.items() for finding in _seen(name, look, start)]
    jump = time.time() - time.monotonic() - began
    if abs(jump) > JUMP_SECONDS:
        evidence = f"the clock jumped by {jump:.1f} s during this check"
        findings.append(Finding(id="clock", status=WARN, evidence=evidence, fix="timedatectl status"))
    return Diagnosis(healthy=all(item.status != FAIL for item in findings), findings=tuple(findings))


def mend(start: Path) -> Diagnosis:
    """Repair what is safe, then diagnose. Removes only archived work and ends only Planforge's processes."""
    done = remedies.apply(start)
    return msgspec.structs.replace(diagnose(start), mended=done)


def _seen(name: str, look: Look, start: Path) -> list[Finding]:
    try:
        return list(look(start))
    except PlanforgeError as error:
        return [Finding(id=name, status=FAIL, evidence=error.message, fix=error.hint or "")]
    except Exception as error:  # noqa: BLE001  (it is shown, and the other checks continue)
        evidence = f"cannot be checked: {type(error).__name__}: {error}"
        return [Finding(id=name, status=WARN, evidence=" ".join(evidence.split()))]
