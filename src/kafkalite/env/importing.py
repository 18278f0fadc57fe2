"""A module of the package imported behind those that it imports, one after the other.

Owns the look into a module that is not there yet: its compiled code names what it imports. Where
that cannot be seen (a compiled build) all of it is imported in one go.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

from kafkalite.env.slicing import Steps

PACKAGE = "kafkalite."


def imported(name: str, seen: set[str] | None = None) -> Steps[None]:
    """One module in each step; an ImportError is that of the module."""
    seen = set() if seen is None else seen
    if name in sys.modules or name in seen:
        return
    seen.add(name)
    for each in _imports_of(name):
        yield from imported(each, seen)
    import_module(name)
    yield


def _imports_of(name: str) -> list[str]:
    spec = find_spec(name)
    get_code = getattr(spec and spec.loader, "get_code", None)
    code = get_code and get_code(name)
    if code is None:
        return []
    found = [each for each in code.co_names if each.startswith(PACKAGE)]
    packages = [each for each in found if hasattr(sys.modules.get(each), "__path__")]
    inside = (f"{package}.{each}" for package in packages for each in code.co_names)
    return [*found, *filter(_is_module, inside)]


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
