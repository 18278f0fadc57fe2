"""What of a topic a query has yet to do, and when that cannot be said."""

from types import SimpleNamespace
from typing import Any

import pytest

from kafkalite.pipelines import lag
from kafkalite.pipelines.common.offsets import Offsets
from kafkalite.pipelines.common.outcomes import Different
from kafkalite.pipelines.lag import Lag, PartitionLag


class Cluster:
    """As `KafkaAdmin`; of partitions that are not there it tells nothing."""

    def __init__(self, topics: dict[str, tuple[str, int]], end: int) -> None:
        self._topics, self._end = topics, end

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def topics(self, names: set[str]) -> dict[str, Any]:
        return {
            name: SimpleNamespace(topic_id=topic_id, partitions=partitions)
            for name, (topic_id, partitions) in self._topics.items()
            if name in names
        }

    def ends(self, asked: Offsets) -> Offsets:
        for topic, partition in asked:
            if topic not in self._topics or partition >= self._topics[topic][1]:
                pytest.fail("it would wait in vain")
        return dict.fromkeys(asked, self._end)


def measured(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster, notes: str | None
) -> list[PartitionLag]:
    done = {("t", 0): 5, ("t", 1): 7}
    monkeypatch.setattr(lag, "KafkaAdmin", lambda *_: cluster)
    monkeypatch.setattr(lag, "Checkpoint", lambda *_: SimpleNamespace(done=lambda: done))
    monkeypatch.setattr(lag, "Folder", lambda *_: SimpleNamespace(read=lambda _: notes))
    spark: Any = None
    source: Any = SimpleNamespace(client_options={})
    return Lag(spark, source, "/c").measure()


NOTED = '{"t": "A"}'


def test_it_is_what_lies_between(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(monkeypatch, Cluster({"t": ("A", 2)}, 9), NOTED)
    assert [each.lag for each in found] == [4, 2]


@pytest.mark.parametrize(
    ("topics", "end", "notes", "said"),
    [
        ({}, 9, NOTED, "t was deleted since /c"),
        ({"t": ("B", 2)}, 9, NOTED, "t was deleted and recreated since /c"),
        ({"t": ("B", 1)}, 9, NOTED, "t was deleted and recreated since /c"),
        ({"t": ("B", 1)}, 9, None, "t was deleted and recreated since /c"),
        ({"t": ("B", 2)}, 6, None, "t was deleted and recreated since /c"),
    ],
)
def test_offsets_say_nothing_of_another_topic(
    monkeypatch: pytest.MonkeyPatch,
    topics: dict[str, tuple[str, int]],
    end: int,
    notes: str | None,
    said: str,
) -> None:
    with pytest.raises(Different, match=said):
        measured(monkeypatch, Cluster(topics, end), notes)
