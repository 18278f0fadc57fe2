"""The protocol's error codes, and the two exceptions that a peer's request can end in.

`Error` is read from protocol_specs/errors.spec; the stub beside this file is generated.
"""

from __future__ import annotations

import re
from enum import IntEnum

from kafkalite.protocol import spec

_LINE = re.compile(r"([A-Z][A-Z0-9_]*) (-?\d+)( retriable)? : (\S.*)")
_RETRIABLE: set[int] = set()
_MESSAGES: dict[int, str] = {}


class _Code(IntEnum):
    @property
    def is_retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.value in _RETRIABLE

    @property
    def message(self) -> str:
        return _MESSAGES[self.value]


def _read() -> dict[str, int]:
    path = spec.directory() / "errors.spec"
    codes: dict[str, int] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line and not line.startswith("#"):
            match = _LINE.fullmatch(line)
            if match is None:
                raise spec.SpecError(f"{path.name}:{number}:1: expected 'NAME code : message'")
            code = codes[match[1]] = int(match[2])
            _MESSAGES[code] = match[4]
            if match[3]:
                _RETRIABLE.add(code)
    return codes


Error = _Code("Error", _read(), module=__name__)  # type: ignore[call-arg]


class KafkaError(Exception):
    """What a peer is told: an error code, in the slot of the reply that it concerns."""

    def __init__(self, code: Error, message: str | None = None) -> None:  # type: ignore[valid-type]
        super().__init__(message or f"{code.name}: {code.message}")
        self.code = code
        self.message = message


class MalformedFrame(Exception):
    """Bytes that are no frame of this protocol. The connection they came from is closed."""
