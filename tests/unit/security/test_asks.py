"""The table of what is asked has a row for every API that is served, and the page shows it."""

from __future__ import annotations

from pathlib import Path

from kafkalite import handlers
from kafkalite.protocol import spec
from kafkalite.security.asks import EACH, OWN, asks
from kafkalite.server.guard import guarded
from tests.unit.security.page import as_page

PAGE = Path(__file__).parents[3] / "docs" / "generated" / "authorization.md"


def test_every_served_api_has_its_rows() -> None:
    assert set(asks()) == {spec.api(key).name for key in handlers.served()}


def test_every_version_can_be_guarded_where_its_rows_are_the_check() -> None:
    for key in handlers.served():
        api, handler = spec.api(key), handlers.handler(key)
        assert handler is not None
        for version in handlers.versions(api):
            for kind in api.listeners:
                guard = guarded(handler, api, version, kind)
                is_all_own = all(
                    ask.how == OWN or version not in ask.versions or ask.is_for_controllers
                    for ask in asks()[api.name]
                )
                if kind == "broker":
                    assert (guard is handler) == is_all_own, f"{api.name} v{version}"


def test_entries_are_asked_about_by_what_the_spec_says_that_they_name() -> None:
    for rows in asks().values():
        for ask in rows:
            if ask.how == EACH:
                assert ask.resource in spec.RESOURCES


def test_the_page_is_as_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == as_page()
