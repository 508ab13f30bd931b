"""The policies, each in a module or package of its own that :mod:`dram.policy` finds here."""

from pkgutil import iter_modules


def packaged() -> list[str]:
    """Their names, without loading them."""
    return sorted(module.name for module in iter_modules(__path__))
