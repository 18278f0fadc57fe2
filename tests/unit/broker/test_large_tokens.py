"""Tokens that take long to read: by a worker, and nobody waits for one at the end."""

import pytest

from kafkalite.broker.large_tokens import LARGE, LargeTokens
from kafkalite.env import manual_env
from kafkalite.env.background import QueuedBackground
from kafkalite.env.later import Later
from kafkalite.security.oauthbearer import Bearer, NotTaken

GOOD = Bearer("alice", 5)


@pytest.fixture
def background():
    return QueuedBackground()


@pytest.fixture
def tokens(background):
    env = manual_env()
    env.background = background
    return LargeTokens(env)


def test_a_small_one_is_read_at_once(tokens, background):
    assert tokens.read("x" * LARGE, lambda: GOOD) is GOOD
    assert not background


def test_a_large_one_is_read_by_a_worker(tokens, background):
    found = tokens.read("x" * (LARGE + 1), lambda: GOOD)
    assert isinstance(found, Later)
    assert not found.is_resolved
    background.run_all()
    assert found.value is GOOD


def test_a_mistake_is_told_as_one(tokens, background):
    found = tokens.read("x" * (LARGE + 1), lambda: 1 // 0)
    background.run_all()
    with pytest.raises(RuntimeError, match="a token could not be read"):
        _ = found.value


def test_who_waits_at_the_end_is_answered(tokens, background):
    found = tokens.read("x" * (LARGE + 1), lambda: GOOD)
    tokens.stop()
    assert isinstance(found.value, NotTaken)
    background.run_all()
