"""Blocking work: its outcome comes back on the loop, whether it returned or raised."""

import asyncio
import threading
from functools import partial

from kafkalite.env.background import InlineBackground, QueuedBackground, ThreadBackground


def _fail() -> int:
    raise ValueError("no")


def test_inline_work_reports_before_submit_returns():
    outcomes: list[object] = []
    InlineBackground().submit(lambda: 5, outcomes.append)
    InlineBackground().submit(_fail, outcomes.append)
    assert outcomes[0] == 5
    assert isinstance(outcomes[1], ValueError)


def test_queued_work_waits_for_its_owner():
    background, outcomes = QueuedBackground(), list[object]()
    background.submit(lambda: 1, outcomes.append)
    background.submit(lambda: 2, outcomes.append)
    assert (len(background), outcomes) == (2, [])
    background.run_one()
    assert outcomes == [1]
    background.run_all()
    assert outcomes == [1, 2]


def test_threads_run_the_job_and_the_loop_gets_the_outcome():
    async def scenario():
        loop = asyncio.get_running_loop()
        background = ThreadBackground(loop, workers=1)
        outcome = loop.create_future()
        background.submit(threading.get_ident, lambda worker: outcome.set_result(worker))
        worker = await asyncio.wait_for(outcome, 10)
        failure = loop.create_future()
        background.submit(_fail, failure.set_result)
        error = await asyncio.wait_for(failure, 10)
        background.close()
        return worker, error

    worker, error = asyncio.run(scenario())
    assert worker != threading.get_ident()
    assert isinstance(error, ValueError)


def test_a_closed_background_has_no_threads_and_takes_no_more_work():
    loop = asyncio.new_event_loop()
    try:
        background, outcomes = ThreadBackground(loop), list[object]()
        before = threading.active_count()
        for number in range(20):
            background.submit(partial(int, number), outcomes.append)
        assert before < threading.active_count() <= before + 4
        assert background.close(10)
        assert threading.active_count() == before
        background.submit(_fail, outcomes.append)
        loop.call_soon(loop.stop)
        loop.run_forever()
        assert sorted(map(str, outcomes)) == sorted(map(str, range(20)))
    finally:
        loop.close()


def test_work_is_done_where_no_thread_can_be_had(monkeypatch):
    def no_thread(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    done: list[str] = []
    loop = asyncio.new_event_loop()
    try:
        background = ThreadBackground(loop)
        background.submit(lambda: done.append("job"), lambda _: done.append("told"))
        loop.call_soon(loop.stop)
        loop.run_forever()
        assert done == ["job", "told"]
        assert background.close(1)
    finally:
        loop.close()


def test_as_many_threads_as_there_is_work_for_and_no_more():
    loop = asyncio.new_event_loop()
    try:
        background, outcomes = ThreadBackground(loop), list[object]()
        for number in range(5):
            background.submit(partial(int, number), outcomes.append)
            while len(outcomes) <= number:
                loop.call_soon(loop.stop)
                loop.run_forever()
        assert len(background._threads) == 1
        background.close()
    finally:
        loop.close()
