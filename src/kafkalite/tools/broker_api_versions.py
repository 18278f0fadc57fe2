"""`kafka-broker-api-versions`: which versions of which requests each broker serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkalite.protocol import files, spec
from kafkalite.protocol.messages import ApiVersionsRequest, DescribeClusterRequest
from kafkalite.protocol.spec import Api
from kafkalite.tools.asking import Asking, connect
from kafkalite.tools.failures import Failure, WrongUse
from kafkalite.tools.options import VERSION, Given, Option
from kafkalite.tools.running import begin, tell_failure, tell_use

_ABOUT = "This tool helps to retrieve broker version information."

OPTIONS = [
    Option(
        "bootstrap-server", "REQUIRED: The server to connect to.",
        "server(s) to use for bootstrapping",
    ),
    Option(
        "command-config", "A property file containing configs to be passed to Admin Client.",
        "command config property file",
    ),
]  # fmt: skip


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        if (ended := begin(given, words, _ABOUT)) is not None:
            return ended
        given.require("bootstrap-server")
        asking = connect(given.one("bootstrap-server"), given.one("command-config"))
        try:
            _print_all(asking)
        finally:
            asking.close()
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Failure as failure:
        return tell_failure(failure.cause or failure)
    return 0


def _print_all(asking: Asking) -> None:
    brokers = asking.any("listNodes", DescribeClusterRequest()).brokers
    known = [api for api in map(spec.api, sorted(files.api_files())) if "broker" in api.listeners]
    for each in brokers:
        request = ApiVersionsRequest(
            client_software_name="kafkalite", client_software_version=VERSION
        )
        answer = asking.broker("apiVersions", each.broker_id, request)
        rack = "null" if each.rack is None else each.rack
        fenced = str(each.is_fenced).lower()
        print(
            f"{each.host}:{each.port} (id: {each.broker_id} rack: {rack} isFenced: {fenced}) -> ("
        )
        print(",\n".join(f"\t{line}" for line in _lines(known, answer)))
        print(")")


def _lines(known: list[Api], answer: Any) -> Iterator[str]:
    served = {each.api_key: each for each in answer.api_keys}
    apis = {api.key: api for api in known}
    for key in sorted(served.keys() | apis.keys()):
        name = apis[key].name if key in apis else "UNKNOWN"
        if key not in served:
            yield f"{name}({key}): UNSUPPORTED"
            continue
        first, last = served[key].min_version, served[key].max_version
        versions = str(first) if first == last else f"{first} to {last}"
        usable = f" [{_usable(apis[key], first, last)}]" if key in apis else ""
        yield f"{name}({key}): {versions}{usable}"


def _usable(api: Api, first: int, last: int) -> str:
    """The version that a client of Apache Kafka 4.3 and the broker both know."""
    if last < api.stable[0]:
        return "unusable: node too old"
    if first > api.stable[-1]:
        return "unusable: node too new"
    return f"usable: {min(last, api.stable[-1])}"
