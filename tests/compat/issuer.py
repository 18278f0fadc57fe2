"""An issuer of tokens on loopback: its set of keys, and tokens for who asks with a grant."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64decode
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.unit.security.signing import claims, key_set, public, rsa_key, signed


@dataclass(frozen=True)
class In:
    """So many seconds from when a token is made."""

    seconds: float


AUDIENCE, ISSUER = "kafka", "https://issuer.test"


def token(key: str = "issuer", key_id: str = "issuer", **said: Any) -> str:
    """One that is taken, but for what is said otherwise; None leaves a claim out."""
    usual = {"aud": AUDIENCE, "iss": ISSUER}
    return signed(
        claims(int(time.time()), **{**usual, **at_moment(said)}), rsa_key(key), key_id
    )


def at_moment(said: dict[str, Any]) -> dict[str, Any]:
    """Claims with the moments that they mean now."""
    now_s = int(time.time())
    return {
        name: now_s + value.seconds if isinstance(value, In) else value
        for name, value in said.items()
    }


class Issuer:
    """`/keys`, and `/token` for the grant of client credentials: a client is whom it names, and
    its secret says what kind of token it gets."""

    def __init__(self) -> None:
        for name in ("issuer", "stranger"):
            rsa_key(name)  # before another thread asks for it, which would make another one
        self.kinds: dict[str, dict[str, Any]] = {"right": {}}
        outer = self

        class Asked(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._say(key_set(public(rsa_key("issuer"), "issuer")))

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                basic = b64decode(self.headers["Authorization"].split()[1]).decode()
                name, _, secret = basic.partition(":")
                said = {"sub": name, **outer.kinds[secret]}
                bearer = said.pop("token", None) or token(**said)
                body = {"access_token": bearer, "token_type": "Bearer", "expires_in": 3600}
                self._say(json.dumps(body).encode())

            def _say(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
