"""Settings that promise a protection, which this broker could only pretend to give.

A broker that was told to keep strangers out and does not must not start: Kafka does not start
either where it cannot keep such a promise. Settings that only say *how* a protection works (where a
keystore lies) are ignored, as Kafka ignores them while no listener uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkalite.config.authorization import STANDARD_AUTHORIZER
from kafkalite.config.listeners import PLAINTEXT, parse_listeners, protocol_map
from kafkalite.config.setting import TRIMMED, InvalidSetting
from kafkalite.config.tables import base_name, broker_settings
from kafkalite.config.together import PRINCIPAL_BUILDER

ALLOW = "kafkalite.allow.insecure"


def _is_given(text: str) -> bool:
    return text != ""


def _is_other_than(usual: str) -> Callable[[str], bool]:
    return lambda text: text != usual


# Each with the values that promise something, and what they promise.
PROMISES: dict[str, tuple[Callable[[str], bool], str]] = {
    "authorizer.class.name": (
        lambda text: text not in ("", STANDARD_AUTHORIZER),
        f"there is no such authorizer, only {STANDARD_AUTHORIZER}",
    ),
    "security.inter.broker.protocol": (
        _is_other_than(PLAINTEXT),
        "connections are neither encrypted nor authenticated",
    ),
    "ssl.client.auth": (_is_other_than("none"), "no client is asked for a certificate"),
    "principal.builder.class": (
        _is_other_than(PRINCIPAL_BUILDER),
        "no class of another runtime names the user of a connection",
    ),
    "create.topic.policy.class.name": (_is_given, "no policy is asked before a topic is created"),
    "alter.config.policy.class.name": (_is_given, "no policy is asked before settings change"),
    "client.quota.callback.class": (_is_given, "no class of another runtime decides quotas"),
}


def broken_promise(key: str, properties: Mapping[str, str]) -> str | None:
    """Why a broker with this key must not start, None where it may."""
    if properties.get(ALLOW, "").strip().lower() == "true":
        return None
    text = properties[key].strip(TRIMMED)
    if key == "listeners":
        why = _unprotected_listener(properties)
    else:
        promises, reason = PROMISES.get(base_name(key), (lambda _: False, ""))
        why = reason if promises(text) else None
    return None if why is None else f"{why}; {ALLOW}=true starts without this protection"


def _unprotected_listener(properties: Mapping[str, str]) -> str | None:
    """The first listener that would be opened without what its protocol promises."""
    table = broker_settings()
    names = table["controller.listener.names"].parse(
        properties.get("controller.listener.names", "CONTROLLER")
    )
    kept = {name.upper() for name in names} if isinstance(names, list) else set()
    map_name = "listener.security.protocol.map"
    protocols = protocol_map(properties.get(map_name, table[map_name].default_text or ""))
    texts = table["listeners"].parse(properties["listeners"])
    try:
        listeners = parse_listeners(
            "listeners", texts if isinstance(texts, list) else [], protocols
        )
    except InvalidSetting:
        return None  # said where the settings are looked at together
    for each in listeners:
        if each.name not in kept and each.protocol != PLAINTEXT:
            return (
                f"{each.name} would be open to everybody: there is no {each.protocol}, connections "
                "are neither encrypted nor authenticated"
            )
    return None
