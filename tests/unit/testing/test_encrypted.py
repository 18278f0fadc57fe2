"""An EmbeddedKafka with TLS: its connections outlive what plain ones outlive."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

from bench.raw_client import frame_of
from kafkalite.protocol.messages import ApiVersionsRequest
from kafkalite.security.authority import pem_of
from kafkalite.testing.embedded import EmbeddedKafka
from tests.unit.security import keys

WAIT_S = 10


def test_a_connection_outlives_a_snapshot_and_keeps_its_user(tmp_path: Path) -> None:
    server, client = keys.server(), keys.client()
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": server.key_pem,
        "ssl.keystore.certificate.chain": server.chain_pem,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": pem_of(server.root),
        "ssl.client.auth": "required",
    }
    how = ssl.create_default_context(cadata=pem_of(server.root))
    (tmp_path / "client.pem").write_text(client.key_pem + client.chain_pem)
    how.load_cert_chain(tmp_path / "client.pem")
    with EmbeddedKafka(settings=settings) as kafka:
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        with (
            socket.create_connection((host, int(port)), WAIT_S) as link,
            how.wrap_socket(link, server_hostname="localhost") as encrypted,
        ):
            answers = []
            for number in range(3):
                encrypted.sendall(frame_of(ApiVersionsRequest(), 0, number))
                answers.append(encrypted.recv(65_536)[4:8])
                kafka.restore(kafka.snapshot())
            assert answers == [number.to_bytes(4, "big") for number in range(3)]
            run = kafka._run
            assert run is not None
            users = [each.info.principal for each in run.brokers[1].server._connections]
            assert users == ["User:CN=client,OU=people,O=tests"]
