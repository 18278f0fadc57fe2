"""Every message of protocol_specs/ as a class, made when it is first asked for.

    from kafkalite.protocol.messages import ProduceRequest

The stub beside this file, which editors and mypy read, is generated: `python -m
kafkalite.protocol.stubs`.
"""

from __future__ import annotations

from typing import Any

from kafkalite.protocol import classes
from kafkalite.protocol.classes import ZERO_UUID

__all__ = ["ZERO_UUID", "message_class"]


def message_class(name: str) -> type[Any]:
    """The class of the message of this name; AttributeError when there is none."""
    cls: type[Any] = globals().get(name) or __getattr__(name)
    return cls


def __getattr__(name: str) -> Any:
    try:
        cls = classes.build(name, __name__)
    except KeyError:
        raise AttributeError(f"no message is called {name}") from None
    globals()[name] = cls
    return cls
