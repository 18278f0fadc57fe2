"""The connection of a tool to its cluster: addresses and settings as given, failures as Java's."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from contextlib import closing
from typing import Any

from kafkalite.client.addresses import HIGHEST_PORT, Address
from kafkalite.client.admin import GROUP, TIMEOUT_S, Admin
from kafkalite.client.cluster import (
    ClientFailed,
    Cluster,
    NotLetIn,
    TryAgain,
    Unreachable,
    Unserved,
)
from kafkalite.protocol.errors import Error
from kafkalite.security.client_login import Security
from kafkalite.tools.client_settings import Number, numbers, security_in, settings_of
from kafkalite.tools.failures import (
    ERRORS,
    Failure,
    TerseFailure,
    kafka,
    refused,
    timed_out,
    wrong_setting,
)
from kafkalite.tools.running import log, tell, tell_failure

CLIENT_ID = "adminclient-1"
BOOTSTRAP = re.compile(r"[^,\s]+:\d+(,[^,\s]+:\d+)*,*")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_REQUEST = Number("request.timeout.ms", 30_000, is_long=False)
_CALL = Number("default.api.timeout.ms", int(1000 * TIMEOUT_S), is_long=False)
_SEPARATOR = re.compile(r"\s*,\s*")
_URL = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
_NO_ADMIN = "Failed to create new KafkaAdminClient"
NETWORK = "org.apache.kafka.clients.NetworkClient"


class Asking:
    """Each question with the name that Apache Kafka's admin client has for it."""

    def __init__(
        self, bootstrap: list[Address], client_id: str, timeout_s: float, security: Security
    ) -> None:
        self._bootstrap, self.client_id = bootstrap, client_id
        self.timeout_s = timeout_s
        self._cluster = Cluster(bootstrap, client_id=client_id, security=security)
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
        except NotLetIn as failure:
            raise not_let_in(failure, self._bootstrap, self._client) from failure
        except ClientFailed as failure:
            raise kafka(str(failure)) from failure

    def _warn(self, failure: Exception) -> None:
        """Nobody there, again."""
        if isinstance(failure, Unreachable):
            warn_of_nobody(self._bootstrap, self._client)

    @property
    def _client(self) -> str:
        return f"AdminClient clientId={self.client_id}"


def warn_of_nobody(bootstrap: list[Address], client: str) -> None:
    for number, (host, port) in enumerate(bootstrap, start=1):
        log(
            "WARN",
            f"[{client}] Connection to node -{number} ({_resolved(host)}:{port}) could not be "
            "established. Node may not be available.",
            NETWORK,
        )


def not_let_in(failure: NotLetIn, bootstrap: list[Address], client: str) -> Failure:
    """What a client that has to be somebody raises, after a line of its log."""
    if failure.code is Error.SASL_AUTHENTICATION_FAILED:
        found = refused(failure.code, failure.told)
    else:
        cause = Failure("javax.net.ssl.SSLHandshakeException", failure.told)
        java = f"{ERRORS}SslAuthenticationException"
        found = Failure(java, "SSL handshake failed", cause)
    host, port = bootstrap[0]
    log(
        "ERROR",
        f"[{client}] Connection to node -1 ({_resolved(host)}:{port}) failed authentication due "
        f"to: {found.message}",
        NETWORK,
    )
    return found


def connect(
    bootstrap: str,
    config: str | None = None,
    client_id: str = CLIENT_ID,
    timeout_s: float | None = None,
) -> Asking:
    """bootstrap: HOST:PORT, several with commas; config: a file of the admin client's settings;
    timeout_s: of each question, other than these say."""
    settings = settings_of(config)
    client_id = settings.get("client.id", "").strip() or client_id
    times = numbers(settings, (_REQUEST, _CALL))
    found = known_addresses(bootstrap)
    if timeout_s is None:
        is_too_short = times[_CALL.name] < times[_REQUEST.name]
        if is_too_short and _CALL.name in settings:
            raise kafka(_NO_ADMIN, wrong_setting(
                f"The specified value of {_CALL.name} must be no smaller than the value of "
                f"{_REQUEST.name}."
            ))  # fmt: skip
        timeout_s = max(times.values()) / 1000
    return Asking(found, client_id, timeout_s, security_in(settings, _NO_ADMIN))


def known_addresses(bootstrap: str, told: str = _NO_ADMIN) -> list[Address]:
    """Those whose hosts can be found; the failure of a client when there is none."""
    if not bootstrap.strip() and told == _NO_ADMIN:
        raise not_made("You must set either bootstrap.servers or bootstrap.controllers", told)
    texts = list(dict.fromkeys(_SEPARATOR.split(bootstrap.strip())))
    if not all(texts):
        raise wrong_setting("Configuration 'bootstrap.servers' values must not be empty.")
    parts = [(text, _address(text, told)) for text in texts]
    found = [address for text, address in parts if _is_known(text, address)]
    if not found:
        raise not_made("No resolvable bootstrap urls given in bootstrap.servers", told)
    return found


def _address(text: str, told: str) -> Address:
    found = _URL.fullmatch(text)
    if found is None:
        raise not_made(f"Invalid url in bootstrap.servers: {text}", told)
    if int(found[2]) > HIGHEST_PORT:
        raise not_made(f"Invalid port in bootstrap.servers: {text}", told)
    return found[1] or "localhost", int(found[2])


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
    except (OSError, UnicodeError):  # a name that no resolver can be asked for
        log(
            "WARN",
            f"Couldn't resolve server {text} from bootstrap.servers as DNS resolution failed for "
            f"{address[0]}",
            "org.apache.kafka.clients.ClientUtils",
        )
        return False
    return True


def ask(
    connected: Callable[[], Asking],
    act: Callable[[Asking], None],
    told: Callable[[Failure], int] = tell_failure,
) -> int:
    """Has a cluster asked by what a tool does, and tells what goes wrong: the exit code."""
    try:
        with closing(connected()) as asking:
            act(asking)
    except TerseFailure as wrong:
        tell(str(wrong))
        return 1
    except Failure as failure:
        return told(failure)
    return 0
