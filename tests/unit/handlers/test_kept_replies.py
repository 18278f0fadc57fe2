"""Replies kept in their bytes: until there is news, and no more than there is room for."""

from kafkalite.handlers.kept_replies import MOST_BYTES, KeptReplies


def test_a_reply_is_found_until_the_metadata_changes():
    kept = KeptReplies()
    kept.keep(7, "a", b"body")
    assert kept.find(7, "a") == b"body"
    assert kept.find(7, "b") is None
    assert kept.find(8, "a") is None


def test_with_news_all_that_came_before_goes():
    kept = KeptReplies()
    kept.keep(7, "a", b"old")
    kept.keep(8, "b", b"new")
    assert kept.find(8, "a") is None
    assert kept.find(8, "b") == b"new"


def test_memory_is_bounded():
    kept = KeptReplies()
    half = bytes(MOST_BYTES // 2)
    for name in "abc":
        kept.keep(7, name, half)
    assert [kept.find(7, name) is not None for name in "abc"] == [False, False, True]
