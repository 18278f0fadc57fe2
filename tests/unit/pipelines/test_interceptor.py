"""The class that shapes records is handed out once to a session, whoever asks."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kafkalite.pipelines.common import interceptor


class FakeContext:
    """Something that can be referred to weakly, as a SparkContext can."""


class FakeSession:
    def __init__(self) -> None:
        self.sparkContext = FakeContext()


@pytest.fixture
def handed_out(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def hand_out(spark: Any) -> None:
        found.append(spark)
        # Until another comes by, if one can: a lock keeps it out, and the wait runs out.
        other_came.wait(0.2 if len(found) == 1 else 0)
        if len(found) > 1:
            other_came.set()

    other_came = threading.Event()
    monkeypatch.setattr(interceptor, "_hand_out", hand_out)
    return found


def test_pipelines_beside_each_other_hand_it_out_once(handed_out: list[Any]) -> None:
    session: Any = FakeSession()
    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(interceptor.options, session, None) for _ in range(4)]:
            each.result()
    assert handed_out == [session]


def test_another_session_gets_its_own(handed_out: list[Any]) -> None:
    sessions: list[Any] = [FakeSession(), FakeSession()]
    for each in sessions:
        interceptor.options(each, 5)
    assert handed_out == sessions
