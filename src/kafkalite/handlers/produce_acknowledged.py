"""A Produce request that is answered when all of it is committed.

Owns which of its entries still wait. Only those are looked at again whose partition has moved: a
request for thousands of partitions would else look at all of them for each sync of a file.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps
from kafkalite.handlers.context import Context
from kafkalite.handlers.produce_entry import Entry
from kafkalite.handlers.stepwise import pieces
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ProduceRequest, ProduceResponse
from kafkalite.replication.waiting import PRODUCE, Watched

_WATCHED_PER_STEP = 64


def acknowledged(
    context: Context, request: ProduceRequest, response: ProduceResponse, entries: list[Entry]
) -> Steps[Later[Any]]:
    """Each partition is watched in the step in which it is looked at, so that no move is missed."""
    reply: Later[Any] = Later()
    waiting = _Waiting(response, entries, reply)
    parked = context.waiting.park((), request.timeout_ms, waiting.attempt, reply, PRODUCE)
    try:
        for some in pieces(entries, _WATCHED_PER_STEP):
            if reply.is_resolved:  # its time is up
                return reply
            for entry in some:
                if entry.is_waiting() and entry.partition is not None:
                    waiting.add(entry, entry.partition)
                    parked.watch(entry.partition)
            if len(entries) > _WATCHED_PER_STEP:
                yield
        waiting.is_complete = True
        parked.retry()
    except Exception as error:  # noqa: BLE001 - a mistake of ours, which is the answer
        parked.leave()
        if not reply.is_resolved:
            reply.resolve(error)
    return reply


class _Waiting:
    """The entries of a request that are not committed yet, by their partition."""

    def __init__(
        self, response: ProduceResponse, entries: list[Entry], reply: Later[Any]
    ) -> None:
        self._response = response
        self._entries = entries
        self._reply = reply
        self._waiting: dict[int, list[Entry]] = {}
        self.is_complete = False  # all that wait are here

    def add(self, entry: Entry, partition: Watched) -> None:
        self._waiting.setdefault(id(partition), []).append(entry)

    def attempt(self, moved: Collection[Watched] | None) -> bool:
        if moved is None:
            for entry in self._entries:
                if entry.is_waiting():
                    entry.answer.error_code = Error.REQUEST_TIMED_OUT
        else:
            for partition in moved:
                entries = self._waiting.pop(id(partition), ())
                left = [entry for entry in entries if entry.is_waiting()]
                if left:
                    self._waiting[id(partition)] = left
            if self._waiting or not self.is_complete:
                return False
        self._reply.resolve(self._response)
        return True
