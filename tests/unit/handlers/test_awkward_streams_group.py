"""Streams groups whose members say what makes no sense of their tasks."""

from __future__ import annotations

from kafkalite.protocol.errors import Error
from tests.unit.handlers.streams_desk import MEMBER, OTHER, StreamsDesk, task_ids, tasks


def test_who_says_a_subtopology_twice_has_given_nothing_back() -> None:
    desk = StreamsDesk()
    desk.join()
    desk.join(OTHER)
    assert desk.beat(MEMBER, 2, task_ids(_0=[0, 1, 2, 3])).member_epoch == 2
    twice = [*task_ids(_0=[0, 1, 2, 3]), *task_ids(_0=[])]
    assert desk.beat(MEMBER, 2, twice).error_code == Error.UNKNOWN_SERVER_ERROR
    assert tasks(desk.beat(OTHER, 3, []).active_tasks) in (None, {})
