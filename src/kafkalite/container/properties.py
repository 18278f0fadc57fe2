"""Writes settings as a file of Java properties, in the order of their names."""

from __future__ import annotations

from collections.abc import Mapping

_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"})


def properties_text(settings: Mapping[str, str]) -> str:
    """The file's text; reading it gives the same settings."""
    lines = (f"{_key(name)}={_value(value)}\n" for name, value in sorted(settings.items()))
    return "".join(lines)


def _key(name: str) -> str:
    return "".join(f"\\{each}" if each in " :=#!" else each for each in name.translate(_ESCAPES))


def _value(value: str) -> str:
    text = value.translate(_ESCAPES)
    return f"\\{text}" if text.startswith(" ") else text
