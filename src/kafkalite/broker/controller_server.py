"""A controller alone (process.roles=controller): it decides for brokers elsewhere, and has no data.

Owns the order in which it comes and goes: its directories are taken, the metadata is folded, its
address is bound, and it takes the lead; at the end a last snapshot is written. Invariant: nobody is
answered before it leads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafkalite.broker import limiting
from kafkalite.broker.audit import audit_of
from kafkalite.broker.authorizing import authorizer_of, follow
from kafkalite.broker.creating import Creating
from kafkalite.broker.disk_errors import disk_errors
from kafkalite.broker.encryption import Keys
from kafkalite.broker.identity import find_cluster_id
from kafkalite.broker.leading_quorum import lead_quorum
from kafkalite.broker.log_configs import log_settings
from kafkalite.broker.logins import Logins
from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.configs import apply_dynamic_config
from kafkalite.coordinators.cluster.local_controller import LocalController
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.env import Env
from kafkalite.env.later import Later
from kafkalite.env.network import Network
from kafkalite.handlers.context import Context
from kafkalite.handlers.fetch_sessions import FetchSessions
from kafkalite.log.home import LogHome
from kafkalite.log.manager import LogManager
from kafkalite.quotas.client_quotas import ClientQuotas
from kafkalite.quotas.permits import mutations
from kafkalite.replication.partitions import Partitions
from kafkalite.replication.waiting import Waiting
from kafkalite.server.controllers import dispatchers_of
from kafkalite.server.limits import LimitedLog
from kafkalite.server.listener import Server

logger = logging.getLogger(__name__)

STOP_GRACE_MS = 500


class ControllerServer(Creating):
    """`start` and making one raise as a broker's do."""

    def __init__(self, env: Env, network: Network, config: BrokerConfig) -> None:
        self.env, self.config, self.node_id = env, config, config.node_id
        self.cluster_id = find_cluster_id(env, config.log_dirs)
        self.metadata = Metadata(self.cluster_id)
        self.keys = Keys(env, config)
        self.failure: OSError | None = None
        self.ended: Later[OSError | None] = Later()
        self.logs = LogManager(
            env, config.log_dirs, node_id=self.node_id, cluster_id=self.cluster_id,
            settings=log_settings(config), on_offline=self._went_offline,
        )  # fmt: skip
        self.context = Context(
            env, config, self.node_id, self.cluster_id, Partitions(self.node_id),
            Waiting(env.clock),
            FetchSessions(config.get_int("max.incremental.fetch.session.cache.slots"), env.random),
            ClientQuotas(config, env.clock, mutations(config, env.clock)),
        )  # fmt: skip
        log = LimitedLog(env.clock)
        self.audit = audit_of(env, config, log)
        self.context.authorizer = authorizer_of(config, log, self.audit)
        self.context.metadata, self.context.logs = self.metadata, self.logs
        services = dispatchers_of(self.context, log)
        self.logins = Logins(env, config, lambda: self.metadata, services, log)
        self.server = Server(
            network, env.clock, env.slices, config, self.logins.terms, log,
            self.context.quotas.connection_rate, self.keys.listeners,
        )  # fmt: skip
        self._controller: LocalController | None = None
        self._unfollow: list[Callable[[], None]] = []
        self._stopped: Later[None] | None = None

    @property
    def controller(self) -> LocalController:
        assert self._controller is not None, "the controller has not been started"
        return self._controller

    @property
    def asked(self) -> LocalController:
        return self.controller

    def start(self) -> Later[Exception | None]:
        """Resolved with None when it leads, or with the reason why it does not."""
        try:
            self.logs.lock()
            self._read()
            self.logs.take()
            if self.failure is not None:
                raise self.failure
            with disk_errors():
                self.controller.open()
        except BaseException:
            self.logs.abandon()
            raise
        apply_dynamic_config(self.metadata.image, self.config)
        try:
            self._lead()
        except Exception as error:
            failure = error
            if not isinstance(error, OSError):
                logger.exception("[ControllerServer id=%d] cannot start", self.node_id)
            self.stop(0)
            return self.ended.map(lambda _: failure)
        return Later.of(None)

    def _read(self) -> None:
        if self.failure is not None:
            raise self.failure
        path = self.config.metadata_log_dir.rstrip("/")
        directory = next(each for each in self.logs.directories if each.path == path)
        with disk_errors():
            controller = self._controller = LocalController(
                self.env, directory.home, self.config, self.metadata, directory.directory_id
            )
            controller.when_lost = self._lost
            controller.read()
        self.context.controller = controller

    def _lead(self) -> None:
        if self.context.authorizer is not None:
            self._unfollow += [follow(self.context.authorizer, self.metadata, self.env.slices)]
        self._unfollow += [
            limiting.follow(
                self.context.quotas, self.context.host_names, self.metadata, self.env.slices
            )
        ]
        self.server.start()
        with disk_errors():
            lead_quorum(self.context, self.controller, self.server.addresses)
            self.controller.fence_absent()
        self.keys.watch()
        self.logins.start()

    # --- stopping ---------------------------------------------------------------------------------

    def stop(self, grace_ms: int = STOP_GRACE_MS) -> Later[None]:
        """Ends all connections, and makes everything last."""
        if self._stopped is None:
            self._stopped = Later()
            self.context.waiting.stop()  # those who follow ask again when it is back
            self.server.stop(grace_ms).then(self._close)
        return self._stopped

    def _close(self, _: None) -> None:
        self.keys.stop()
        self.logins.stop()
        while self._unfollow:
            self._unfollow.pop()()
        self.context.waiting.stop()
        self.context.long_work.stop()
        self.context.host_names.stop()
        if self.audit is not None:
            self.audit.stop()
        if self.failure is not None:
            self.logs.abandon()
            self.controller.abandon()
        else:
            self.controller.close()
            self.logs.close()
        self.env.clock.call_later(0, self._tell_stopped)

    def _tell_stopped(self) -> None:
        assert self._stopped is not None
        self.ended.resolve(self.failure)
        self._stopped.resolve(None)

    # --- failing ----------------------------------------------------------------------------------

    def _went_offline(self, home: LogHome) -> None:
        """It cannot go on without its metadata."""
        if home.path == self.config.metadata_log_dir.rstrip("/"):
            self._fail(home.failure or OSError(f"{home.path} failed"))

    def _lost(self, mistake: Exception) -> None:
        self._fail(OSError(f"the cluster's metadata cannot be loaded again: {mistake}"))

    def _fail(self, why: OSError) -> None:
        if self.failure is None:
            self.failure = why
            self.env.clock.call_later(0, self._end)

    def _end(self) -> None:
        logger.critical(
            "[ControllerServer id=%d] ends, because it cannot do without what has failed: %s. What "
            "was acknowledged is not touched: mend the disk, and start again",
            self.node_id, self.failure,
        )  # fmt: skip
        self.stop(0)
