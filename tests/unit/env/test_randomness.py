"""Ids drawn from chance are well formed, and repeatable from a seed."""

from base64 import urlsafe_b64encode
from uuid import UUID

from kafkalite.env.randomness import random_uuid, seeded_random, system_random


def test_uuids_are_version_4_and_never_look_like_an_option():
    random = seeded_random(1)
    for _ in range(500):
        uuid = random_uuid(random)
        assert UUID(bytes=uuid).version == 4
        assert not urlsafe_b64encode(uuid).startswith(b"-")


def test_a_seed_repeats():
    assert random_uuid(seeded_random("s")) == random_uuid(seeded_random("s"))
    assert random_uuid(system_random()) != random_uuid(system_random())
