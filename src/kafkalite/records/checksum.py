"""CRC-32C, by the library's C code alone.

Owns `crc32c`. Its package looks its own version up among all that is installed when it is imported,
which takes longer than any room of the broker's; the module of C beneath it takes nothing.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crc32c import crc32c as crc32c


def _beneath(package: str, name: str) -> Any:
    """A module of a package that is not imported itself."""
    whole = PathFinder.find_spec(package)
    places = whole and whole.submodule_search_locations
    spec = PathFinder.find_spec(name, places) if places else None
    if spec is None or spec.loader is None:
        raise ImportError(f"{package} has no {name}: pip install --upgrade {package}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if not TYPE_CHECKING:
    crc32c = _beneath("crc32c", "_crc32c").crc32c
