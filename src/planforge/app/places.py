"""Where things lie in a repository."""

from __future__ import annotations

STATE = ".planforge"
"""The directory of the ledger, which git ignores."""

SETTINGS = "planforge.toml"
"""The file of the settings."""

PLANS = "docs/plans"
"""The directory of plan files, unless `forge.plans` names another one."""
