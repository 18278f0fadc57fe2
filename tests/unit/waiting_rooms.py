"""Where a coordinator's write waits on its way from the log to the client, looked up while it does.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from kafkalite.coordinators.outbox import Outbox
from kafkalite.coordinators.uncommitted import Uncommitted
from kafkalite.log.watermark import Watermark
from kafkalite.protocol.messages import FindCoordinatorRequest, OffsetCommitRequest
from kafkalite.server.connection import Connection
from tests.unit.calls import Wire
from tests.unit.handlers.whole_broker import Sometimes, WholeBroker

VERSION = 8
# What may hold a reply, and whether one does just now.
ROOMS: dict[type, Callable[..., object]] = {
    Watermark: lambda watermark: watermark.waiting or watermark._due,
    Uncommitted: bool,
    Outbox: lambda outbox: outbox.replies or outbox.errands,
    Connection: lambda connection: connection._owed,
}


def rooms_of_a_commit() -> list[str]:
    """Those that an OffsetCommit crosses with fsync, which the disk holds back."""
    background = Sometimes()
    broker = WholeBroker({"kafkalite.durability": "fsync"}, background=background)
    wire = Wire(broker)
    found: list[str] = []
    try:
        broker.create("t")
        broker.send(FindCoordinatorRequest(coordinator_keys=["g"], key_type=0), 4)
        broker.clock.advance(1_000)
        assert not _occupied()
        background.is_held = True
        wire.send_frame(bytes(broker.frame(commit(), VERSION)))
        wire.link._readable()
        found += _occupied()
        background.is_held = False
        background.run_all()
        found += [room for room in _occupied() if room not in found]
        broker.clock.advance(0)
        assert not _occupied(), "the commit is still waiting"
        return found
    finally:
        wire.close()
        broker.close()


def commit() -> OffsetCommitRequest:
    partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequest.Topic(name="t", partitions=[partition])
    return OffsetCommitRequest(group_id="g", topics=[topic])


def _occupied() -> list[str]:
    return [
        f"{room.__module__}.{room.__name__}"
        for each in gc.get_objects()
        for room, is_used in ROOMS.items()
        if type(each) is room and is_used(each)
    ]
