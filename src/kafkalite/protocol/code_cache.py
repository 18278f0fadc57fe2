"""Keeps generated code from one run to the next, as Python keeps the bytecode of modules.

Without it a broker would import construct and compile each layout at every start. One file per
message lies in this package's __pycache__; it carries the hash of everything that its code was
made from (the spec, the generators, construct's version), and is made anew when that differs.
A file that is missing, damaged or cannot be written costs time and nothing else: the code is then
compiled from the source that the wheel carries (packaged.py), or generated.
"""

from __future__ import annotations

import marshal
from contextlib import suppress
from functools import cache
from importlib.util import MAGIC_NUMBER, cache_from_source, find_spec, source_hash
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_MADE_BY = (
    "classes", "decoding", "encoding", "layout", "primitives", "runtime", "source", "spec", "text",
)  # fmt: skip

_Entries = dict[str, bytes]
_entries: dict[str, _Entries] = {}  # by message, of which there are as many as specs say


def load(message: str, made_from: Path, entry: str) -> Any:
    """What was stored, or None. `made_from` is the file with the message's spec."""
    stored = _read(message, made_from).get(entry)
    return None if stored is None else marshal.loads(stored)


def store(message: str, made_from: Path, entry: str, value: Any) -> None:
    entries = _read(message, made_from)
    entries[entry] = marshal.dumps(value)
    path = file_of(message)
    beside = path.with_suffix(f".{id(entries)}")
    try:
        path.parent.mkdir(exist_ok=True)
        beside.write_bytes(marshal.dumps((_key(made_from), entries)))
        beside.replace(path)  # whole or not at all, whoever else writes it now
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def file_of(message: str) -> Path:
    return Path(cache_from_source(str(_HERE / f"{message}.py"))).with_suffix(".kept")


def forget() -> None:
    """Takes the files as they are on disk, whatever was read before."""
    _entries.clear()
    origin.cache_clear()


def _read(message: str, made_from: Path) -> _Entries:
    if message not in _entries:
        _entries[message] = _valid_entries(file_of(message), _key(made_from))
    return _entries[message]


def _valid_entries(path: Path, expected: bytes) -> _Entries:
    try:
        found, entries = marshal.loads(path.read_bytes())
    except (OSError, EOFError, ValueError, TypeError):
        return {}
    return entries if found == expected else {}


def _key(made_from: Path) -> bytes:
    """Code, other than its source, is of one Python."""
    return MAGIC_NUMBER + origin(made_from)


@cache
def origin(made_from: Path) -> bytes:
    """The hash of all that the source of a message's code comes from."""
    return bytes(source_hash(made_from.read_bytes() + _generators()))


@cache
def _generators() -> bytes:
    sources = [(_HERE / f"{name}.py").read_bytes() for name in _MADE_BY]
    construct = find_spec("construct")
    if construct is not None and construct.origin is not None:
        sources.append(Path(construct.origin).with_name("version.py").read_bytes())
    return b"".join(sources)
