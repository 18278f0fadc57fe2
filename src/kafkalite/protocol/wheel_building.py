"""Generates the code of every message in every version, for a wheel to carry."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from kafkalite.protocol import classes, compiler, files, spec, wheel_sources
from kafkalite.protocol.messages import message_class
from kafkalite.protocol.runtime import Written


def write_all(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in files.message_files():
        for message in spec.read(path).messages.values():
            wheel_sources.save(folder, message.name, path, _entries(message))


def _entries(message: spec.Message) -> dict[str, Written]:
    cls = message_class(message.name)
    functions = {
        f"{kind} {version}": compiler.write(kind, cls, version)
        for version in message.versions
        for kind in kinds_of(message)
    }
    return {"class": classes.write(message.name), **functions}


def kinds_of(message: spec.Message) -> list[compiler.Kind]:
    """Those that a broker may need: only what peers ask and are answered can be large."""
    is_request = message.name.endswith("Request")
    is_needless = {
        "decode_in_steps": not is_request,
        "encode_in_steps": not message.name.endswith("Response"),
        "decode_few": not (is_request and message.has_records),
    }
    return [kind for kind in get_args(compiler.Kind) if not is_needless.get(kind, False)]
