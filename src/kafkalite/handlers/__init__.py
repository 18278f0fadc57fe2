"""One module per API, named as its spec, with a function of the same name that answers it.

Owns the look-up from an API's key to that function; a module is imported when its API is first
asked for. Never holds a table of APIs: the specs and the modules that exist are the table.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from kafkalite.protocol import spec

Handler = Callable[..., Any]


@cache
def handler(api_key: int) -> Handler | None:
    """The function that answers an API, or None: then the API is neither served nor advertised."""
    name = module_of(api_key)
    if name is None:
        return None
    found: Handler = getattr(import_module(name), name.rpartition(".")[2])
    return found


def module_of(api_key: int) -> str | None:
    """The module of that function."""
    name = _name(api_key)
    return f"{__name__}.{name}" if name in _modules() else None


def served() -> list[int]:
    """The keys of the APIs that have a handler."""
    return [key for key in spec.api_files() if _name(key) in _modules()]


def versions(api: spec.Api) -> range:
    """The versions of an API that are served: those that Kafka dropped too, but none unstable."""
    return range(api.versions.start, api.stable.stop)


def _name(api_key: int) -> str | None:
    path = spec.api_files().get(api_key)
    return path.stem.partition("_")[2] if path else None


@cache
def _modules() -> frozenset[str]:
    return frozenset(module.name for module in pkgutil.iter_modules(__path__))
