"""StreamsGroupHeartbeat: who has missed an answer is told once more what it had to tell."""

import pytest

from tests.unit.handlers.streams_desk import (
    MEMBER,
    OTHER,
    Request,
    StreamsDesk,
    subtopology,
    task_ids,
    tasks,
    topology,
)


@pytest.mark.parametrize("said", [[], task_ids(_0=[0, 1]), task_ids(_1=[0, 1, 2, 3])])
def test_who_has_missed_its_tasks_is_told_once_more(said: list[Request.TaskIds]) -> None:
    """The answer that had them did not come: the next thing that the member says shows it."""
    desk = StreamsDesk()
    desk.join(what=topology(subtopology(), subtopology("1", source_topics=["other"])))
    desk.create("other", 4)
    whole = {"0": [0, 1, 2, 3], "1": [0, 1, 2, 3]}
    given = desk.beat(MEMBER, 2)
    assert tasks(given.active_tasks) == whole
    epoch = given.member_epoch
    assert tasks(desk.beat(MEMBER, epoch).active_tasks) is None
    assert tasks(desk.beat(MEMBER, epoch, said).active_tasks) == whole
    everything = task_ids(_0=[0, 1, 2, 3], _1=[0, 1, 2, 3])
    assert tasks(desk.beat(MEMBER, epoch, everything).active_tasks) is None


def test_who_has_missed_that_tasks_were_taken_away_is_told_once_more() -> None:
    desk = StreamsDesk()
    desk.join()
    desk.join(OTHER)
    everything = task_ids(_0=[0, 1, 2, 3])
    for _ in range(2):
        told = desk.beat(MEMBER, 2, everything)
        assert (told.member_epoch, tasks(told.active_tasks)) == (2, {"0": [0, 1]})
