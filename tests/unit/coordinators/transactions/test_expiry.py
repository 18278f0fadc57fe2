"""Ids that nobody has used for long are forgotten a slice at a time, however many there are."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from kafkalite.coordinators.effects import Timer
from kafkalite.coordinators.transactions import events
from kafkalite.coordinators.transactions.shard import (
    STRETCH_MS,
    STRETCH_WORK,
    TOMBSTONE_WORK,
    Settings,
    TransactionShard,
)
from kafkalite.coordinators.transactions.transaction import State, Transaction
from kafkalite.env.slicing import Pace

HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS


def rest_of(timer: Timer) -> events.ExpireIds:
    assert isinstance(timer.event, events.ExpireIds)
    return timer.event


def test_no_turn_forgets_more_ids_than_its_share() -> None:
    settings = Settings(WEEK_MS, HOUR_MS, lambda: 2)
    pace = Pace(STRETCH_MS, STRETCH_WORK)
    shards = [TransactionShard(settings, pace) for _ in range(3)]
    for shard in shards:
        for number in range(5_000):
            name = f"id-{number}"
            state = State.ONGOING if number % 5 == 0 else State.EMPTY
            shard.transactions[name] = Transaction(name, number, 0, 60_000, state, 0)
    waiting: deque[tuple[TransactionShard, events.ExpireIds]] = deque(
        (shard, events.ExpireIds()) for shard in shards
    )
    now_ms, turns = 2 * WEEK_MS, 0
    while waiting:
        written = 0
        for _ in range(len(waiting)):
            shard, event = waiting.popleft()
            effects = shard.decide(event, now_ms)
            written += len(effects.records)
            for record in effects.records:
                shard.replay(record)
            (timer,) = effects.timers
            rest = rest_of(timer)
            if rest.ids is not None:
                assert timer.delay_ms is not None
                assert 0 < timer.delay_ms <= STRETCH_MS
                waiting.append((shard, rest))
        assert written * TOMBSTONE_WORK <= STRETCH_WORK + TOMBSTONE_WORK
        now_ms, turns = now_ms + STRETCH_MS, turns + 1
    assert turns > 10
    for shard in shards:
        assert len(shard.transactions) == 1_000
        assert {each.state for each in shard.transactions.values()} == {State.ONGOING}


def test_an_id_that_is_used_while_others_are_forgotten_stays() -> None:
    shard = TransactionShard(Settings(WEEK_MS, HOUR_MS, lambda: 2))
    for number in range(5_000):
        name = f"id-{number}"
        shard.transactions[name] = Transaction(name, number, 0, 60_000, State.EMPTY, 0)
    effects = shard.decide(events.ExpireIds(), 2 * WEEK_MS)
    last = shard.transactions["id-4999"]
    shard.transactions["id-4999"] = replace(last, updated_ms=2 * WEEK_MS)
    for record in effects.records:
        shard.replay(record)
    now_ms = 2 * WEEK_MS
    while (rest := rest_of(effects.timers[0])).ids is not None:
        now_ms += STRETCH_MS
        effects = shard.decide(rest, now_ms)
        for record in effects.records:
            shard.replay(record)
    assert list(shard.transactions) == ["id-4999"]
    assert effects.timers[0].delay_ms == HOUR_MS
