"""The connection of a tool to its cluster: addresses and settings as given, failures as Java's.

Security comes later: a configuration that asks for it is refused.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kafkalite.client.addresses import Address, addresses
from kafkalite.client.admin import GROUP, TIMEOUT_S, Admin
from kafkalite.client.cluster import ClientFailed, Cluster, TryAgain, Unreachable, Unserved
from kafkalite.protocol.errors import Error
from kafkalite.tools.failures import Failure, kafka, refused, timed_out, wrong_setting
from kafkalite.tools.running import log, tell

CLIENT_ID = "adminclient-1"
BOOTSTRAP = re.compile(r"[^,\s]+:\d+(,[^,\s]+:\d+)*")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_NO_ADMIN = "Failed to create new KafkaAdminClient"
NETWORK = "org.apache.kafka.clients.NetworkClient"


class Asking:
    """Each question with the name that Apache Kafka's admin client has for it."""

    def __init__(self, bootstrap: list[Address], client_id: str, timeout_s: float) -> None:
        self._bootstrap, self.client_id = bootstrap, client_id
        self.timeout_s = timeout_s
        self._cluster = Cluster(bootstrap, client_id=client_id)
        self._admin = Admin(self._cluster, timeout_s=timeout_s, tell=self._warn)

    def any(self, call: str, request: Any) -> Any:
        return self._asked(call, lambda: self._admin.ask(request))

    def controller(self, call: str, request: Any, codes: Callable[[Any], list[int]]) -> Any:
        return self._asked(call, lambda: self._admin.ask_controller(request, codes))

    def broker(self, call: str, node_id: int, request: Any) -> Any:
        return self._asked(call, lambda: self._admin.ask_broker(node_id, request))

    def coordinator(
        self, call: str, key: str, request: Any, codes: Callable[[Any], list[int]],
        kind: int = GROUP,
    ) -> Any:
        call = f"{call}(api=FIND_COORDINATOR)"
        return self._asked(call, lambda: self._admin.ask_coordinator(key, request, codes, kind))

    def coordinator_of(self, call: str, key: str, kind: int = GROUP) -> Any:
        call = f"{call}(api=FIND_COORDINATOR)"
        return self._asked(call, lambda: self._admin.coordinator(key, kind))

    def close(self) -> None:
        self._cluster.close()

    def _asked(self, call: str, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except (TryAgain, Unreachable) as failure:
            raise timed_out(call) from failure
        except Unserved as failure:
            why = f"The node does not support {_CAPITAL.sub('_', failure.api).upper()}"
            raise refused(Error.UNSUPPORTED_VERSION, why) from failure
        except ClientFailed as failure:
            raise kafka(str(failure)) from failure

    def _warn(self, failure: Exception) -> None:
        """Nobody there, again."""
        if isinstance(failure, Unreachable):
            warn_of_nobody(self._bootstrap, f"AdminClient clientId={self.client_id}")


def warn_of_nobody(bootstrap: list[Address], client: str) -> None:
    for number, (host, port) in enumerate(bootstrap, start=1):
        log(
            "WARN",
            f"[{client}] Connection to node -{number} ({_resolved(host)}:{port}) could not be "
            "established. Node may not be available.",
            NETWORK,
        )


def connect(
    bootstrap: str,
    config: str | None = None,
    client_id: str = CLIENT_ID,
    timeout_s: float | None = None,
) -> Asking:
    """bootstrap: HOST:PORT, several with commas; config: a file of the admin client's settings;
    timeout_s: of each question, other than these say."""
    settings = settings_of(config)
    client_id = settings.get("client.id", client_id)
    if timeout_s is None:
        timeout_s = float(settings.get("default.api.timeout.ms", 1000 * TIMEOUT_S)) / 1000
    return Asking(known_addresses(bootstrap), client_id, timeout_s)


def settings_of(config: str | None) -> dict[str, str]:
    """The settings of a client, read from a file."""
    if config is None:
        return {}
    from kafkalite.config.properties import parse_properties  # all of config comes along

    try:
        settings = parse_properties(Path(config).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Failure("java.nio.file.NoSuchFileException", config) from None
    except OSError as error:
        raise Failure("java.io.IOException", f"{config}: {error.strerror}") from error
    refuse_security(settings, config)
    return settings


def refuse_security(settings: Mapping[str, str], where: str) -> None:
    protocol = settings.get("security.protocol", "PLAINTEXT")
    if protocol != "PLAINTEXT":
        tell(
            f"{where}: security.protocol={protocol} is not there yet in kafkalite's tools: use "
            "PLAINTEXT, or Apache Kafka's own tools"
        )
        sys.exit(1)


def known_addresses(bootstrap: str, told: str = _NO_ADMIN) -> list[Address]:
    """Those whose hosts can be found; the failure of a client when there is none."""
    found: list[Address] = []
    for each in (part.strip() for part in bootstrap.split(",")):
        try:
            [address] = addresses(each) if each else [("", 0)]
        except ValueError:
            raise not_made(f"Invalid url in bootstrap.servers: {each}", told) from None
        if each and _is_known(each, address):
            found.append(address)
    if not found:
        raise not_made("No resolvable bootstrap urls given in bootstrap.servers", told)
    return found


def not_made(reason: str, told: str) -> Failure:
    return kafka(told, wrong_setting(reason))


def _resolved(host: str) -> str:
    """A host as Java shows it: its name, if it was given by name, and its address."""
    try:
        address = socket.gethostbyname(host)
    except OSError:
        address = "<unresolved>"
    return f"/{address}" if host == address else f"{host}/{address}"


def _is_known(text: str, address: Address) -> bool:
    try:
        socket.getaddrinfo(*address)
    except OSError:
        log(
            "WARN",
            f"Couldn't resolve server {text} from bootstrap.servers as DNS resolution failed for "
            f"{address[0]}",
            "org.apache.kafka.clients.ClientUtils",
        )
        return False
    return True
