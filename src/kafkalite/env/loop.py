"""The event loop: uvloop's where there is one, else asyncio's own."""

from __future__ import annotations

import asyncio


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop that is not anybody's yet."""
    try:
        import uvloop
    except ImportError:
        return asyncio.SelectorEventLoop()  # that of Windows watches no sockets
    return uvloop.new_event_loop()
