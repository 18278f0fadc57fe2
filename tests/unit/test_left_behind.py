"""A socket that kafka-python drops is no failure of the test it is found in; one of ours is."""

from __future__ import annotations

import gc
import socket
import ssl
import warnings

import pytest
from kafka.net import selector
from kafka.net.inet import KafkaNetSocket

from tests.left_behind import name_the_sockets_of

ADDRESS = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)


def test_a_socket_of_kafka_python_is_left_in_peace() -> None:
    KafkaNetSocket().socket(*ADDRESS)
    gc.collect()


def test_so_is_what_its_loop_wakes_itself_by() -> None:
    one, other = selector.socket.socketpair()
    one.send(b"x")
    assert other.recv(1) == b"x"
    del one, other
    gc.collect()


def test_so_is_one_within_tls() -> None:
    context = name_the_sockets_of(ssl.create_default_context())
    context.wrap_socket(socket.socket(*ADDRESS), server_hostname="localhost")
    gc.collect()


@pytest.mark.filterwarnings("always:unclosed <socket:ResourceWarning")
def test_anybody_elses_is_told() -> None:
    with warnings.catch_warnings(record=True) as told:
        socket.socket(*ADDRESS)
        gc.collect()
    assert ["unclosed <socket.socket" in str(each.message) for each in told] == [True]
