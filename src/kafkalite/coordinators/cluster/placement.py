"""Which brokers hold a new partition: stripes over racks and brokers, beginning at random.

Owns Kafka's rules: no broker twice, the first replica on a broker that is up, racks in turn.
Never looks at load. Given the same random source it gives the same placement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kafkalite.coordinators.cluster.image import BrokerState
from kafkalite.protocol.errors import Error, KafkaError

if TYPE_CHECKING:
    from random import Random


def place(
    brokers: Iterable[BrokerState], partitions: int, replication_factor: int, chance: Random
) -> list[list[int]]:
    """Replicas of each new partition, the first of which is to lead it."""
    usable = [broker for broker in brokers if not _is_cordoned(broker)]
    live = [broker for broker in usable if broker.is_active]
    _check(len(usable), len(live), replication_factor)
    first, rest = _stripe(live, chance), _stripe(usable, chance)
    turn = chance.randrange(len(live))
    return [
        _replicas(first, rest, turn + partition, replication_factor)
        for partition in range(partitions)
    ]


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


def _stripe(brokers: list[BrokerState], chance: Random) -> list[int]:
    """Brokers in an order in which neighbours are of different racks, as far as racks allow."""
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers, key=lambda each: (each.is_fenced, each.broker_id)):
        racks.setdefault(broker.rack or "", []).append(broker.broker_id)
    order = [racks[name] for name in sorted(racks)]
    start = chance.randrange(len(order))
    return list(_round_robin(order[start:] + order[:start]))


def _round_robin(lists: list[list[int]]) -> Iterator[int]:
    for index in range(max(map(len, lists))):
        yield from (each[index] for each in lists if index < len(each))


def _replicas(first: list[int], rest: list[int], turn: int, count: int) -> list[int]:
    """The turn's leader, then those who follow it in the stripe; each round shifts them by one."""
    leader = first[turn % len(first)]
    others = [broker for broker in rest if broker != leader]
    start = rest.index(leader) + turn // len(first)
    shifted = [others[(start + index) % len(others)] for index in range(count - 1)]
    return [leader, *shifted]
