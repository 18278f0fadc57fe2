"""What a decision on metadata is made from, and the two ways it ends.

Owns the view that every deciding function of this package is given. Holds no state of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.records import encode_record
from kafkalite.coordinators.effects import Effects, Record
from kafkalite.env.randomness import random_uuid
from kafkalite.protocol.errors import KafkaError

if TYPE_CHECKING:
    from random import Random

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
METADATA_TOPIC = "__cluster_metadata"
ZERO_UUID = bytes(16)


@dataclass(slots=True)
class View:
    """The state that decisions read; nothing in it is changed by them."""

    image: Image
    config: BrokerConfig
    random: Random
    # The offset that the next record will have.
    next_offset: int = 0

    def random_uuid(self) -> bytes:
        """An id that nobody has."""
        return random_uuid(self.random)


def decided(messages: Iterable[Any], reply: Any) -> Effects:
    """Effects that write these records as one batch and give this reply."""
    records = [Record(None, encode_record(message), message) for message in messages]
    return Effects(records=records, reply=reply)


def text_of(error: KafkaError) -> str:
    """The message that goes with an error in a reply."""
    message = error.message
    return error.code.message if message is None else message
