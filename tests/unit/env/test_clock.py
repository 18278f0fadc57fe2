"""Time that a test owns: order of timers, cancelling, jumps; and the same calls on the machine's
clock."""

import asyncio

from kafkalite.env.clock import ManualClock, RealClock


def test_timers_fire_in_order_of_deadline_each_at_its_own_moment():
    clock, fired = ManualClock(now_ms=1000), []
    clock.call_later(20, lambda: fired.append(("b", clock.now_ms())))
    clock.call_later(10, lambda: fired.append(("a", clock.now_ms())))
    clock.call_later(20, lambda: fired.append(("c", clock.now_ms())))
    clock.advance(15)
    assert fired == [("a", 1010)]
    clock.advance(15)
    assert fired == [("a", 1010), ("b", 1020), ("c", 1020)]
    assert clock.now_ms() == 1030


def test_a_timer_set_by_a_timer_fires_in_the_same_advance():
    clock, fired = ManualClock(), []

    def again() -> None:
        fired.append(clock.monotonic_ms())
        clock.call_later(10, again)

    clock.call_later(10, again)
    clock.advance(35)
    assert fired == [10, 20, 30]


def test_a_cancelled_timer_never_fires():
    clock, fired = ManualClock(), []
    clock.call_later(10, lambda: fired.append(1)).cancel()
    assert clock.next_due_ms() is None
    clock.advance(100)
    assert fired == []


def test_a_jump_moves_the_wall_clock_alone():
    clock, fired = ManualClock(now_ms=5000), []
    clock.call_later(10, lambda: fired.append(1))
    clock.jump(-4000)
    assert (clock.now_ms(), clock.monotonic_ms(), fired) == (1000, 0, [])


def test_the_real_clock_sets_timers_on_its_loop():
    async def scenario() -> int:
        clock = RealClock(asyncio.get_running_loop())
        before, fired = clock.monotonic_ms(), asyncio.Event()
        clock.call_later(0, fired.set)
        await asyncio.wait_for(fired.wait(), 10)
        assert clock.now_ms() > 1_600_000_000_000
        return clock.monotonic_ms() - before

    assert asyncio.run(scenario()) >= 0
