"""Replies kept in their bytes: until there is news, and no more than there is room for."""

from kafkalite.handlers.kept_replies import MOST_BYTES, KeptReplies

ME, ANOTHER = "User:me", "User:another"


def test_a_reply_is_found_until_the_metadata_changes():
    kept = KeptReplies()
    kept.keep(7, ME, "a", b"body")
    assert kept.find(7, ME, "a") == b"body"
    assert kept.find(7, ME, "b") is None
    assert kept.find(8, ME, "a") is None


def test_a_reply_is_given_to_nobody_else():
    kept = KeptReplies()
    kept.keep(7, ME, "a", b"for me")
    assert kept.find(7, ANOTHER, "a") is None
    kept.keep(7, ANOTHER, "a", b"for another")
    assert (kept.find(7, ME, "a"), kept.find(7, ANOTHER, "a")) == (b"for me", b"for another")


def test_with_news_all_that_came_before_goes():
    kept = KeptReplies()
    kept.keep(7, ME, "a", b"old")
    kept.keep(8, ME, "b", b"new")
    assert kept.find(8, ME, "a") is None
    assert kept.find(8, ME, "b") == b"new"


def test_memory_is_bounded():
    kept = KeptReplies()
    half = bytes(MOST_BYTES // 2)
    for name in "abc":
        kept.keep(7, ME, name, half)
    assert [kept.find(7, ME, name) is not None for name in "abc"] == [False, False, True]
