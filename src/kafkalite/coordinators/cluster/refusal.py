"""Why a broker does not start on the metadata that it finds: one sentence, with the way out.

Owns the sentences. Whoever raises it has written nothing yet.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.image import ImageConflict
from kafkalite.coordinators.cluster.quorum import ForeignQuorum
from kafkalite.coordinators.cluster.records import UnknownMetadata
from kafkalite.coordinators.cluster.snapshots import BrokenSnapshot
from kafkalite.log.directory import WrongDirectory
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.records.errors import CorruptRecords

# What reading and folding metadata may raise.
CAUSES = (
    UnknownMetadata, ForeignQuorum, ImageConflict, BrokenSnapshot, MalformedFrame, CorruptRecords,
)  # fmt: skip


class UnusableMetadata(WrongDirectory):
    """Metadata that this broker must not go on from; nothing was written."""


def unusable(directory: str, cause: Exception) -> UnusableMetadata:
    """What somebody is told who starts a broker on it."""
    if isinstance(cause, UnknownMetadata):
        return UnusableMetadata(
            f"{directory} has {cause}, which this broker does not know: go on with the Apache "
            "Kafka that wrote it, or with a newer kafkalite"
        )
    if isinstance(cause, ForeignQuorum):
        return UnusableMetadata(
            f"{directory} is not this broker's to lead ({cause}): kafkalite is the only controller "
            "of its cluster, so start it on the directory of a controller that is alone"
        )
    return UnusableMetadata(
        f"{directory} is damaged ({cause}): bring it back from a copy, or start on a new directory"
    )
