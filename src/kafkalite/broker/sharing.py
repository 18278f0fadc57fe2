"""Builds what share groups need: who keeps their states, who is asked for them, and what of this
broker's partitions is handed out."""

from __future__ import annotations

from kafkalite.broker.known import Known
from kafkalite.coordinators.shares.front import STATE_TOPIC, Shares, share_settings
from kafkalite.coordinators.shares.persister import Persister
from kafkalite.handlers.context import Context
from kafkalite.peers.peers import Peers
from kafkalite.sharing.settings import ShareSettings
from kafkalite.sharing.sharing import Sharing


def build_sharing(context: Context, known: Known, peers: Peers) -> None:
    env, config = context.env, context.config
    shares = context.shares = Shares(
        env,
        share_settings(config, known.partitions_of),
        lambda: known.partition_count(STATE_TOPIC),
        append_timeout_ms=config.get_int("share.coordinator.write.timeout.ms"),
    )
    peers.local_shares = shares
    context.persister = Persister(
        env.clock, shares, leader_of=known.leader_of, peer_of=peers.of_shares,
        create_topic=context.auto_creation.create_internal,
    )  # fmt: skip
    context.sharing = Sharing(
        env, context.persister, ShareSettings(known.group_value),
        config.get_int("group.share.max.share.sessions"),
    )  # fmt: skip
