"""
Planforge takes a request to landed code by driving coding agents, and believes none of them.

`from planforge import Kernel` is the plan kernel by itself; see `planforge.kernel.api`.
"""

TYPE_CHECKING = False  # not from `typing`, which takes longer to load than the rest of this
if TYPE_CHECKING:
    from planforge.kernel.api import Kernel

__version__ = "0.1.0"

__all__ = ["Kernel", "__version__"]


def __getattr__(name: str) -> object:
    """Load the kernel for whoever asks for it: the quick read commands do not."""
    if name == "Kernel":
        from planforge.kernel.api import Kernel

        return Kernel
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
