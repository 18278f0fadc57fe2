"""Deadlines: one timer of the clock, whatever is armed, moved and cancelled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafkalite.coordinators.deadlines import GARBAGE_MINIMUM, Deadlines
from kafkalite.env.clock import ManualClock
from kafkalite.env.slicing import Steps, finish

Fired = list[tuple[int, str]]


def start() -> tuple[ManualClock, Deadlines, Fired]:
    clock = ManualClock()
    fired: Fired = []

    def wake() -> None:
        finish(deadlines.meet(lambda _, name: fired.append((clock.monotonic_ms(), name))))

    deadlines: Deadlines[str] = Deadlines(clock, wake)
    return clock, deadlines, fired


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("arm"), st.sampled_from("abcd"), st.integers(0, 50)),
            st.tuples(st.just("cancel"), st.sampled_from("abcd"), st.just(0)),
            st.tuples(st.just("pass"), st.just(""), st.integers(0, 40)),
        ),
        max_size=40,
    )
)
def test_each_deadline_fires_once_at_its_moment(steps: list[tuple[str, str, int]]) -> None:
    clock, deadlines, fired = start()
    expected: Fired = []
    armed: dict[str, int] = {}
    for what, key, amount in [*steps, ("pass", "", 1_000)]:
        if what == "arm":
            deadlines.arm(key, amount, key)
            armed[key] = clock.monotonic_ms() + amount
        elif what == "cancel":
            deadlines.cancel(key)
            armed.pop(key, None)
        else:
            clock.advance(amount)
            now = clock.monotonic_ms()
            expected += [(at, name) for name, at in armed.items() if at <= now]
            armed = {name: at for name, at in armed.items() if at > now}
            assert sorted(fired) == sorted(expected)
        assert (clock.next_due_ms() is not None) == bool(armed) or not armed
    assert len(deadlines) == 0


def test_heartbeats_of_many_members_cost_no_timers() -> None:
    clock, deadlines, fired = start()
    for round_number in range(5):
        for member in range(1_000):
            deadlines.arm(member, 10_000, str(member))
        clock.advance(3_000)
        assert fired == [], round_number
    assert len(deadlines._heap) <= 1_000
    clock.advance(7_000)
    assert len(fired) == 1_000


def test_cancelled_deadlines_leave_nothing_behind() -> None:
    clock, deadlines, _ = start()
    deadlines.arm("stays", 1_000_000, "stays")
    for number in range(10_000):
        deadlines.arm(number, 45_000, "")
        deadlines.cancel(number)
    assert len(deadlines._heap) <= GARBAGE_MINIMUM + 4
    deadlines.cancel("stays")
    assert clock.next_due_ms() is None


def test_what_is_armed_before_those_that_have_passed_are_handed_out_wakes_nobody() -> None:
    """Their first step waits where much else was done at once."""
    clock = ManualClock()
    begun: list[Steps[None]] = []
    fired: list[str] = []

    def wake() -> None:
        begun.append(deadlines.meet(lambda _, name: fired.append(name)))

    deadlines: Deadlines[str] = Deadlines(clock, wake)
    deadlines.arm("a", 5, "a")
    clock.advance(5)
    deadlines.arm("b", 0, "b")
    clock.advance(5)
    assert len(begun) == 1
    finish(begun[0])
    deadlines.arm("c", 5, "c")
    clock.advance(5)
    finish(begun[1])
    assert fired == ["a", "b", "c"]
