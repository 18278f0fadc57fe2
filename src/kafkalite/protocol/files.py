"""Where the spec files are, and which of them defines a message: told from their names alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def directory() -> Path:
    """Inside the package when that was installed, else in the repository."""
    packaged = Path(__file__).parent.parent / "protocol_specs"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "protocol_specs"


@cache
def api_files() -> dict[int, Path]:
    """The files of the APIs by key, which is the number that the file's name starts with."""
    return {int(path.name.split("_")[0]): path for path in sorted(directory().glob("[0-9]*.spec"))}


@cache
def message_files() -> tuple[Path, ...]:
    """Every file that defines messages, in a fixed order."""
    found = directory().rglob("*.spec")
    return tuple(sorted(path for path in found if path.name != "errors.spec"))


def file_of(name: str) -> Path:
    """The file that defines the message of this name, if there is one; KeyError if none could."""
    return _index()[name.lower()]


@cache
def _index() -> dict[str, Path]:
    index: dict[str, Path] = {}
    for path in message_files():
        stem = path.stem.lstrip("0123456789_").replace("_", "")
        if path.stem == "headers":
            index |= {"requestheader": path, "responseheader": path}
        elif path.stem[0].isdigit():
            index |= {stem + "request": path, stem + "response": path}
        else:
            index |= {stem: path, stem + "key": path, stem + "value": path}
    return index
