"""Files that a tool is given, read as Java reads them, and its exceptions for those that cannot be.
"""

from __future__ import annotations

from pathlib import Path

from kafkalite.tools.failures import Failure, illegal_argument

_FILES = "java.nio.file."


def read_text(path: str) -> str:
    """What is no UTF-8 becomes the sign for that."""
    try:
        return _bytes(path).decode(errors="replace")
    except Failure as cause:
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
    except (FileNotFoundError, NotADirectoryError) as error:
        name = "NoSuchFile" if isinstance(error, FileNotFoundError) else "FileSystem"
        message = path if name == "NoSuchFile" else f"{path}: {error.strerror}"
        raise Failure(f"{_FILES}{name}Exception", message) from None
    except PermissionError:
        raise Failure(f"{_FILES}AccessDeniedException", path) from None
    except OSError as error:
        raise Failure("java.io.IOException", str(error.strerror)) from None
