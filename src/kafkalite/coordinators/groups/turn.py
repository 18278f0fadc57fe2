"""One decision in the making: the effects so far and the moment it happens at.

Owns the effects until the shard returns them. Everything a decision wants done goes through
here, so the state machines read as a list of what happens. It never touches state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from kafkalite.coordinators.effects import Effects, Record, Timer
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass, field


def _sees_all(topic: str) -> bool:
    return True


@dataclass(slots=True)
class Turn:
    now_ms: int
    effects: Effects = field(default_factory=Effects)
    # Whether a topic may be shown to who asked.
    may_see: Callable[[str], bool] = _sees_all

    def reply(self, message: object) -> None:
        self.effects.reply = message

    def reply_later(self, ticket: int) -> None:
        self.effects.ticket = ticket

    def answer(self, ticket: int, message: object) -> None:
        """Closes a request that some earlier (or this) turn left open."""
        self.effects.answers.append((ticket, message))

    def write(self, *records: Record) -> None:
        self.effects.records.extend(records)

    def arm(self, key: Hashable, delay_ms: int, event: Event[object]) -> None:
        self.effects.timers.append(Timer(key, delay_ms, event))

    def arm_if_absent(self, key: Hashable, delay_ms: int, event: Event[object]) -> None:
        self.effects.timers.append(Timer(key, delay_ms, event, only_if_absent=True))

    def decide_next(self, event: Event[object]) -> None:
        """Once the records of this turn are replayed, this event is decided in its place."""
        self.effects.then_decide = event

    def go_on(self, pause_ms: int, event: Event[object]) -> None:
        """The rest of long work: decided after a pause, and before the shard's other events."""
        self.decide_next(event)
        self.effects.pause_ms = pause_ms

    def cancel(self, key: Hashable) -> None:
        self.effects.timers.append(Timer(key, None))
