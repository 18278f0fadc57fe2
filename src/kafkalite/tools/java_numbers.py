"""Numbers and lists as Java reads them from text: numbers as large as their type holds, and written
as Java has them; lists without what is empty at their end.

`whole` and `real` raise ValueError for what is none.
"""

from __future__ import annotations

import re

INT, LONG, SHORT = 32, 64, 16  # bits
_REAL = re.compile(
    r"[-+]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fFdD]?)", re.ASCII
)
_HEXADECIMAL = re.compile(
    r"[-+]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][-+]?[0-9]+[fFdD]?"
)
_BLANKS = "".join(map(chr, range(33)))  # what Java's trim takes off


def whole(text: str, bits: int = INT) -> int:
    found = int(text) if re.fullmatch(r"[-+]?\d+", text) else None
    if found is None or not is_whole(found, bits):
        raise ValueError(text)
    return found


def is_whole(number: int, bits: int) -> bool:
    """Whether a type holds a number."""
    return -1 << (bits - 1) <= number < 1 << (bits - 1)


def java_split(text: str, separator: str) -> list[str]:
    """At least one part, if the text is not made of separators alone."""
    if not text:
        return [text]
    parts = text.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def real(text: str) -> float:
    text = text.strip(_BLANKS)
    if _HEXADECIMAL.fullmatch(text):
        return float.fromhex(text.rstrip("fFdD"))
    if not _REAL.fullmatch(text):
        raise ValueError(text)
    return float(text.rstrip("fFdD"))
