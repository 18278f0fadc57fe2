"""Other protocols on a Kafka port."""

import pytest

from kafkalite.server.other_protocols import HTTP, TLS, recognise


@pytest.mark.parametrize(
    "line", [b"GET / HTTP/1.1", b"POST /x", b"HEAD /", b"OPTIONS *", b"PRI * HTTP/2.0"]
)
def test_http_is_recognised_by_its_method(line):
    assert recognise(line) is HTTP


def test_the_famous_request_size_is_http():
    assert recognise((1195725856).to_bytes(4, "big")) is HTTP


def test_the_http_reply_is_whole():
    head, _, body = HTTP.reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert f"Content-Length: {len(body)}".encode() in head


def test_tls_is_recognised_by_its_first_record():
    assert recognise(bytes.fromhex("1603010200")) is TLS
    assert TLS.reply[0] == 21


@pytest.mark.parametrize("head", [b"\x00\x00\x00\x10", b"\xff\xff\xff\xff", b"SSH-", b"\x17\x03"])
def test_other_bytes_are_nothing_known(head):
    assert recognise(head) is None
