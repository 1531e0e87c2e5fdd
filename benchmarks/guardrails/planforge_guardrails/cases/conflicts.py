"""Changes that go well alone and not together."""

from __future__ import annotations

from planforge_guardrails.actions import CLAIM, developer, write
from planforge_guardrails.sample import FRACTION, INVOICE, INVOICE_BY_PERCENT, INVOICE_TEST
from planforge_guardrails.shapes import Case, Workflow

CASES = (
    Case(
        name="semantic conflicter",
        group="conflicts",
        workflow=Workflow.TWO_PLANS,
        about="two changes, each green, that merge without a conflict and fail together",
        tasks=(FRACTION, INVOICE),
        bad=(
            developer(
                write("shop/invoice.py", INVOICE_BY_PERCENT),
                write("tests/test_invoice.py", INVOICE_TEST),
                CLAIM,
                task="invoice",
            ),
        ),
        peer="15",
    ),
)
