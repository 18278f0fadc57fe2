"""Changes told in order: nobody hears of the next before all are through with the one before."""

from __future__ import annotations

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.publishing import Publishing
from kafkalite.env.later import Later


class Follower:
    """Takes its time over each change."""

    def __init__(self, heard: list[str], name: str) -> None:
        self.heard, self.name = heard, name
        self.under_way: Later[None] | None = None

    def changed(self, changes: Changes) -> Later[None]:
        self.heard.append(f"{self.name} {next(iter(changes.features))}")
        self.under_way = Later()
        return self.under_way

    def finish(self) -> None:
        assert self.under_way is not None
        self.under_way.resolve(None)


def change(name: str) -> Changes:
    return Changes(features={name: None})


def test_who_follows_hears_of_one_change_at_a_time_in_order() -> None:
    heard: list[str] = []
    publishing, slow, quick = Publishing(), Follower(heard, "slow"), []
    publishing.subscribe(slow.changed)
    publishing.subscribe(lambda changes: quick.append(next(iter(changes.features))))
    published = [publishing.publish(change(name)) for name in ("one", "two", "three")]
    for number, name in enumerate(("one", "two", "three")):
        assert heard[-1] == f"slow {name}"
        assert len(heard) == number + 1
        assert len(quick) == number
        assert not published[number].is_resolved
        slow.finish()
        assert published[number].is_resolved
    assert quick == ["one", "two", "three"]


def test_what_must_not_be_seen_is_told_at_once_however_much_waits() -> None:
    heard: list[str] = []
    hidden: list[str] = []
    publishing, slow = Publishing(), Follower(heard, "slow")
    publishing.subscribe(slow.changed, lambda changes: hidden.extend(changes.features))
    for name in ("one", "two"):
        publishing.publish(change(name))
    assert hidden == ["one", "two"]
    assert heard == ["slow one"]


def test_who_has_left_is_not_waited_for() -> None:
    heard: list[str] = []
    publishing, first, second = Publishing(), Follower(heard, "first"), Follower(heard, "second")
    for each in (first, second):
        publishing.subscribe(each.changed)
    published = [publishing.publish(change(name)) for name in ("one", "two")]
    publishing.unsubscribe(second.changed)
    first.finish()
    assert published[0].is_resolved
    publishing.unsubscribe(first.changed)
    first.finish()
    assert published[1].is_resolved
    assert heard == ["first one", "first two"]


def fail(_: object) -> None:
    raise ValueError("a mistake")


def test_who_hears_that_all_are_through_holds_up_no_other_by_a_mistake() -> None:
    heard: list[str] = []
    publishing, slow = Publishing(), Follower(heard, "slow")
    publishing.subscribe(slow.changed)
    publishing.publish(change("one")).then(fail)
    second = publishing.publish(change("two"))
    slow.finish()
    slow.finish()
    assert second.is_resolved
    assert heard == ["slow one", "slow two"]


def test_who_is_told_at_once_keeps_it_from_no_other_by_a_mistake() -> None:
    heard: list[str] = []
    publishing = Publishing()
    publishing.subscribe(lambda _: heard.append("first"), fail)
    publishing.subscribe(lambda _: heard.append("second"), lambda _: heard.append("at once"))
    assert publishing.publish(change("one")).is_resolved
    assert heard == ["at once", "first", "second"]
