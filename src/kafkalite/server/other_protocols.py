"""Peers that speak something else on a Kafka port: recognised by their first bytes.

Owns what is said to them. Their first bytes, read as the size of a frame, are more than any frame
may have: the famous request size 1195725856 is `GET `.
"""

from __future__ import annotations

from kafkalite.env.dataclasses import dataclass

HTTP_METHODS = (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"PRI ")
TLS_HANDSHAKE = b"\x16\x03"
# A fatal alert: handshake failure. The peer's TLS library then reports that instead of a timeout.
TLS_ALERT = bytes((0x15, 3, 1, 0, 2, 2, 40))

_HTTP_TEXT = b"""\
This is a Kafka port: it speaks the Kafka protocol, not HTTP.
Use a Kafka client with bootstrap.servers set to this address.
"""
HTTP_REPLY = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_HTTP_TEXT), _HTTP_TEXT)
)


@dataclass(slots=True, frozen=True)
class Foreign:
    """A protocol that is not Kafka's, what to answer in it, and what to tell our own operator."""

    name: str
    reply: bytes
    hint: str


HTTP = Foreign("HTTP", HTTP_REPLY, "a browser, health check or proxy points at the Kafka port")
TLS = Foreign("TLS", TLS_ALERT, "this listener is plaintext: set security.protocol=PLAINTEXT there")


def recognise(head: bytes | memoryview) -> Foreign | None:
    """The protocol that the first bytes belong to, if it is one that is known."""
    start = bytes(head[:4])
    if start in HTTP_METHODS:
        return HTTP
    if start[:2] == TLS_HANDSHAKE:
        return TLS
    return None
