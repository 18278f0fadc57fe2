"""Compiles a message's layout in a version into functions: the one entrance to the generators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkalite.protocol.decoding import compile_decoder
from kafkalite.protocol.encoding import compile_encoder
from kafkalite.protocol.layout import layout


def decoder(cls: type[Any], version: int, *, is_prefix: bool = False) -> Callable[..., Any]:
    title = f"{cls.__name__} v{version}"
    return compile_decoder(cls, layout(cls, version), title, is_prefix=is_prefix)


def encoder(cls: type[Any], version: int) -> Callable[..., Any]:
    return compile_encoder(layout(cls, version), f"{cls.__name__} v{version}")
