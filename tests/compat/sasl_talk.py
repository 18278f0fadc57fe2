"""What is said to a listener that has its clients log in, byte by byte, and what is heard.

Owns the conversations, and a client that says whatever it is told to say.
"""

from __future__ import annotations

import socket
import struct
from typing import Any

from kafkalite.client.wire import decode_response, request_frame
from kafkalite.protocol.messages import (
    ApiVersionsRequest,
    DescribeConfigsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)

PASSWORD = "hunter2"
DELAY_MS = 300


class Raw:
    """One connection: says whatever a test has it say, and takes down what it is told."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 5)
        self.heard: list[Any] = []
        self.nonce = ""

    def ask(self, request: Any, version: int) -> Raw:
        self.say(request_frame(request, version, 1, "raw"), request.API_KEY, version)
        return self

    def say(self, frame: bytes, key: int | None = None, version: int = 0) -> Raw:
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
            reply = self._reply()
        except (ConnectionError, EOFError):
            self.heard.append("closed")
            return self
        except TimeoutError:
            self.heard.append("silent")
            return self
        if key is None:
            self.heard.append(self._without_nonce(reply))
        else:
            self.heard.append(self._plain(decode_response(reply, key, version)))
        return self

    def _reply(self) -> bytes:
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def _plain(self, response: Any) -> Any:
        shown = {name: getattr(response, name) for name in response.__slots__}
        shown.pop("_unknown_tags", None)
        if "auth_bytes" in shown:
            shown["auth_bytes"] = self._without_nonce(bytes(shown["auth_bytes"]))
        if "api_keys" in shown:
            return {"error_code": shown["error_code"], "is_told": bool(shown["api_keys"])}
        return repr(shown)

    def _without_nonce(self, token: bytes) -> bytes:
        """The broker's part of it is chance."""
        if not token.startswith(b"r="):
            return b"v=..." if token.startswith(b"v=") else token
        nonce, _, rest = token.partition(b",")
        self.nonce = nonce[2:].decode()
        return nonce[: len("r=abc")] + b"...," + rest

    def close(self) -> list[Any]:
        self.heard.append("open" if self._is_open() else "closed")
        self._socket.close()
        return self.heard

    def _is_open(self) -> bool:
        self._socket.settimeout(DELAY_MS / 1_000 + 0.5)
        try:
            return bool(self._socket.recv(1))
        except TimeoutError:
            return True
        except ConnectionError:
            return False


def versions(version: int = 3, name: str = "a") -> tuple[Any, int]:
    return ApiVersionsRequest(client_software_name=name, client_software_version="1"), version


def shake(mechanism: str, version: int = 1) -> tuple[Any, int]:
    return SaslHandshakeRequest(mechanism=mechanism), version


def token(data: bytes, version: int = 2) -> tuple[Any, int]:
    return SaslAuthenticateRequest(auth_bytes=data), version


RIGHT = b"\0alice\0" + PASSWORD.encode()
METADATA = (MetadataRequest(topics=[]), 12)
CONFIGS = (DescribeConfigsRequest(resources=[]), 1)
FIRST = b"n,,n=alice,r=abc"
# What is said, request by request; bytes are sent as they are.
CONVERSATIONS: dict[str, list[Any]] = {
    "plain": [versions(), shake("PLAIN"), token(RIGHT), token(RIGHT), shake("PLAIN")],
    "plain, raw": [shake("PLAIN", 0), RIGHT],
    "plain, versions 0": [versions(0), shake("PLAIN"), token(RIGHT, 0), token(RIGHT, 0)],
    "plain, wrong": [shake("PLAIN"), token(b"\0alice\0no")],
    "plain, wrong, raw": [shake("PLAIN", 0), b"\0alice\0no"],
    "plain, two parts": [shake("PLAIN"), token(b"alice\0no")],
    "plain, four parts": [shake("PLAIN"), token(b"\0alice\0no\0")],
    "plain, nobody": [shake("PLAIN"), token(b"\0\0no")],
    "plain, no password": [shake("PLAIN"), token(b"\0alice\0")],
    "plain, another id": [shake("PLAIN"), token(b"root" + RIGHT)],
    "plain, empty": [shake("PLAIN"), token(b"")],
    "plain, no text": [shake("PLAIN"), token(b"\0\xff\xfe\0\xff")],
    "no mechanism": [shake("GSSAPI")],
    "no mechanism, 0": [shake("GSSAPI", 0)],
    "no mechanism, empty": [shake("")],
    "lower case": [shake("plain")],
    "token first": [token(RIGHT)],
    "metadata first": [METADATA],
    "metadata second": [versions(), METADATA],
    "metadata for a token": [shake("PLAIN"), METADATA],
    "configs for a token": [shake("PLAIN"), CONFIGS],
    "versions for a token": [shake("PLAIN"), versions()],
    "handshake for a token": [shake("PLAIN"), shake("PLAIN")],
    "versions twice": [versions(), versions()],
    "unknown versions, then known": [versions(3, "no name!"), versions(), shake("PLAIN")],
    "gssapi at once": [b"\x60\x82\x01\x02 a token"],
    "nothing at once": [b""],
    "http": [b"GET / HTTP/1.1"],
    "too large": [b"x" * 600_000],
    "raw rubbish": [shake("PLAIN", 0), b"\xff" * 40],
    "scram, first": [shake("SCRAM-SHA-256"), token(FIRST)],
    "scram, first, raw": [shake("SCRAM-SHA-256", 0), FIRST],
    "scram, binding": [shake("SCRAM-SHA-256"), token(b"y,,n=alice,r=abc")],
    "scram, channel": [shake("SCRAM-SHA-512"), token(b"p=tls-unique,,n=alice,r=abc")],
    "scram, another id": [shake("SCRAM-SHA-256"), token(b"n,a=root,n=alice,r=abc")],
    "scram, own id": [shake("SCRAM-SHA-256"), token(b"n,a=alice,n=alice,r=abc")],
    "scram, reserved": [shake("SCRAM-SHA-256"), token(b"n,,m=x,n=alice,r=abc")],
    "scram, extension": [shake("SCRAM-SHA-256"), token(b"n,,n=alice,r=abc,x=1")],
    "scram, delegation": [shake("SCRAM-SHA-256"), token(FIRST + b",tokenauth=true")],
    "scram, no text": [shake("SCRAM-SHA-256"), token("n,,n=älice,r=abc".encode())],
    "scram, bad name": [shake("SCRAM-SHA-256"), token(b"n,,n=a=lice,r=abc")],
    "scram, empty": [shake("SCRAM-SHA-256"), token(b"")],
    "scram, empty, raw": [shake("SCRAM-SHA-256", 0), b""],
    "scram, no last": [shake("SCRAM-SHA-256"), token(FIRST), token(b"rubbish")],
    "scram, other nonce": [
        shake("SCRAM-SHA-256"), token(FIRST), token(b"c=biws,r=abc,p=" + b"A" * 43 + b"=")
    ],
    "scram, wrong proof": [
        shake("SCRAM-SHA-256"), token(FIRST), token(b"c=biws,r=NONCE,p=" + b"A" * 43 + b"=")
    ],
    "scram, doubled nonce": [
        shake("SCRAM-SHA-256"), token(FIRST), token(b"c=biws,r=abcNONCE,p=" + b"A" * 43 + b"=")
    ],
    "scram, short proof": [
        shake("SCRAM-SHA-256"), token(FIRST), token(b"c=biws,r=NONCE,p=AAAA")
    ],
    "again": [shake("PLAIN"), token(RIGHT), shake("PLAIN"), token(RIGHT), METADATA[:0]],
    "again, another mechanism": [
        shake("PLAIN"), token(RIGHT), shake("SCRAM-SHA-256"), token(FIRST)
    ],
    "again, unknown mechanism": [shake("PLAIN"), token(RIGHT), shake("GSSAPI")],
    "again, wrong": [shake("PLAIN"), token(RIGHT), shake("PLAIN"), token(b"\0alice\0no")],
    "again, raw": [shake("PLAIN"), token(RIGHT), shake("PLAIN", 0), RIGHT],
    "again too soon": [
        shake("PLAIN"), token(RIGHT), shake("PLAIN"), token(RIGHT), shake("PLAIN")
    ],
}  # fmt: skip


def converse(port: int, said: list[Any]) -> list[Any]:
    raw = Raw(port)
    for each in said:
        if isinstance(each, bytes):
            raw.say(each)
        elif each:
            request, version = each
            if isinstance(request, SaslAuthenticateRequest):
                data = bytes(request.auth_bytes).replace(b"NONCE", raw.nonce.encode())
                request = SaslAuthenticateRequest(auth_bytes=data)
            raw.ask(request, version)
    return raw.close()
