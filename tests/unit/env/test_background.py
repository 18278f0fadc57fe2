"""Blocking work: its outcome comes back on the loop, whether it returned or raised."""

import asyncio
import threading

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
