"""Where kafkalite is allowed to differ from Apache Kafka, each with the reason.

A test that meets a difference asks `differs(broker, name)`; a difference without a row here is a
failure, and a row that no test asks for is removed.
"""

from tests.compat.brokers import Broker

DIFFERENCES: dict[str, str] = {
    "Alerts of TLS": "who shows no certificate, or one of another authority, is refused with the"
    " alert that OpenSSL has for it where Java's TLS sends another; nothing of Python's chooses it",
}


def differs(broker: Broker, name: str) -> bool:
    """Whether this broker is the one that differs by the named row."""
    assert name in DIFFERENCES, f"no row for {name!r}"
    return broker.is_kafkalite
