"""The ways in which bytes can fail to be records, each with the code that a peer is told.

Every function of this room raises one of these, whatever bytes it is given, and nothing else.
"""

from __future__ import annotations

from typing import ClassVar

from kafkalite.protocol.errors import Error, KafkaError


class CorruptRecords(KafkaError):
    """The frame of a batch is broken: its length, its magic byte or its checksum."""

    CODE: ClassVar[Error] = Error.CORRUPT_MESSAGE

    def __init__(self, message: str) -> None:
        super().__init__(self.CODE, message)


class TruncatedRecords(CorruptRecords):
    """The bytes end before the batch does: what a torn tail or a cut Fetch reply looks like."""


class InvalidRecords(CorruptRecords):
    """The frame is whole, but what it holds contradicts itself."""

    CODE = Error.INVALID_RECORD


class UndecodableRecords(CorruptRecords):
    """A codec that does not exist, or one that refuses its input.

    Apache Kafka lets the decompressor's exception pass, so a producer sees UNKNOWN_SERVER_ERROR.
    """

    CODE = Error.UNKNOWN_SERVER_ERROR


class RecordsTooLarge(CorruptRecords):
    """More bytes than a named limit allows, found before they are allocated."""

    CODE = Error.MESSAGE_TOO_LARGE


class UnsupportedCodec(CorruptRecords):
    """A codec that the asked format has no number for."""

    CODE = Error.UNSUPPORTED_COMPRESSION_TYPE
