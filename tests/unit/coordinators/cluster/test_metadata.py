"""The image, and who waits until everybody has followed it to some offset."""

from __future__ import annotations

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.env.later import Later
from kafkalite.protocol.messages import TopicRecord
from tests.unit.coordinators.cluster.test_image import A, fold


class Slow:
    """Follows, and is through when the test says so."""

    def __init__(self, metadata: Metadata) -> None:
        self.heard: list[tuple[Changes, Later[None]]] = []
        metadata.subscribe(self.changed)

    def changed(self, changes: Changes) -> Later[None]:
        through: Later[None] = Later()
        self.heard.append((changes, through))
        return through

    def end(self) -> None:
        self.heard[-1][1].resolve(None)


def publish(metadata: Metadata, offset: int) -> None:
    metadata.offset = offset
    metadata.publish(Changes())


def test_what_is_in_the_image_is_applied_when_nobody_follows() -> None:
    metadata = Metadata("a-cluster")
    later = [metadata.when_applied(offset) for offset in (3, 5, 6)]
    publish(metadata, 2)
    assert [each.is_resolved for each in later] == [False, False, False]
    publish(metadata, 5)
    assert [each.is_resolved for each in later] == [True, True, False]
    assert metadata.when_applied(5).is_resolved


def test_a_record_is_applied_when_everybody_is_through_with_it() -> None:
    metadata = Metadata("a-cluster")
    slow = Slow(metadata)
    publish(metadata, 2)
    publish(metadata, 7)
    first, second, later = (metadata.when_applied(offset) for offset in (2, 7, 8))
    assert metadata.when_applied(1).is_resolved
    slow.end()
    assert [each.is_resolved for each in (first, second, later)] == [True, False, False]
    slow.end()
    assert [each.is_resolved for each in (first, second, later)] == [True, True, False]
    assert metadata.when_applied(7).is_resolved


def test_what_one_who_waits_makes_of_it_keeps_nobody_waiting() -> None:
    def fail(_: None) -> None:
        raise ZeroDivisionError

    metadata = Metadata("a-cluster")
    slow = Slow(metadata)
    publish(metadata, 2)
    first, second = metadata.when_applied(2), metadata.when_applied(2)
    first.then(fail)
    slow.end()
    assert second.is_resolved


def test_another_image_takes_the_place_of_the_one_that_all_have() -> None:
    metadata = Metadata("a-cluster")
    image = metadata.image
    other, _ = fold(TopicRecord(name="a", topic_id=A))
    changes = metadata.replace(other, 9)
    assert metadata.image is image
    assert image == other != Image()
    assert (metadata.offset, list(changes.created)) == (9, [A])
