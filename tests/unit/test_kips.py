"""The table of KIPs says what is so: versions that are served, settings honoured, tests there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from kafkalite import handlers
from kafkalite.config.setting import Setting
from kafkalite.config.tables import broker_settings, group_settings, topic_settings
from kafkalite.coordinators.cluster.features import SUPPORTED
from kafkalite.protocol import spec
from tests.kips import DONE, MISSING, NOTHING, PAGE, STATES, Kip, as_page, kips

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent


def by_number(kip: Kip) -> str:
    return f"KIP-{kip.number}"


def known(name: str) -> Setting | None:
    tables = (broker_settings(), topic_settings(), group_settings())
    return next((table[name] for table in tables if name in table), None)


@cache
def text_of(path: str) -> str:
    return (TESTS / path).read_text(encoding="utf-8")


def test_each_is_there_once_and_in_order() -> None:
    numbers = [each.number for each in kips()]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("kip", kips(), ids=by_number)
def test_its_state_says_whether_something_is_left(kip: Kip) -> None:
    assert kip.state in STATES
    assert (kip.left == NOTHING) == (kip.state == DONE)
    assert bool(kip.tests) == (kip.state != MISSING)
    assert kip.surface or kip.state == MISSING


@pytest.mark.parametrize("kip", kips(), ids=by_number)
def test_the_versions_it_names_are_served(kip: Kip) -> None:
    apis = {spec.api(key).name: spec.api(key) for key in handlers.served()}
    for name, version in kip.apis:
        if kip.state != MISSING:
            assert version in handlers.versions(apis[name]), name


@pytest.mark.parametrize("kip", kips(), ids=by_number)
def test_the_settings_it_names_are_there_and_honoured_when_it_is_done(kip: Kip) -> None:
    for name in kip.settings:
        setting = known(name)
        assert setting is not None or name in SUPPORTED, name
        if kip.state == DONE and setting is not None:
            assert setting.ignored is None, name


@pytest.mark.parametrize("kip", kips(), ids=by_number)
def test_the_tests_it_names_are_there(kip: Kip) -> None:
    for each in kip.tests:
        path, name = each.split("::")
        assert re.search(rf"^def {name}\(", text_of(path), re.MULTILINE), each


def test_every_api_belongs_to_one_that_a_client_may_ask() -> None:
    named = {name for kip in kips() for name, _ in kip.apis}
    asked = {spec.api(key).name for key in handlers.served()}
    assert asked - named == set(), "no KIP is said to have brought these"


def test_every_kip_that_a_spec_or_a_handler_names_is_in_the_table() -> None:
    places = (*ROOT.glob("protocol_specs/*.spec"), *ROOT.glob("src/kafkalite/handlers/*.py"))
    texts = (path.read_text(encoding="utf-8") for path in places)
    told = {int(number) for text in texts for number in re.findall(r"KIP-(\d+)", text)}
    assert told - {each.number for each in kips()} == set()


def test_the_page_is_as_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == as_page()
