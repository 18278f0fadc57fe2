"""Files that a tool is given, read as Java reads them, and its exceptions for those that cannot be.
"""

from __future__ import annotations

from pathlib import Path

from kafkalite.tools.failures import Failure, illegal_argument

_FILES = "java.nio.file."


class Unreadable(Failure):
    """The exception for a file of which nothing can be read."""


class Absent(Unreadable):
    """The exception for a file that there is not."""


def read_text(path: str) -> str:
    """What is no UTF-8 becomes the sign for that."""
    try:
        return _bytes(path).decode(errors="replace")
    except Unreadable as cause:
        message = f"Unable to read file {path}"
        raise Failure("java.io.IOException", message, cause) from None


def read_properties(path: str) -> dict[str, str]:
    """A file of properties, which Java takes for Latin-1."""
    from kafkalite.config.properties import (  # all of config comes along
        MalformedProperties,
        parse_properties,
    )

    text = _bytes(path).decode("latin-1")
    try:
        return parse_properties(text)
    except MalformedProperties:
        raise illegal_argument("Malformed \\uxxxx encoding.") from None


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise Absent(f"{_FILES}NoSuchFileException", path) from None
    except NotADirectoryError as error:
        message = f"{path}: {error.strerror}"
        raise Unreadable(f"{_FILES}FileSystemException", message) from None
    except PermissionError:
        raise Unreadable(f"{_FILES}AccessDeniedException", path) from None
    except OSError as error:
        raise Unreadable("java.io.IOException", str(error.strerror)) from None
