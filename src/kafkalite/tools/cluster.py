"""`kafka-cluster`: a cluster's id, the addresses of its brokers or controllers, and brokers that go
for good."""

from __future__ import annotations

from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeClusterRequest, UnregisterBrokerRequest
from kafkalite.tools.arguments import Action, Argument, Command, Group
from kafkalite.tools.asking import Asking, ask, connect
from kafkalite.tools.failures import Failure, execution, illegal_argument, refused
from kafkalite.tools.running import log
from kafkalite.tools.subcommands import Parser

_BROKERS, _CONTROLLERS = 1, 2  # kinds of endpoints
_CONNECTION = Group(is_exclusive=True, is_required=True)
_SHARED = (
    Argument(
        "bootstrap-server",
        "A list of host/port pairs to use for establishing the connection to the Kafka cluster.",
        "b", group=_CONNECTION,
    ),
    Argument(
        "bootstrap-controller",
        "A list of host/port pairs to use for establishing the connection to the KRaft "
        "controllers.", "C", group=_CONNECTION,
    ),
    Argument(
        "config",
        "(DEPRECATED) A property file containing configurations for the Admin client. This option "
        "will be removed in a future version. Use --command-config instead.",
    ),
    Argument("command-config", "Config properties file for the Admin client.", "c"),
)  # fmt: skip
COMMANDS = (
    Command("cluster-id", "Get information about the ID of a cluster.", _SHARED),
    Command(
        "unregister", "Unregister a broker.",
        (
            *_SHARED,
            Argument("id", "The ID of the broker to unregister.", "i", int, is_required=True),
        ),
    ),
    Command(
        "list-endpoints", "List endpoints",
        (
            *_SHARED,
            Argument(
                "include-fenced-brokers",
                "Whether to include fenced brokers when listing broker endpoints",
                action=Action.STORE_TRUE,
            ),
        ),
    ),
)  # fmt: skip


def main(words: list[str]) -> int:
    parser = Parser("kafka-cluster", "The Kafka cluster tool.", COMMANDS, help_code=1)
    found = parser.read(words)
    if isinstance(found, int):
        return found
    command, given = found
    act = _ACTS[command]
    return ask(lambda: _connect(given), lambda asking: act(asking, given))


def _connect(given: dict[str, Any]) -> Asking:
    if "config" in given and "command-config" in given:
        raise Failure(
            "net.sourceforge.argparse4j.inf.ArgumentParserException",
            "--config and --command-config cannot be specified together.",
        )
    if "config" in given:
        print(
            "Option --config has been deprecated and will be removed in a future version. Use "
            "--command-config instead."
        )
    config = given.get("config", given.get("command-config"))
    if "bootstrap-server" in given:
        return connect(given["bootstrap-server"], config)
    if given.get("include-fenced-brokers"):
        raise illegal_argument(
            "The option --include-fenced-brokers is only supported with --bootstrap-server option"
        )
    return connect(given["bootstrap-controller"], config)


def _print_id(asking: Asking, given: dict[str, Any]) -> None:
    print(f"Cluster ID: {_described(asking, given).cluster_id}")


def _print_endpoints(asking: Asking, given: dict[str, Any]) -> None:
    answer = _described(asking, given)
    is_of_brokers = "bootstrap-server" in given
    kind = "broker" if is_of_brokers else "controller"
    width = max((len(each.host) for each in answer.brokers), default=0)
    width = max(width, 9)
    heads = ["ID", "HOST", "PORT", "RACK", *(["STATE"] if is_of_brokers else []), "ENDPOINT_TYPE"]
    rows = [heads]
    for each in sorted(answer.brokers, key=lambda each: each.broker_id):
        state = ["fenced" if each.is_fenced else "unfenced"] if is_of_brokers else []
        rack = "null" if each.rack is None else each.rack
        rows.append([str(each.broker_id), each.host, str(each.port), rack, *state, kind])
    widths = [10, width, 10, 10, *([10] if is_of_brokers else []), 15]
    for row in rows:
        print(" ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)))


def _unregister(asking: Asking, given: dict[str, Any]) -> None:
    number = given["id"]
    _described(asking, given)  # refuses when they are not of the kind that was said
    answer = asking.any("unregisterBroker", UnregisterBrokerRequest(broker_id=number))
    if answer.error_code != Error.NONE:
        failure = refused(answer.error_code, answer.error_message)
        log(
            "ERROR",
            f"[AdminClient clientId=adminclient-1] Unregister broker request for broker ID "
            f"{number} failed: {failure.message}",
            "org.apache.kafka.clients.admin.KafkaAdminClient",
        )
        raise execution(failure)
    print(f"Broker {number} is no longer registered.")


def _described(asking: Asking, given: dict[str, Any]) -> Any:
    is_of_brokers = "bootstrap-server" in given
    request = DescribeClusterRequest(
        endpoint_type=_BROKERS if is_of_brokers else _CONTROLLERS,
        include_fenced_brokers=bool(given.get("include-fenced-brokers")),
    )
    answer = asking.any("describeCluster", request)
    if answer.error_code != Error.NONE:
        raise execution(refused(answer.error_code, answer.error_message))
    return answer


_ACTS = {
    "cluster-id": _print_id,
    "list-endpoints": _print_endpoints,
    "unregister": _unregister,
}
