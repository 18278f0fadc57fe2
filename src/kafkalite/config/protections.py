"""Settings that promise a protection, which this broker could only pretend to give.

A broker that was told to keep strangers out and does not must not start: Kafka does not start
either where it cannot keep such a promise. Settings that only say *how* a protection works (where a
keystore lies) are ignored, as Kafka ignores them while no listener uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkalite.config.authorization import STANDARD_AUTHORIZER
from kafkalite.config.setting import TRIMMED
from kafkalite.config.tables import base_name
from kafkalite.config.together import PRINCIPAL_BUILDER

ALLOW = "kafkalite.allow.insecure"
# Classes of Apache Kafka that stand for what is done here: they check tokens of OAUTHBEARER, and
# are named for one listener.
SIGNED_CHECK = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
UNSECURED_CHECK = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler"
)
_TOKEN_CHECK = ".oauthbearer.sasl.server.callback.handler.class"


def _is_given(text: str) -> bool:
    return text != ""


def _is_other_than(*usual: str) -> Callable[[str], bool]:
    return lambda text: text not in usual


# Each with the values that promise something, and what they promise.
PROMISES: dict[str, tuple[Callable[[str], bool], str]] = {
    "authorizer.class.name": (
        lambda text: text not in ("", STANDARD_AUTHORIZER),
        f"there is no such authorizer, only {STANDARD_AUTHORIZER}",
    ),
    "principal.builder.class": (
        _is_other_than(PRINCIPAL_BUILDER),
        "no class of another runtime names the user of a connection",
    ),
    "sasl.server.callback.handler.class": (
        _is_given,
        "no class of another runtime checks who logs in",
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
    if text in (SIGNED_CHECK, UNSECURED_CHECK) and key.endswith(_TOKEN_CHECK):
        return None
    promises, reason = PROMISES.get(base_name(key), (lambda _: False, ""))
    return f"{reason}; {ALLOW}=true starts without this protection" if promises(text) else None
