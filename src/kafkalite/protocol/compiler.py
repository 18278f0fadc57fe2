"""From a message class and a version to a function: kept, packaged, or generated now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from kafkalite.protocol import code_cache, files, wheel_sources
from kafkalite.protocol.runtime import Generated, Written, link

Kind = Literal[
    "decode", "decode_prefix", "encode", "decode_in_steps", "encode_in_steps", "decode_few"
]


def function(kind: Kind, cls: type[Any], version: int) -> Callable[..., Any]:
    name, made_from = cls.__name__, files.file_of(cls.__name__)
    entry = f"{kind} {version}"
    generated: Generated | None = code_cache.load(name, made_from, entry)
    if generated is None:
        source, recipes = wheel_sources.load(name, made_from, entry) or write(kind, cls, version)
        generated = compile(source, f"<{kind} {name} v{version}>", "exec"), recipes
        code_cache.store(name, made_from, entry, generated)
    return link(generated, cls, kind[:6])


def write(kind: Kind, cls: type[Any], version: int) -> Written:
    """The function's source. Imports construct, which takes as long as all the rest, only here."""
    from kafkalite.protocol.decoding import generate_decoder
    from kafkalite.protocol.encoding import generate_encoder
    from kafkalite.protocol.layout import layout

    title = f"{cls.__name__} v{version}"
    in_steps = kind.endswith("_in_steps")
    if kind.startswith("encode"):
        return generate_encoder(layout(cls, version), title, in_steps=in_steps)
    return generate_decoder(
        layout(cls, version), title,
        is_prefix=kind != "decode", in_steps=in_steps, is_limited=kind == "decode_few",
    )  # fmt: skip
