"""The protocol's error codes, and the two exceptions that a peer's request can end in.

`Error` is read from protocol_specs/errors.spec; the stub beside this file is generated.
"""

from __future__ import annotations

from enum import IntEnum

from kafkalite.protocol import files

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
    codes: dict[str, int] = {}
    for line in (files.directory() / "errors.spec").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            head, _, text = line.partition(" : ")
            name, number, *flags = head.split()
            code = codes[name] = int(number)
            _MESSAGES[code] = text
            if "retriable" in flags:
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
