"""Rules over several settings of a broker, which no single value breaks.

Owns Kafka's sentences for them. What Kafka calls a requirement says so in its sentence when it
refuses a change; a file is refused with the sentence alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kafkalite.config.authorization import AUTHORIZER, STANDARD_AUTHORIZER, SUPER_USERS, super_users
from kafkalite.config.layers import HOUR_MS
from kafkalite.config.listeners import PLAINTEXT, pairs_of
from kafkalite.config.quorum import check_roles
from kafkalite.config.reopening import check_listeners
from kafkalite.config.setting import InvalidSetting, Requirement, refusal, whole_number

if TYPE_CHECKING:
    from kafkalite.config.broker import BrokerConfig

MEGABYTE = 1024 * 1024
HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")
OVERRIDES = "max.connections.per.ip.overrides"
PRINCIPAL_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
KINDS = ("consumer", "share", "streams")
LOOPBACK = ("127.0.0.1", "::1")
INT_BOUND = 1 << 31


def check_together(config: BrokerConfig) -> None:
    """Raises InvalidSetting for the first rule over several settings that is broken."""
    if config.is_given("node.id") and config.get_int("broker.id") not in (-1, config.node_id):
        raise InvalidSetting("node.id and broker.id are both given and differ")
    check_logs(config)
    _check_listeners(config)
    check_roles(config)
    _check_cordoned(config)
    if config.metadata_log_dir not in config.log_dirs:
        raise InvalidSetting(
            f"metadata.log.dir {config.metadata_log_dir} must be one of the log directories"
        )
    _check_connections(config)
    _check_principals(config)
    if config.get_str(AUTHORIZER).strip() == STANDARD_AUTHORIZER:
        super_users(config.text(SUPER_USERS))
    _check_assignment_intervals(config)
    _check_compaction_lags(config)


def check_logs(config: BrokerConfig) -> None:
    """Times of segments, and memory for compaction."""
    roll_ms = _first(config, "log.roll.ms", "log.roll.hours")
    if roll_ms < 1:
        raise Requirement("log.roll.ms must be greater than or equal to 1")
    if _first(config, "log.roll.jitter.ms", "log.roll.jitter.hours") < 0:
        raise Requirement("log.roll.jitter.ms must be greater than or equal to 0")
    if _retention_ms(config) == 0:
        raise Requirement("log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    threads = config.get_int("log.cleaner.threads")
    if threads == 0:
        raise InvalidSetting("/ by zero")
    if config.get_int("log.cleaner.dedupe.buffer.size") // threads <= MEGABYTE:
        raise Requirement("log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")


def _first(config: BrokerConfig, milliseconds: str, hours: str) -> int:
    exact = config.get_optional_int(milliseconds)
    return config.get_int(hours) * HOUR_MS if exact is None else exact


def _retention_ms(config: BrokerConfig) -> int:
    """How long logs are kept; -1 for ever."""
    found = config.get_optional_int("log.retention.ms")
    if found is None:
        minutes = config.get_optional_int("log.retention.minutes")
        hours = config.get_int("log.retention.hours")
        found = hours * HOUR_MS if minutes is None else minutes * 60_000
    return max(found, -1)


def _check_listeners(config: BrokerConfig) -> None:
    listeners = config.listeners
    if not listeners and config.is_broker:
        raise InvalidSetting("listeners must name at least one listener for clients")
    check_listeners(config)
    names = {listener.name for listener in listeners}
    for name, advertised in config.advertised_listeners.items():
        if advertised.host in ("0.0.0.0", "::"):
            raise InvalidSetting(
                "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. "
                "Use a routable IP address."
            )
        if name not in names:
            raise InvalidSetting(
                f"advertised.listeners names {name}, which listeners does not open "
                f"({', '.join(sorted(names))})"
            )

    if config.is_broker:
        _check_inter_broker_listener(config, names)


def _check_inter_broker_listener(config: BrokerConfig, names: set[str]) -> None:
    if not config.is_given("inter.broker.listener.name"):
        _check_inter_broker_protocol(config, names)
        return
    if config.is_given("security.inter.broker.protocol"):
        raise InvalidSetting(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be "
            "set."
        )
    if config.inter_broker_listener not in names:
        raise InvalidSetting(
            f"inter.broker.listener.name is {config.inter_broker_listener}, which listeners does "
            f"not open ({', '.join(sorted(names))})"
        )


def _check_inter_broker_protocol(config: BrokerConfig, names: set[str]) -> None:
    """One that protects is never passed over for a listener that does not."""
    protocol = config.get_str("security.inter.broker.protocol")
    if protocol not in (PLAINTEXT, *names) and not config.get_bool("kafkalite.allow.insecure"):
        raise InvalidSetting(
            f"security.inter.broker.protocol is {protocol}, and listeners opens none of that name: "
            "set inter.broker.listener.name instead"
        )


def _check_cordoned(config: BrokerConfig) -> None:
    name = "cordoned.log.dirs"
    cordoned = config.get_list(name)
    if "*" in cordoned:
        if len(cordoned) > 1:
            raise Requirement(f"When {name} is set to *, it must not contain other values")
        return
    missing = [each for each in cordoned if each not in config.log_dirs]
    if missing:
        raise Requirement(
            f"All entries in {name} must be present in log.dirs or log.dir. "
            f"Missing entries : {', '.join(missing)}"
        )


def _check_connections(config: BrokerConfig) -> None:
    """Limits that would keep everybody out."""
    counts = connections_by_host(config)
    if config.get_int("max.connections.per.ip") == 0 and not counts:
        raise Requirement(
            f"max.connections.per.ip can be set to zero only if {OVERRIDES} property is set."
        )
    wrong = [host for host in counts if not HOST.fullmatch(host)]
    if wrong:
        raise InvalidSetting(f"{OVERRIDES} contains invalid addresses : {','.join(wrong)}")


def connections_by_host(config: BrokerConfig) -> dict[str, int]:
    """How many connections each of the addresses with a limit of its own may have."""
    counts: dict[str, int] = {}
    for host, text in pairs_of(OVERRIDES, config.get_str(OVERRIDES)).items():
        count = whole_number(text)
        if count is None or not -INT_BOUND <= count < INT_BOUND:
            raise InvalidSetting(f'For input string: "{text}"')
        # No other name is looked up: nobody may wait for that.
        counts |= dict.fromkeys(LOOPBACK if host == "localhost" else (host,), count)
    return counts


def _check_principals(config: BrokerConfig) -> None:
    name = "principal.builder.class"
    if name not in config.dynamic_names() or config.get(name) == PRINCIPAL_BUILDER:
        return
    raise Requirement(f"{name} must implement KafkaPrincipalSerde")


def _check_assignment_intervals(config: BrokerConfig) -> None:
    for kind in KINDS:
        name = f"group.{kind}.assignment.interval.ms"
        least, most = (f"group.{kind}.{edge}.assignment.interval.ms" for edge in ("min", "max"))
        if config.get_int(name) < config.get_int(least):
            raise InvalidSetting(f"{name} must be greater than or equal to {least}")
        if config.get_int(name) > config.get_int(most):
            raise InvalidSetting(f"{name} must be less than or equal to {most}")


def _check_compaction_lags(config: BrokerConfig) -> None:
    least, most = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
    if config.get_int(least) > config.get_int(most):
        raise InvalidSetting(f"{least} ({config.get_int(least)}) > {most} ({config.get_int(most)})")


def check_local_retention(config: BrokerConfig) -> None:
    """What stays on the local disk is no more than what is kept at all."""
    for name, kept_by, kept in (
        ("log.local.retention.ms", "log.retention.ms", _retention_ms(config)),
        ("log.local.retention.bytes", "log.retention.bytes", config.get_int("log.retention.bytes")),
    ):
        local = config.get_int(name)
        if kept < 0 or local == -2:
            continue
        if local == -1:
            why = f"Value must not be -1 as {kept_by} value is set as {kept}."
            raise refusal(name, local, why)
        if local > kept:
            why = f"Value must not be more than {kept_by} property value: {kept}"
            raise refusal(name, local, why)
