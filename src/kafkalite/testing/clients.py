"""How each client is told where a broker is: the words of its own configuration.

Owns the table of libraries. Knows nothing of brokers.
"""

from __future__ import annotations

# What each library calls it.
_BOOTSTRAP = {
    "kafka-python": "bootstrap_servers",
    "aiokafka": "bootstrap_servers",
    "confluent": "bootstrap.servers",
    "java": "bootstrap.servers",
    "spark": "kafka.bootstrap.servers",
}
# As people also call them.
_SAME = {
    "confluent-kafka": "confluent",
    "librdkafka": "confluent",
    "kafka_python": "kafka-python",
    "kafka": "kafka-python",
    "pyspark": "spark",
}


def client_config(library: str, bootstrap_servers: str) -> dict[str, str]:
    """What a client of this library needs to find the broker: `KafkaProducer(**config)`,
    `confluent_kafka.Producer(config)`, `reader.options(**config)`."""
    return {_BOOTSTRAP[known_library(library)]: bootstrap_servers}


def known_library(library: str) -> str:
    """The usual name of a library."""
    known = _SAME.get(library, library)
    if known not in _BOOTSTRAP:
        raise ValueError(f"{library!r}: expected one of {', '.join(_BOOTSTRAP)}")
    return known
