"""Which records are lost: expired, or of a topic that is another one now."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from kafkalite.pipelines.common.losses import (
    DELETED,
    EXPIRED,
    EXPIRING,
    LOST_FILE,
    RECREATED,
    TOPICS_FILE,
    WHILE_READ,
    Guard,
    Loss,
    RecordsLost,
    expired,
    expiring,
    replaced,
)
from kafkalite.pipelines.common.offsets import Range


def test_what_lay_before_the_log_start_is_lost() -> None:
    reads_from = {("t", 0): 5, ("t", 1): 5, ("t", 2): 5}
    log_starts = {("t", 0): 9, ("t", 1): 5, ("t", 2): 0}
    assert expired(reads_from, log_starts) == [Loss("t", 0, 5, 9, EXPIRED)]


def test_words_for_offsets_are_no_loss() -> None:
    assert expired({("t", 0): -2}, {("t", 0): 9}) == []


def test_recreated_and_deleted_topics_are_told_apart() -> None:
    known = {"same": "A", "other": "B", "gone": "C"}
    now = {"same": "A", "other": "X"}
    reads_from = {("same", 0): 1, ("other", 0): 2, ("gone", 0): 3, ("new", 0): 0}
    assert replaced(known, now, reads_from) == [
        Loss("gone", 0, 3, None, DELETED),
        Loss("other", 0, 2, None, RECREATED),
    ]


def test_the_error_names_each_range_and_the_file() -> None:
    error = RecordsLost([Loss("t", 0, 5, 9, EXPIRED), Loss("u", 1, 7, None, DELETED)], "/c/lost")
    assert str(error).splitlines() == [
        "records lost (also written to /c/lost):",
        "  t-0 offsets 5..8: expired before it was read",
        "  u-1 from offset 7: topic deleted",
    ]


def test_a_new_topic_is_not_asked_for_partitions_of_the_old_one() -> None:
    """It may have fewer, and the client would wait for them until it gives up."""
    notes = {TOPICS_FILE: json.dumps({"t": "A"})}
    folder: Any = SimpleNamespace(path="/c", read=notes.get, write=notes.__setitem__)
    admin: Any = SimpleNamespace(
        topics=lambda names: {"t": SimpleNamespace(topic_id="B")},
        starts=lambda partitions: pytest.fail("it was asked"),
    )
    with pytest.raises(RecordsLost, match="t-3 from offset 7: topic deleted and recreated"):
        Guard(admin, folder, keep_going=True).check({("t", 3): 7})
    assert json.loads(notes[LOST_FILE])[0]["reason"] == RECREATED


Noted = dict[str, str]


def guard_of(ids: dict[str, str], notes: Noted, *, keep_going: bool = False) -> Guard:
    """Of a cluster whose topics have these ids, which may change."""
    folder: Any = SimpleNamespace(path="/c", read=notes.get, write=notes.__setitem__)

    def topics(names: set[str]) -> dict[str, Any]:
        return {name: SimpleNamespace(topic_id=ids[name]) for name in names & ids.keys()}

    admin: Any = SimpleNamespace(topics=topics, starts=lambda places: dict.fromkeys(places, 0))
    return Guard(admin, folder, keep_going)


@pytest.mark.parametrize("keep_going", [False, True])
@pytest.mark.parametrize(("later", "why"), [({"t": "B"}, RECREATED), ({}, DELETED)])
def test_a_topic_that_was_exchanged_under_a_batch_is_told(
    later: dict[str, str], why: str, *, keep_going: bool
) -> None:
    """A consumer goes on where it was in a new topic of the same name."""
    ids, notes = {"t": "A", "u": "U"}, Noted()
    guard = guard_of(ids, notes, keep_going=keep_going)
    guard.check({("t", 0): 100, ("u", 0): 5})
    ids.pop("t")
    ids.update(later)
    with pytest.raises(RecordsLost, match=f"t-0 from offset 100: {why} while it was read"):
        guard.check_again([Range("t", 0, 100, 200), Range("u", 0, 5, 9)], [])
    assert [row["reason"] for row in json.loads(notes[LOST_FILE])] == [WHILE_READ[why]]


def test_a_new_topic_is_known_from_its_first_batch_on() -> None:
    ids, notes, first = {"t": "A", "new": "N"}, Noted(), [Range("new", 0, 0, 7)]
    guard = guard_of(ids, notes)
    guard.check({("t", 0): 100}, first)
    guard.check_again(first, [])
    ids["new"] = "other"
    with pytest.raises(RecordsLost, match="new-0 from offset 0"):
        guard.check_again(first, [])
    # And when that batch comes again.
    with pytest.raises(RecordsLost, match="new-0 from offset 0"):
        guard_of(ids, notes).check({("t", 0): 100}, first)


def test_what_went_while_it_was_read_may_be_lost() -> None:
    ranges = [Range("t", 0, 5, 20), Range("t", 1, 5, 20), Range("t", 2, 5, 20)]
    before = [Loss("t", 0, 5, 9, EXPIRED)]
    log_starts = {("t", 0): 12, ("t", 1): 5, ("t", 2): 90}
    assert expiring(ranges, before, log_starts) == [
        Loss("t", 0, 9, 12, EXPIRING),
        Loss("t", 2, 5, 20, EXPIRING),
    ]


def test_what_was_known_to_be_lost_is_not_told_again() -> None:
    before = [Loss("t", 0, 5, 12, EXPIRED)]
    assert expiring([Range("t", 0, 5, 10)], before, {("t", 0): 12}) == []
