"""What the owner of a broker is told of a failed disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafkalite.protocol.errors import KafkaError


@contextmanager
def disk_errors() -> Iterator[None]:
    """While a broker starts nobody but its owner is told of a failed disk."""
    try:
        yield
    except KafkaError as error:
        raise OSError(error.message) from error
