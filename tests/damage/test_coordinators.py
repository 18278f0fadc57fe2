"""Groups and offsets are what they were, whatever became of what is made from their logs."""

from __future__ import annotations

from random import Random

import pytest

from kafkalite.env.memory import MemoryDisk
from kafkalite.log.names import LOG, META_PROPERTIES
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from tests.damage.trial import CUT, DELETE, EMPTY, FLIP, Damage, Files, restored
from tests.unit.handlers.whole_broker import WholeBroker

GROUPS = [f"g{number}" for number in range(6)]
NOT_DERIVED = (LOG, META_PROPERTIES, ".lock")
SETTINGS = {"log.index.interval.bytes": "100"}
TRIALS = 24


def commit(broker: WholeBroker, group: str, offset: int) -> None:
    partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=offset)
    topics = [OffsetCommitRequest.Topic(name="t", partitions=[partition])]
    answer = broker.ask(OffsetCommitRequest(group_id=group, topics=topics), 8)
    assert answer.topics[0].partitions[0].error_code == Error.NONE


def offsets(broker: WholeBroker) -> list[int]:
    topic = OffsetFetchRequest.GroupTopic(name="t", partition_indexes=[0])
    asked = [OffsetFetchRequest.Group(group_id=group, topics=[topic]) for group in GROUPS]
    answer = broker.ask(OffsetFetchRequest(groups=asked), 9)
    return [group.topics[0].partitions[0].committed_offset for group in answer.groups]


def files_of(broker: WholeBroker) -> Files:
    disk = broker.env.disk
    assert isinstance(disk, MemoryDisk)
    return {path: bytes(contents.data) for path, contents in disk._files.items()}


def hit(files: Files, random: Random) -> list[Damage]:
    """Some or all of the files that can be made from records, but for the metadata's."""
    paths = [
        path
        for path in sorted(files)
        if files[path] and "__cluster_metadata" not in path and not path.endswith(NOT_DERIVED)
    ]
    damages = []
    for path in random.sample(paths, random.choice((1, 3, len(paths)))):
        kind = random.choice((DELETE, EMPTY, CUT, FLIP))
        if path.endswith("partition.metadata") and kind == FLIP:
            kind = DELETE  # which topic's it is may be known from elsewhere, or not
        size = len(files[path]) * (8 if kind == FLIP else 1)
        damages.append(Damage(path, kind, random.randrange(size) if kind in (CUT, FLIP) else 0))
    return damages


@pytest.mark.parametrize("is_clean", [True, False])
def test_committed_offsets_are_what_they_were(is_clean: bool) -> None:
    broker = WholeBroker(SETTINGS)
    broker.create("t")
    broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=GROUPS), 4)
    for number in range(20):
        commit(broker, GROUPS[number % len(GROUPS)], number)
    before = offsets(broker)
    if is_clean:
        broker.close()
    broker.clock.advance(60_000)
    files, random = files_of(broker), Random(f"{is_clean}")
    for number in range(TRIALS):
        damages = hit(files, random)
        damaged = dict(files)
        for damage in damages:
            damage.apply(damaged)
        after = WholeBroker(SETTINGS, disk=restored(damaged))
        assert offsets(after) == before, (number, list(map(str, damages)))
        commit(after, GROUPS[0], 99)
        assert offsets(after) == [99, *before[1:]]
        after.close()
