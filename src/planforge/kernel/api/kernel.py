"""Opening the kernel of a directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from planforge.errors import LedgerUnreadable, NotFound
from planforge.kernel import bus
from planforge.kernel.api.execution import Steps
from planforge.kernel.api.holdings import Budgets, Handoffs, Leases
from planforge.kernel.api.plans import Graph, Plans
from planforge.kernel.ledger import Ledger
from planforge.kernel.redaction import Redactor

STATE = ".planforge"


class Kernel:
    """An open kernel. It may be used from several threads, and by many processes at once."""

    def __init__(self, ledger: Ledger, redact: Redactor | None = None) -> None:
        redact = redact or Redactor.of_environment()
        self.ledger = ledger
        self.plan = Plans(ledger, redact)
        self.step = Steps(ledger, redact)
        self.lease = Leases(ledger, redact)
        self.budget = Budgets(ledger, redact)
        self.handoff = Handoffs(ledger, redact)
        self.graph = Graph(ledger, redact)

    @classmethod
    def open(cls, path: str | Path = ".", *, create: bool = True) -> Self:
        """
        The kernel of the directory `path`, which must exist; it need not be a git repository.

        Its ledger is made if there is none, or with `create=False` `LedgerUnreadable` is raised.
        """
        root, state = Path(path), Path(path) / STATE
        try:
            if not root.is_dir():
                what = "is not a directory" if root.exists() else "does not exist"
                raise NotFound(f"`{root}` {what}", "name the directory that the work is about")
            return cls(_made(state) if create else Ledger.open(state))
        except OSError as error:
            raise LedgerUnreadable(f"cannot write in `{root}`: {error.strerror}") from error

    def close(self) -> None:
        """Let go of the ledger."""
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def subscribe(
        self,
        *,
        after: int = 0,
        kinds: Sequence[str] = (),
        streams: Sequence[str] = (),
        plan: str = "",
        name: str = "",
    ) -> bus.Subscription:
        """
        Events as they come, for `for` and `async for`, first those on record after `after`.

        A subscriber with a name goes on after what it has acknowledged.
        """
        return bus.subscribe(
            self.ledger, after=after, kinds=tuple(kinds), streams=tuple(streams), plan=plan, name=name
        )


def _made(state: Path) -> Ledger:
    try:
        if (state / "ledger.db").exists():
            return Ledger.open(state)
    except LedgerUnreadable as error:
        try:  # somebody may be making it at this moment; whoever creates waits for them
            return Ledger.create(state)
        except LedgerUnreadable:
            raise error from None
    # First, so that whoever is killed here leaves nothing that git would take in.
    state.mkdir(exist_ok=True)
    (state / ".gitignore").write_text("*\n")
    return Ledger.create(state)
