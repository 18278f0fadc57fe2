"""The options of Spark's Kafka source and sink by name, and the nearest to one that is unknown.

Owns the names that Spark's connector takes. The names of Kafka's own settings (`kafka.…`) come from
the client that the session carries. Pure.
"""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

SOURCE = (
    "startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp",
    "startingOffsetsByTimestampStrategy", "endingOffsets", "endingOffsetsByTimestamp",
    "endingTimestamp", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs", "maxOffsetsPerTrigger", "minOffsetsPerTrigger",
    "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition", "groupIdPrefix",
)  # fmt: skip
# What a command says in its own way: with them the two would contradict each other.
OURS = {
    "subscribe": "name the topics as arguments",
    "subscribepattern": "use --pattern",
    "assign": "use --assign",
    "failondataloss": "use --on-data-loss",
    "includeheaders": "headers are always read",
    "topic": "the command says where it writes",
    "kafka.bootstrap.servers": "use --bootstrap-servers",
    "kafka.isolation.level": "use --isolation",
}
KAFKA = "kafka."
# Settings of Kafka's clients that are nearer than this to an unknown one are meant by it.
_NEAR = 0.8


def wrong(options: Iterable[str], source: bool = True) -> str | None:
    """Why one of these cannot be taken, by Spark's names alone."""
    known = SOURCE if source else ()
    lowered = {name.lower() for name in known}
    for name in options:
        if name.lower() in OURS:
            return f"{name}: {OURS[name.lower()]}"
        if name.startswith(KAFKA) or name.lower() in lowered:
            continue
        if name.lower().startswith(KAFKA):
            return f"{name}: Spark passes on what begins with {KAFKA!r}, in small letters"
        what = "Spark's Kafka source" if source else "Spark's Kafka sink"
        return f"{what} has no option {name}{_hint(name, known or [KAFKA + '…'])}"
    return None


def wrong_setting(options: Iterable[str], settings: Collection[str]) -> str | None:
    """Why one of the `kafka.` options cannot be meant. A name that resembles none is passed on:
    plugins of a client have settings of their own."""
    for name in options:
        setting = name.removeprefix(KAFKA)
        if setting == name or setting in settings:
            continue
        near = get_close_matches(setting, settings, 1, _NEAR)
        if near:
            return f"Kafka's clients have no setting {setting}; do you mean {KAFKA}{near[0]}?"
    return None


def _hint(name: str, known: Collection[str]) -> str:
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, 1, 0.5)
    return f"; do you mean {by_lower[near[0]]}?" if near else f"; there are {', '.join(known)}"
