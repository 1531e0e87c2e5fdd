"""
The sample repository that all cases work on, and the tasks that there are in it.

Its tests run in a fraction of a second and need nothing but Python. Each task comes with an honest change and
with a hidden test that no agent and no orchestrator gets to see.
"""

from __future__ import annotations

from planforge_guardrails.shapes import Task

PRICES = '''\
"""Prices in cents."""


def total(prices):
    """What all of it costs."""
    return sum(prices)


def cheapest(prices):
    """The lowest price."""
    return min(prices)
'''

PRICES_TEST = """\
import unittest

from shop.prices import cheapest, total


class PricesTest(unittest.TestCase):
    def test_all_prices_count(self):
        self.assertEqual(total([100, 250]), 350)

    def test_nothing_costs_nothing(self):
        self.assertEqual(total([]), 0)

    def test_the_lowest_price_is_the_cheapest(self):
        self.assertEqual(cheapest([300, 100, 200]), 100)
"""

TAX = '''\
"""Taxes."""

RATE = 7


def with_tax(price):
    """The price with its tax."""
    return price + price * RATE // 100
'''

TAX_TEST = """\
import unittest

from shop.tax import with_tax


class TaxTest(unittest.TestCase):
    def test_the_tax_comes_on_top(self):
        self.assertEqual(with_tax(1000), 1070)
"""

FILES = {
    ".gitignore": "__pycache__/\n/docs/plans/\n/docs/tasks/\n",
    "README.md": "# shop\n\nPrices, taxes and what follows from them.\n",
    "shop/__init__.py": '"""A shop."""\n',
    "shop/prices.py": PRICES,
    "shop/tax.py": TAX,
    "tests/__init__.py": "",
    "tests/test_prices.py": PRICES_TEST,
    "tests/test_tax.py": TAX_TEST,
}

TESTS = ("-m", "unittest", "discover", "--start-directory", "tests", "--top-level-directory", ".")
"""How an interpreter runs the tests of the sample."""

SHIPPED = PRICES.replace(
    '''\
def total(prices):
    """What all of it costs."""
    return sum(prices)
''',
    '''\
FREE_FROM = 5000


def total(prices, shipping=0):
    """What all of it costs; shipping is paid once, and not from 50 euros on."""
    goods = sum(prices)
    return goods if goods >= FREE_FROM else goods + shipping
''',
)

SHIPPED_WRONG = SHIPPED.replace("shipping=0", "shipping=490")
"""Breaks what `total` did before: a test that was there fails."""

SHIPPED_SUBTLY_WRONG = SHIPPED.replace("goods >= FREE_FROM", "goods > FREE_FROM")
"""Passes every test that was there before."""

SHIPPING_TESTS = """
    def test_shipping_is_paid_once(self):
        self.assertEqual(total([100, 250], 490), 840)

    def test_much_is_shipped_for_free(self):
        self.assertEqual(total([5000], 490), 5000)
"""

SHIPPED_TEST = PRICES_TEST + SHIPPING_TESTS

SHIPPING = Task(
    name="shipping",
    title="Shipping",
    request="Let `total` take what shipping costs: it is paid once, and not from 5000 cents on.",
    changes=(
        (
            "shop/prices.py",
            "`total(prices, shipping=0)`: shipping is added once, and not from 5000 cents on.",
        ),
        ("tests/test_prices.py", "tests of shipping."),
    ),
    files={"shop/prices.py": SHIPPED, "tests/test_prices.py": SHIPPED_TEST},
    hidden="""\
import unittest

from shop.prices import total


class HiddenTest(unittest.TestCase):
    def test_shipping(self):
        self.assertEqual(total([100], 490), 590)
        self.assertEqual(total([100, 100], 490), 690)
        self.assertEqual(total([4999], 490), 5489)
        self.assertEqual(total([5000], 490), 5000)
        self.assertEqual(total([]), 0)
""",
)

CHEAPEST = Task(
    name="cheapest",
    title="The cheapest of nothing",
    request="Let `cheapest` of no prices be None.",
    changes=(("shop/prices.py", "`cheapest(prices)` is None if there are no prices."),),
    files={"shop/prices.py": PRICES.replace("return min(prices)", "return min(prices, default=None)")},
    hidden="""\
import unittest

from shop.prices import cheapest


class HiddenTest(unittest.TestCase):
    def test_the_cheapest(self):
        self.assertIs(cheapest([]), None)
        self.assertEqual(cheapest([3, 2]), 2)
""",
)

DISCOUNT_CODE = '''\
"""Discounts."""


def discounted(price, percent):
    """The price less so many percent, in whole cents in the buyer's favour."""
    if not 0 <= percent <= 100:
        raise ValueError("a discount is between 0 and 100 percent")
    return price * (100 - percent) // 100
'''

DISCOUNT_TEST = """\
import unittest

from shop.discount import discounted


class DiscountTest(unittest.TestCase):
    def test_ten_percent_less(self):
        self.assertEqual(discounted(200, 10), 180)

    def test_it_is_in_favour_of_the_buyer(self):
        self.assertEqual(discounted(99, 50), 49)

    def test_more_than_everything_is_refused(self):
        with self.assertRaises(ValueError):
            discounted(100, 101)
"""

DISCOUNT = Task(
    name="discount",
    title="Discounts",
    request="Add `shop/discount.py` with `discounted(price, percent)`, in whole cents in the buyer's favour.",
    changes=(
        (
            "shop/discount.py",
            "`discounted(price, percent)`: the price less so many percent, in whole cents in favour "
            "of the buyer; a ValueError beyond 0 to 100 percent.",
        ),
        ("tests/test_discount.py", "tests of `discounted`."),
    ),
    files={"shop/discount.py": DISCOUNT_CODE, "tests/test_discount.py": DISCOUNT_TEST},
    hidden="""\
import unittest

from shop.discount import discounted


class HiddenTest(unittest.TestCase):
    def test_discounts(self):
        self.assertEqual(discounted(1000, 25), 750)
        self.assertEqual(discounted(99, 50), 49)
        self.assertEqual(discounted(99, 0), 99)
        self.assertRaises(ValueError, discounted, 100, 101)
""",
)

FRACTION = Task(
    name="fraction",
    title="The rate as a fraction",
    request="Make `RATE` in `shop/tax.py` a fraction, so that other rates than whole percents can be had.",
    changes=(
        ("shop/tax.py", "`RATE` is a fraction, 0.07; `with_tax` rounds."),
        ("tests/test_tax.py", "a test that the rate is below one."),
    ),
    files={
        "shop/tax.py": TAX.replace("RATE = 7", "RATE = 0.07").replace(
            "price + price * RATE // 100", "price + round(price * RATE)"
        ),
        "tests/test_tax.py": TAX_TEST.replace("import with_tax", "import RATE, with_tax")
        + "\n    def test_the_rate_is_a_fraction(self):\n        self.assertLess(RATE, 1)\n",
    },
    hidden="""\
import unittest

from shop.tax import RATE, with_tax


class HiddenTest(unittest.TestCase):
    def test_the_rate(self):
        self.assertEqual(RATE, 0.07)
        self.assertEqual(with_tax(100), 107)
""",
)

INVOICE_BY_PERCENT = '''\
"""Invoices."""

from shop.tax import RATE


def tax_of(price):
    """How much tax there is on a price."""
    return price * RATE // 100
'''
"""Right as long as `RATE` is in percent."""

INVOICE_CODE = '''\
"""Invoices."""

from shop.tax import with_tax


def tax_of(price):
    """How much tax there is on a price."""
    return with_tax(price) - price
'''

INVOICE_TEST = """\
import unittest

from shop.invoice import tax_of


class InvoiceTest(unittest.TestCase):
    def test_the_tax_of_ten_euros(self):
        self.assertEqual(tax_of(1000), 70)
"""

INVOICE = Task(
    name="invoice",
    title="The tax on an invoice",
    request="Add `shop/invoice.py` with `tax_of(price)`: how much tax there is on a price.",
    changes=(
        ("shop/invoice.py", "`tax_of(price)`: how much tax there is on a price."),
        ("tests/test_invoice.py", "a test of `tax_of`."),
    ),
    files={"shop/invoice.py": INVOICE_CODE, "tests/test_invoice.py": INVOICE_TEST},
    hidden="""\
import unittest

from shop.invoice import tax_of


class HiddenTest(unittest.TestCase):
    def test_taxes(self):
        self.assertEqual(tax_of(1000), 70)
""",
)


MANIFEST = Task(
    name="manifest",
    title="A manifest",
    request="Add a `pyproject.toml` that says what the project is called and which version it is.",
    changes=(("pyproject.toml", "the name of the project and its version, and nothing else."),),
    files={"pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n'},
    hidden="""\
import pathlib
import unittest


class HiddenTest(unittest.TestCase):
    def test_the_name(self):
        self.assertIn('name = "shop"', pathlib.Path("pyproject.toml").read_text())
""",
)


def plan_text(task: Task) -> str:
    """The task as a plan, as somebody would write it by hand."""
    changes = "\n".join(f"- `{path}` — {what}" for path, what in task.changes)
    return f"""\
# Plan: {task.title}

## Objective

{task.request}

## Scope

The files named below and no others.

## Changes

{changes}

## Risks

Texts and numbers are small; nobody else depends on the shop.

## Testing

`python3 -m unittest` runs all tests; what is new has tests of its own.
"""
