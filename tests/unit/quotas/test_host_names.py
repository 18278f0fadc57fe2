"""Names of hosts: the system is asked once however many wait, and nobody waits at the end."""

import pytest

from kafkalite.env import Env, manual_env
from kafkalite.env.background import QueuedBackground
from kafkalite.quotas.host_names import HostNames


@pytest.fixture
def background() -> QueuedBackground:
    return QueuedBackground()


@pytest.fixture
def env(background: QueuedBackground) -> Env:
    env = manual_env()
    env.background = background
    env.address_of = lambda name: f"address of {name}"
    return env


def test_the_system_is_asked_once_while_many_wait(env: Env, background: QueuedBackground) -> None:
    names = HostNames(env)
    found = [names.look_up("slow.test") for _ in range(1_000)]
    assert len(background) == 1
    background.run_all()
    assert {each.value for each in found} == {"address of slow.test"}
    names.look_up("slow.test")
    assert len(background) == 1, "it may have moved"


def test_who_waits_at_the_end_is_answered(env: Env, background: QueuedBackground) -> None:
    names = HostNames(env)
    found = names.look_up("slow.test")
    names.stop()
    assert found.value is None
    background.run_all()


@pytest.mark.parametrize("name", ["", "x" * 256, "local\0host", "1.2.3.4.5"])
def test_what_is_no_name_is_not_asked_for(
    env: Env, background: QueuedBackground, name: str
) -> None:
    assert HostNames(env).look_up(name).value is None
    assert not background
