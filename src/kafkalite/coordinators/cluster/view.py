"""What a decision on metadata is made from, and the two ways it ends.

Owns the view that every deciding function of this package is given. Holds no state of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.records import as_record
from kafkalite.coordinators.cluster.token_ids import TokenIds
from kafkalite.coordinators.effects import Effects
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.randomness import random_uuid
from kafkalite.env.slicing import Steps, in_steps
from kafkalite.protocol.errors import KafkaError

if TYPE_CHECKING:
    from random import Random

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
METADATA_TOPIC = "__cluster_metadata"
ZERO_UUID = bytes(16)
# Kafka's bound on the records that one request may come to.
MAX_RECORDS_PER_REQUEST = 10_000


@dataclass(slots=True)
class View:
    """The state that decisions read; nothing in it is changed by them."""

    image: Image
    config: BrokerConfig
    random: Random
    # The offset that the next record will have.
    next_offset: int = 0
    # Finalized by the log's control records (KIP-853), not by a record of the image.
    kraft_version: int = 0
    voters: dict[int, bytes] = field(default_factory=dict)  # their directories, if the log has them
    epoch: int = 0  # that the controller leads in
    # Follows from the image, and is kept since it takes a while to make.
    token_ids: TokenIds = field(default_factory=TokenIds)

    def random_uuid(self) -> bytes:
        """An id that nobody has."""
        return random_uuid(self.random)


def decided(view: View, messages: Iterable[object], reply: object) -> Effects:
    """Effects that write these records as one batch, in the versions of the finalized
    metadata.version, and give this reply."""
    level = view.image.metadata_version
    return Effects(records=[as_record(message, level) for message in messages], reply=reply)


def decided_in_steps(view: View, messages: Iterable[object], reply: object) -> Steps[Effects]:
    """The same for what may be thousands."""
    level = view.image.metadata_version
    records = yield from in_steps(as_record(message, level) for message in messages)
    return Effects(records=records, reply=reply)


def text_of(error: KafkaError) -> str:
    """The message that goes with an error in a reply."""
    message = error.message
    return error.code.message if message is None else message
