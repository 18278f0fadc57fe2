"""Which records are lost: expired, or of a topic that is another one now."""

from kafkalite.pipelines.common.losses import (
    DELETED,
    EXPIRED,
    RECREATED,
    Loss,
    RecordsLost,
    expired,
    replaced,
)


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
