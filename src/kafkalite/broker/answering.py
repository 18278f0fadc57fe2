"""Who answers the requests of a broker, for each kind of listener."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkalite.config.listeners import BROKER
from kafkalite.handlers.context import Context
from kafkalite.server.controllers import dispatchers_of
from kafkalite.server.counting import Counts
from kafkalite.server.dispatch import Dispatcher
from kafkalite.server.limits import LimitedLog
from kafkalite.server.terms import Service


def services_of(
    context: Context,
    log: LimitedLog,
    counts: Counts | None,
    over: Callable[[Service], Service],
) -> tuple[Dispatcher, Mapping[str, Service]]:
    """The dispatcher of what clients ask, and who stands before each."""
    dispatchers = dispatchers_of(context, log, counts)
    services = {kind: over(each) for kind, each in dispatchers.items()}
    return dispatchers[BROKER], services
