"""
Reads how many tests ran, and which failed, from what a test program left.

A reader returns what it can prove. None means that no count could be read, which is
not the same as a count of zero; a tally with a doubt has a count that cannot be
believed, and says why. One module for each sort of report: `junit`, `machine` for
what runners write for machines, `texts` and `runners` for what they print for people,
`findings` for linters, `coverage`.
"""

from planforge.workspace.reports.coverage import read_coverage
from planforge.workspace.reports.findings import Findings, read_eslint, read_findings, read_sarif
from planforge.workspace.reports.junit import read_junit, read_junits
from planforge.workspace.reports.machine import read_go, read_jest, read_mocha
from planforge.workspace.reports.runners import read_unittest
from planforge.workspace.reports.tally import REPORT_LIMIT, Tally
from planforge.workspace.reports.tap import read_tap
from planforge.workspace.reports.texts import read_summaries

__all__ = [
    "REPORT_LIMIT",
    "Findings",
    "Tally",
    "read_coverage",
    "read_eslint",
    "read_findings",
    "read_go",
    "read_jest",
    "read_junit",
    "read_junits",
    "read_mocha",
    "read_sarif",
    "read_summaries",
    "read_tap",
    "read_unittest",
]
