"""The sockets that kafka-python leaves to the collector, told from everybody else's.

A producer or consumer that is closed while it connects or writes drops its socket unclosed, about
once in five hundred times. The collector then finds it in whatever test comes next. A socket of
ours that is left is still an error: that is why these have a name of their own.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any

from kafka.net import selector
from kafka.net.inet import KafkaNetSocket
from kafka.net.transport import KafkaSSLTransport


class KafkaPythonSocket(socket.socket):
    """What pyproject.toml's filter of warnings names."""


def name_the_sockets_of_kafka_python() -> None:
    def made(_: KafkaNetSocket, family: int, kind: int, protocol: int) -> socket.socket:
        return KafkaPythonSocket(family, kind, protocol)

    build = KafkaSSLTransport._build_ssl_context
    KafkaSSLTransport._build_ssl_context = staticmethod(
        lambda config: name_the_sockets_of(build(config))
    )
    KafkaNetSocket.socket = made
    selector.socket = _Sockets()


class _Sockets:
    """The module `socket`, as kafka-python's loop has it, which wakes itself by a pair."""

    def __getattr__(self, name: str) -> Any:
        return getattr(socket, name)

    def socketpair(self) -> tuple[KafkaPythonSocket, KafkaPythonSocket]:
        one, other = socket.socketpair()
        return KafkaPythonSocket(fileno=one.detach()), KafkaPythonSocket(fileno=other.detach())


class TlsKafkaPythonSocket(ssl.SSLSocket):
    """The same within TLS."""


def name_the_sockets_of(context: ssl.SSLContext) -> ssl.SSLContext:
    context.sslsocket_class = TlsKafkaPythonSocket
    return context
