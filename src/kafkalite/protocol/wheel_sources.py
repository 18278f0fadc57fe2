"""The source of generated code that a wheel carries, so that its first start needs no construct.

One file per message beside this one's package: its first line is the hash of what the source was
generated from, each other line one entry as JSON. A tree that was not built has none.
"""

from __future__ import annotations

import json
from pathlib import Path

from kafkalite.protocol import code_cache
from kafkalite.protocol.runtime import Written

FOLDER = "generated"
_HERE = Path(__file__).parent / FOLDER


def load(message: str, made_from: Path, entry: str) -> Written | None:
    """What the wheel has of it, or None. `made_from` is the file with the message's spec."""
    try:
        head, *lines = (_HERE / message).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    if head != code_cache.origin(made_from).hex():
        return None
    for line in lines:
        if line.startswith(f'["{entry}", '):
            _, source, recipes = json.loads(line)
            return source, {name: (kind, detail) for name, (kind, detail) in recipes.items()}
    return None


def save(folder: Path, message: str, made_from: Path, entries: dict[str, Written]) -> None:
    """Writes a message's file into a folder that becomes FOLDER of the installed package."""
    lines = [json.dumps([entry, *written]) for entry, written in entries.items()]
    text = "\n".join([code_cache.origin(made_from).hex(), *lines]) + "\n"
    (folder / message).write_text(text, encoding="utf-8")
