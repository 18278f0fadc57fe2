"""The APIs of one kind of listener: those that have a handler and whose specs name that kind.

Owns what is served at such a listener and what ApiVersions says of it; computed from the specs when
it is first asked for, as reading all of them takes a while. Never written down.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from kafkalite import handlers
from kafkalite.protocol import spec
from kafkalite.protocol.messages import ApiVersionsResponse


class ApiSet:
    """A value, made once for each kind of listener that a broker has."""

    def __init__(
        self,
        kind: str,
        find_handler: Callable[[int], handlers.Handler | None] = handlers.handler,
    ) -> None:
        self.kind = kind
        self._find_handler = find_handler

    def handler(self, api_key: int) -> handlers.Handler | None:
        """The function that answers an API here, or None: then it is not served here."""
        if api_key not in spec.api_files() or self.kind not in spec.api(api_key).listeners:
            return None
        return self._find_handler(api_key)

    @cached_property
    def apis(self) -> tuple[spec.Api, ...]:
        """What is served, by key."""
        served = map(spec.api, handlers.served())
        return tuple(api for api in served if self.kind in api.listeners)

    @cached_property
    def advertised(self) -> tuple[ApiVersionsResponse.ApiKey, ...]:
        """What is served, as ApiVersions tells it."""
        return tuple(map(entry_of, self.apis))


def entry_of(api: spec.Api) -> ApiVersionsResponse.ApiKey:
    """An API and its versions, as clients are told."""
    versions = handlers.versions(api)
    return ApiVersionsResponse.ApiKey(
        api_key=api.key, min_version=versions.start, max_version=versions.stop - 1
    )
