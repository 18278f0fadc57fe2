"""Generates the code of every message in every version, for a wheel to carry."""

from __future__ import annotations

from pathlib import Path

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
        for kind in compiler.kinds_of(message.name)
    }
    return {"class": classes.write(message.name), **functions}

