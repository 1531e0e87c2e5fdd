from __future__ import annotations

import pytest

# Before anything imports it: tests of several folders do.
pytest.register_assert_rewrite("kernel.ledger_contract")
