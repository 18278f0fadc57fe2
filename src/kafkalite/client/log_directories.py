"""The log directories of brokers, as these tell them: how full each is, and what is in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafkalite.client.admin import Admin, check
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeLogDirsRequest


@dataclass(slots=True)
class Copy:
    """A partition's log. lag: how many records it is behind; is_coming: it is being moved there."""

    topic: str
    partition: int
    bytes: int
    lag: int
    is_coming: bool


@dataclass(slots=True)
class Directory:
    """None is what the broker does not tell; `failure` is why it cannot be used."""

    path: str
    failure: str | None
    total: int | None
    usable: int | None
    copies: list[Copy]


def directories(admin: Admin, node_id: int) -> Iterator[Directory]:
    answer = admin.ask_broker(node_id, DescribeLogDirsRequest(topics=None))
    check(f"the log directories of broker {node_id} cannot be had", answer)
    for each in sorted(answer.results, key=lambda each: str(each.log_dir)):
        code = Error(each.error_code)
        copies = [
            Copy(
                topic.name, log.partition_index, log.partition_size, log.offset_lag,
                log.is_future_key,
            )
            for topic in each.topics
            for log in topic.partitions
        ]  # fmt: skip
        yield Directory(
            each.log_dir, None if code is Error.NONE else code.name, _known(each.total_bytes),
            _known(each.usable_bytes), sorted(copies, key=lambda log: (log.topic, log.partition)),
        )  # fmt: skip


def _known(size: int) -> int | None:
    return None if size < 0 else size
