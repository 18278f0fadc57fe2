"""One of several brokers of a run is stopped, killed, or brought back; the others go on.

Owns what is done on the loop for that, one after the other; the loop and the brokers are
running.py's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkalite.testing.outcome import Outcome
from kafkalite.testing.running import Run


def stop_one(run: Run, node_id: int, outcome: Outcome) -> None:
    """The others lead what they are in sync with of what it led."""
    run.do(partial(_stop, run, node_id, outcome))


def kill_one(run: Run, node_id: int, outcome: Outcome) -> None:
    """The same without a word, as a process that is killed."""
    run.do(partial(_kill, run, node_id, outcome))


def start_one(run: Run, node_id: int, outcome: Outcome) -> None:
    """Brings back one that was stopped or killed."""
    run.do(partial(_start, run, node_id, outcome))


def _stop(run: Run, node_id: int, outcome: Outcome, then: Callable[[], None]) -> None:
    broker = run.brokers.pop(node_id, None)

    def stopped() -> None:
        outcome.done()
        then()

    if broker is None:
        stopped()
        return
    broker.fence().then(lambda _: run.stop_broker(node_id, broker, stopped))


def _kill(run: Run, node_id: int, outcome: Outcome, then: Callable[[], None]) -> None:
    broker = run.brokers.pop(node_id, None)

    def noticed(_: object = None) -> None:
        outcome.done()
        then()

    if broker is None:
        noticed()
    else:
        killed = partial(_notice, run, node_id, noticed)
        run.stop_broker(node_id, broker, killed, is_killed=True)


def _notice(run: Run, node_id: int, then: Callable[..., None]) -> None:
    """At once, as the controller would when a session has ended; if there is one."""
    from kafkalite.coordinators.cluster.brokers import FenceBroker

    other = next(iter(run.brokers.values()))
    answer = other.controller.submit(FenceBroker(node_id))
    if other.metadata.controller_id is None:
        then()
    else:
        answer.then(then)


def _start(run: Run, node_id: int, outcome: Outcome, then: Callable[[], None]) -> None:
    def told(failure: Exception | None) -> None:
        outcome.told(failure)
        then()

    known = run.brokers.get(node_id)
    if known is not None and known.failure is not None:  # its disk failed
        _stop(run, node_id, Outcome(), partial(_start, run, node_id, outcome, then))
    elif known is not None or run.is_stopping:
        told(None)
    else:
        run.start_broker(node_id, told)
