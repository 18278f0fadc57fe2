"""What a coordinator's shard asks for: records, replies and timers, as one value.

A shard never appends, answers or arms anything itself; the runtime does it in a fixed order.
Invariant: the records of one `Effects` reach the log as one batch, or not at all, unless they
are not `atomic`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, NamedTuple

from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.protocol.errors import KafkaError


@dataclass(slots=True)
class Record:
    """One record of a coordinator's log; a value of None is a tombstone.

    `decoded` is what the bytes were encoded from. It spares `replay` the decoding of what was
    decided a moment ago and is None on records that come out of the log. Offset and producer
    are known once the record is in the log.
    """

    key: bytes | None
    value: bytes | None
    decoded: Any = None
    offset: int = -1
    producer: Producer | None = None


@dataclass(slots=True)
class Timer:
    """Arms (or, with a delay of None, cancels) the one timer of this key.

    With `only_if_absent` a timer that is already armed stays as it is.
    """

    key: Hashable
    delay_ms: int | None
    event: Event[object] | None = None
    only_if_absent: bool = False


def name_of(event: Event[object]) -> str:
    """What a log line calls an event: its kind, and whose it is."""
    whose = event.subject
    return f"{type(event).__name__} of {whose!r}" if whose else type(event).__name__


@dataclass(slots=True)
class Failed(Event[None]):
    """The event a shard gets when the records of `event`'s effects could not be appended."""

    event: Event[object]
    error: KafkaError


class Producer(NamedTuple):
    """The transaction that a batch of records belongs to."""

    producer_id: int
    producer_epoch: int


NO_REPLY: Final = object()


@dataclass(slots=True)
class Effects:
    """The outcome of one decision.

    A request is answered by `reply`, or later: `ticket` names the open request, and the
    `answers` of some later effects close it. All of them wait until the high watermark covers
    everything written before.
    """

    records: list[Record] = field(default_factory=list)
    reply: object = NO_REPLY
    ticket: int | None = None
    answers: list[tuple[int, object]] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)
    producer: Producer | None = None
    # Records that need not be one batch are cut into as many as the log's limit asks for.
    atomic: bool = True
    # The event lacks this, and others have it: nothing happens before the runtime has had it from
    # them and decides again, on the event that has it.
    needs: object = None
    # The records make this event decidable (a group changes its kind first), or it is the rest
    # of long work: decide it next, in place of a reply. After a pause, if there is one: the
    # shard's other events wait for it, and the loop does not.
    then_decide: Event[object] | None = None
    pause_ms: int | None = None
    # Events for the shard itself: once the records are committed, and when they are not, or not in
    # time. With on_failed the shard answers the ticket; without it the runtime answers the error.
    on_committed: Event[object] | None = None
    on_failed: Event[object] | None = None
    # Errands to other rooms, for example markers: handed to the runtime's `deliver` once everything
    # written so far is committed, however long after its clients were told that it takes too long.
    sends: list[object] = field(default_factory=list)
