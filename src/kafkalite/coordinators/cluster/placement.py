"""Which brokers hold a new partition: stripes over racks and brokers, beginning at random.

Owns Kafka's rules: no broker twice, the first replica on a broker that is up, racks in turn.
Never looks at load. Given the same random source it gives the same placement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kafkalite.coordinators.cluster.states import BrokerState
from kafkalite.protocol.errors import Error, KafkaError

if TYPE_CHECKING:
    from random import Random


def place(
    brokers: Iterable[BrokerState], partitions: int, replication_factor: int, chance: Random
) -> Iterator[list[int]]:
    """Replicas of each new partition, the first of which is to lead it."""
    usable = [broker for broker in brokers if not _is_cordoned(broker)]
    live = [broker for broker in usable if broker.is_active]
    _check(len(usable), len(live), replication_factor)
    racks = _racks(usable, chance)
    up = {broker.broker_id for broker in live}
    leaders = [broker for broker in _round_robin(racks) if broker in up]
    start = chance.randrange(len(leaders))
    return (
        _replicas(racks, up, leaders[turn % len(leaders)], turn)[:replication_factor]
        for turn in range(start, start + partitions)
    )


def _is_cordoned(broker: BrokerState) -> bool:
    cordoned = broker.cordoned_log_dirs
    return bool(cordoned) and set(broker.log_dirs) <= set(cordoned or ())


def _check(usable: int, live: int, replication_factor: int) -> None:
    if not live:
        why = "All brokers are currently fenced, or have all their log directories cordoned."
    elif replication_factor > usable:
        why = (
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {usable} broker(s) are registered or some brokers have all their log "
            "directories cordoned."
        )
    else:
        return
    raise KafkaError(Error.INVALID_REPLICATION_FACTOR, why)


def _racks(brokers: list[BrokerState], chance: Random) -> list[list[int]]:
    """Brokers by rack, those that are up before the others; the first rack is drawn."""
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers, key=lambda each: (not each.is_active, each.broker_id)):
        racks.setdefault(broker.rack or "", []).append(broker.broker_id)
    order = [racks[name] for name in sorted(racks)]
    start = chance.randrange(len(order))
    return order[start:] + order[:start]


def _round_robin(lists: list[list[int]]) -> Iterator[int]:
    for index in range(max(map(len, lists))):
        yield from (each[index] for each in lists if index < len(each))


def _replicas(racks: list[list[int]], up: set[int], leader: int, turn: int) -> list[int]:
    """The leader, then brokers of the racks behind its own in turn, its own rack last.

    Within a rack each round begins at another broker, so that not always the same follow a leader;
    brokers that are down come after the others.
    """
    home = next(index for index, rack in enumerate(racks) if leader in rack)
    behind = racks[home + 1 :] + racks[: home + 1]
    rounds = turn // len(racks)
    rings = [sorted(_turned(rack, rounds), key=lambda each: each not in up) for rack in behind]
    return [leader, *(broker for broker in _round_robin(rings) if broker != leader)]


def _turned(rack: list[int], turn: int) -> list[int]:
    start = turn % len(rack)
    return rack[start:] + rack[:start]
