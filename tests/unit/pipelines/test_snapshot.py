"""A snapshot is of the topic that it was begun with."""

from types import SimpleNamespace
from typing import Any

import pytest

from kafkalite.pipelines import snapshot
from kafkalite.pipelines.common.outcomes import Different
from kafkalite.pipelines.common.source import KafkaSource
from kafkalite.pipelines.snapshot import Snapshot


class Cluster:
    """As `KafkaAdmin`, with topics by their ids."""

    def __init__(self, ids: dict[str, str]) -> None:
        self._ids = ids

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def topics(self, names: dict[str, str]) -> dict[str, Any]:
        there = (name for name in names if name in self._ids)
        return {name: SimpleNamespace(topic_id=self._ids[name]) for name in there}


def refuse(monkeypatch: pytest.MonkeyPatch, now: dict[str, str]) -> None:
    monkeypatch.setattr(snapshot, "KafkaAdmin", lambda *_: Cluster(now))
    session: Any = None
    source = KafkaSource("kafka:9092", ("t", "u"))
    Snapshot(session, source, "/table")._refuse_others({"t": "A", "u": "B"})


def test_topics_that_are_the_same_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, {"t": "A", "u": "B"})


@pytest.mark.parametrize("now", [{"t": "A", "u": "other"}, {"t": "A"}])
def test_a_topic_that_was_exchanged_under_the_read_is_named(
    monkeypatch: pytest.MonkeyPatch, now: dict[str, str]
) -> None:
    with pytest.raises(Different, match=r"^u was deleted while it was read: nothing was written"):
        refuse(monkeypatch, now)
