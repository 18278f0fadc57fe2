"""`kafka-transactions`: transactions and their producers, and the end of those that hang."""

from __future__ import annotations

import time
from typing import Any

from kafkalite.protocol.messages import ListTransactionsRequest
from kafkalite.tools.arguments import Action, Argument, Command, Group
from kafkalite.tools.asking import Asking, ask, connect
from kafkalite.tools.failures import Failure, TerseFailure
from kafkalite.tools.java_maps import partitions_in_map_order
from kafkalite.tools.running import print_table, tell_uncaught
from kafkalite.tools.subcommands import Parser
from kafkalite.tools.transaction_questions import (
    Abortion,
    abort,
    describe_producers,
    describe_transaction,
    failed,
    list_transactions,
    terminate,
)

_ABOUT = (
    "This tool is used to analyze the transactional state of producers in the cluster. It can be "
    "used to detect and recover from hanging transactions."
)
_SHARED = (
    Argument(
        "version", "show the version of this Kafka distribution and exit", "v",
        action=Action.VERSION,
    ),
    Argument(
        "command-config", "property file containing configs to be passed to admin client",
        metavar="FILE",
    ),
    Argument(
        "bootstrap-server",
        "hostname and port for the broker to connect to, in the form `host:port`  (multiple "
        "comma-separated entries can be given)", is_required=True, metavar="host:port",
    ),
)  # fmt: skip
_TOPIC = Argument("topic", "topic name", is_required=True)
_PARTITION = Argument("partition", "partition number", type=int, is_required=True)
_NEW = Group(
    "Brokers on versions 3.0 and above",
    "For newer brokers, only the start offset of the transaction to be aborted is required",
)
_OLD = Group(
    "Brokers on versions older than 3.0",
    "For older brokers, you must provide all of these arguments",
)
_TERMINATE = "Force abort an ongoing transaction on transactionalId"
_ADMINISTRATIVE = "(requires administrative privileges)"
COMMANDS = (
    Command(
        "list", "list transactions",
        (
            Argument(
                "duration-filter",
                "Duration (in millis) to filter by: if < 0, all transactions will be returned; "
                "otherwise, only transactions running longer than this duration will be returned",
                type=int, bits=64,
            ),
            Argument(
                "transactional-id-pattern",
                "Transactional id regular expression pattern to filter by",
            ),
        ),
    ),
    Command(
        "describe", "describe the state of an active transactional-id",
        (Argument("transactional-id", "transactional id", is_required=True),),
        "Describe the state of an active transactional-id.",
    ),
    Command(
        "describe-producers", "describe the states of active producers for a topic partition",
        (
            Argument(
                "broker-id",
                "optional broker id to describe the producer state on a specific replica",
                type=int,
            ),
            _TOPIC, _PARTITION,
        ),
    ),
    Command(
        "abort", f"abort a hanging transaction {_ADMINISTRATIVE}",
        (
            _TOPIC, _PARTITION,
            Argument(
                "start-offset", "start offset of the transaction to abort", type=int, bits=64,
                group=_NEW,
            ),
            Argument("producer-id", "producer id", type=int, bits=64, group=_OLD),
            Argument("producer-epoch", "producer epoch", type=int, bits=16, group=_OLD),
            Argument("coordinator-epoch", "coordinator epoch", type=int, group=_OLD),
        ),
    ),
    Command(
        "find-hanging", "find hanging transactions",
        (
            Argument(
                "broker-id", "broker id to search for hanging transactions", type=int
            ),
            Argument(
                "max-transaction-timeout",
                "maximum transaction timeout in minutes to limit the scope of the search (15 "
                "minutes by default)", type=int,
            ),
            Argument(
                "topic",
                "topic name to limit search to (required if --partition is specified)",
            ),
            Argument("partition", "partition number", type=int),
        ),
    ),
    Command(
        "forceTerminateTransaction", f"{_TERMINATE} {_ADMINISTRATIVE}",
        (Argument("transactionalId", "transactional id", is_required=True),), _TERMINATE,
    ),
)  # fmt: skip
_PRODUCER_HEADS = (
    "ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp",
    "CurrentTransactionStartOffset",
)  # fmt: skip


def main(words: list[str]) -> int:
    parser = Parser(
        "kafka-transactions.sh", _ABOUT, COMMANDS, _SHARED, help_code=1, title="commands",
        metavar="COMMAND",
    )  # fmt: skip
    found = parser.read(words)
    if isinstance(found, int):
        return found
    command, given = found
    act = _ACTS[command]
    return ask(lambda: _connect(given), lambda asking: act(asking, given), tell_uncaught)


def _connect(given: dict[str, Any]) -> Asking:
    try:
        return connect(given["bootstrap-server"], given.get("command-config"))
    except Failure as failure:
        if failure.java.startswith("java."):
            raise failed("Failed to load admin client properties", failure) from None
        raise


def _list(asking: Asking, given: dict[str, Any]) -> None:
    request = ListTransactionsRequest(
        duration_filter=given.get("duration-filter", -1),
        transactional_id_pattern=given.get("transactional-id-pattern") or None,
    )
    try:
        found = list_transactions(asking, request)
    except Failure as failure:
        raise failed("Failed to list transactions", failure) from None
    rows = [
        (each.transactional_id, str(broker), str(each.producer_id), each.transaction_state)
        for broker in found
        for each in found[broker]
    ]
    print_table([("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), *rows])


def _describe(asking: Asking, given: dict[str, Any]) -> None:
    name = given["transactional-id"]
    try:
        coordinator, found = describe_transaction(asking, name)
    except Failure as failure:
        what = f"Failed to describe transaction state of transactional-id `{name}`"
        raise failed(what, failure) from None
    start_ms, places = found.transaction_start_time_ms, [
        (each.topic, index) for each in found.topics for index in each.partitions
    ]  # fmt: skip
    times = (str(start_ms), str(int(1000 * time.time()) - start_ms))
    cells = {
        "CoordinatorId": coordinator, "TransactionalId": name, "ProducerId": found.producer_id,
        "ProducerEpoch": found.producer_epoch, "TransactionState": found.transaction_state,
        "TransactionTimeoutMs": found.transaction_timeout_ms,
        "CurrentTransactionStartTimeMs": "None" if start_ms < 0 else times[0],
        "TransactionDurationMs": "None" if start_ms < 0 else times[1],
        "TopicPartitions": ",".join(f"{t}-{i}" for t, i in partitions_in_map_order(places)),
    }  # fmt: skip
    print_table([tuple(cells), [str(each) for each in cells.values()]])


def _describe_producers(asking: Asking, given: dict[str, Any]) -> None:
    place, broker = (given["topic"], given["partition"]), given.get("broker-id")
    where = "leader" if broker is None else f"broker {broker}"
    what = f"Failed to describe producers for partition {place[0]}-{place[1]} on {where}"
    rows = [
        (
            str(each.producer_id), str(each.producer_epoch), str(max(each.coordinator_epoch, -1)),
            str(each.last_sequence), str(each.last_timestamp),
            str(each.current_txn_start_offset) if each.current_txn_start_offset >= 0 else "None",
        )
        for each in _producers(asking, place, what, broker)
    ]  # fmt: skip
    print_table([_PRODUCER_HEADS, *rows])


def _producers(
    asking: Asking, place: tuple[str, int], what: str, broker: int | None = None
) -> list[Any]:
    try:
        found = describe_producers(asking, [place], broker)[place]
    except Failure as failure:
        raise failed(what, failure) from None
    if isinstance(found, Failure):
        raise failed(what, found)
    return found


def _abort(asking: Asking, given: dict[str, Any]) -> None:
    spec = _abortion(asking, given)
    try:
        abort(asking, spec)
    except Failure as failure:
        raise failed(f"Failed to abort transaction {spec}", failure) from None


def _abortion(asking: Asking, given: dict[str, Any]) -> Abortion:
    place, start = (given["topic"], given["partition"]), given.get("start-offset")
    if start is not None:
        return _starting_at(asking, place, start)
    if "producer-id" not in given:
        raise TerseFailure(
            "The transaction to abort must be identified either with --start-offset (for brokers "
            "on 3.0 or above) or with --producer-id, --producer-epoch, and --coordinator-epoch "
            "(for older brokers)"
        )
    for name in ("producer-epoch", "coordinator-epoch"):
        if name not in given:
            raise TerseFailure(f"Missing required argument --{name}")
    epoch = max(given["coordinator-epoch"], 0)
    return Abortion(place, given["producer-id"], given["producer-epoch"], epoch)


def _starting_at(asking: Asking, place: tuple[str, int], start: int) -> Abortion:
    shown = f"{place[0]}-{place[1]}"
    what = f"Failed to validate producer state for partition {shown}"
    for each in _producers(asking, place, what):
        if each.current_txn_start_offset == start >= 0:
            epoch = max(each.coordinator_epoch, 0)
            return Abortion(place, each.producer_id, each.producer_epoch, epoch)
    raise TerseFailure(
        f"Could not find any open transactions starting at offset {start} on partition {shown}"
    )


def _terminate(asking: Asking, given: dict[str, Any]) -> None:
    name = given["transactionalId"]
    try:
        terminate(asking, name)
    except Failure as failure:
        raise failed(f"Failed to force terminate transactionalId `{name}`", failure) from None


def _find_hanging(asking: Asking, given: dict[str, Any]) -> None:
    from kafkalite.tools.hanging_transactions import find_hanging

    find_hanging(asking, given)


_ACTS = {
    "abort": _abort,
    "describe": _describe,
    "describe-producers": _describe_producers,
    "find-hanging": _find_hanging,
    "forceTerminateTransaction": _terminate,
    "list": _list,
}
