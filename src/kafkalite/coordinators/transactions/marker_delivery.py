"""Errands: the markers of prepared transactions on their way to all leaders of their partitions.

Owns what is under way from one broker's transaction coordinator: tries again until every partition
has its marker and the shard knows it. Never decides about a transaction. Invariant: an errand lasts
until its shard has taken its report, until the shard that sent it is given up, whose successor
sends its own, or until a marker is refused and the others are written; one that starts again may
write a second marker, which changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial

from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.transactions.markers import Marker, Outcomes
from kafkalite.coordinators.transactions.peer import Peer
from kafkalite.coordinators.transactions.transaction import TopicPartition, Transaction
from kafkalite.env.clock import Clock
from kafkalite.env.dataclasses import dataclass, replace
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError

log = logging.getLogger(__name__)

ROUND_PAUSE_MS = 100
REPORT_PAUSE_MS = 20
MISTAKE_PAUSE_MS = 5_000

# The partition has a marker of a later epoch. That is not to say that this transaction has ended
# there: what is open goes with the next marker that is taken, whatever that says.
REFUSED = (Error.INVALID_PRODUCER_EPOCH, Error.TRANSACTION_COORDINATOR_FENCED)


@dataclass(slots=True, eq=False)
class Errand:
    """One prepared transaction, and what is left to write of its markers."""

    transaction: Transaction
    marker: Marker
    # Whether the shard that sent it is still in charge, and how it is told that all is written.
    is_wanted: Callable[[], bool]
    report: Callable[[], Later[KafkaError | None]]
    is_refused: bool = False


class Errands:
    """The markers under way from one broker's transaction coordinator."""

    def __init__(
        self,
        clock: Clock,
        leader_of: Callable[[str, int], int | None],
        peer_of: Callable[[int], Peer | None],
    ) -> None:
        self.under_way: dict[Errand, None] = {}
        self._clock = clock
        self._leader_of = leader_of
        self._peer_of = peer_of

    def stop(self) -> None:
        """Whoever loads the coordinators' logs next sends them again."""
        self.under_way.clear()

    def run(
        self,
        transaction: Transaction,
        coordinator_epoch: int,
        is_wanted: Callable[[], bool],
        report: Callable[[], Later[KafkaError | None]],
    ) -> None:
        """Writes all markers of a prepared transaction, and reports it."""
        marker = Marker(
            Producer(transaction.producer_id, transaction.producer_epoch), coordinator_epoch,
            transaction.is_commit, transaction.client_version, transaction.partitions,
        )
        errand = Errand(transaction, marker, is_wanted, report)
        self.under_way[errand] = None
        self._safely(errand, lambda: self._round(errand))

    def _goes_on(self, errand: Errand) -> bool:
        if errand in self.under_way and not errand.is_wanted():
            del self.under_way[errand]
        return errand in self.under_way

    def _later(self, errand: Errand, pause_ms: int, step: Callable[[Errand], None]) -> None:
        self._clock.call_later(pause_ms, lambda: self._safely(errand, lambda: step(errand)))

    def _safely(self, errand: Errand, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - what it means is decided there
            self._mistaken(errand, error)

    def _mistaken(self, errand: Errand, error: Exception) -> None:
        """A mistake of ours on the way must not leave the transaction open."""
        log.error("could not write %s; trying again", errand.marker, exc_info=error)
        self._later(errand, MISTAKE_PAUSE_MS, self._round)

    # --- rounds -----------------------------------------------------------------------------------

    def _round(self, errand: Errand) -> None:
        if not self._goes_on(errand):
            return
        by_leader, unreachable = self._route(errand.marker.partitions)
        written = [
            peer.write_markers(replace(errand.marker, partitions=tuple(partitions)))
            for peer, partitions in by_leader.items()
        ]
        Later.all(written).then(
            lambda outcomes: self._safely(
                errand, lambda: self._settle(errand, unreachable, outcomes)
            ),
            partial(self._mistaken, errand),
        )

    def _route(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[Peer, list[TopicPartition]], list[TopicPartition]]:
        """Partitions by leader, and those that have none now; deleted ones need no marker."""
        by_leader: dict[Peer, list[TopicPartition]] = {}
        unreachable: list[TopicPartition] = []
        peers: dict[int, Peer | None] = {}
        for topic, index in partitions:
            leader = self._leader_of(topic, index)
            if leader is None:
                continue
            if leader not in peers:
                peers[leader] = self._peer_of(leader)
            peer = peers[leader]
            if peer is not None:
                by_leader.setdefault(peer, []).append((topic, index))
            else:
                unreachable.append((topic, index))
        return by_leader, unreachable

    def _settle(
        self, errand: Errand, unreachable: list[TopicPartition], outcomes: list[Outcomes]
    ) -> None:
        left = list(unreachable)
        pause_ms = ROUND_PAUSE_MS
        for outcome in outcomes:
            for where, error in outcome.items():
                if error in REFUSED:
                    errand.is_refused = True
                    log.warning(
                        "%s-%d refused a marker of %s: %s", *where, errand.marker, error.name
                    )
                elif error is not Error.NONE:
                    left.append(where)
                if error is Error.UNKNOWN_SERVER_ERROR:
                    pause_ms = MISTAKE_PAUSE_MS
        if left:
            errand.marker = replace(errand.marker, partitions=tuple(left))
            self._later(errand, pause_ms, self._round)
        elif errand.is_refused:
            self._give_up(errand)
        else:
            self._report(errand)

    def _give_up(self, errand: Errand) -> None:
        """As Apache Kafka does: nobody but a coordinator of a later epoch may be taken there."""
        if self._goes_on(errand):
            del self.under_way[errand]
            log.warning(
                "the transaction of %r stays prepared until its coordinator loads its log again: a"
                " marker was refused", errand.transaction.transactional_id,
            )  # fmt: skip

    # --- reports ----------------------------------------------------------------------------------

    def _report(self, errand: Errand) -> None:
        if self._goes_on(errand):
            errand.report().then(
                partial(self._reported, errand), partial(self._mistaken, errand)
            )

    def _reported(self, errand: Errand, answer: KafkaError | None) -> None:
        if answer is not None:
            self._later(errand, REPORT_PAUSE_MS, self._report)
        else:
            self.under_way.pop(errand, None)
