"""`kafka-delegation-tokens`: what it asks for."""

from types import SimpleNamespace

import pytest

from kafkalite.protocol.messages import DescribeDelegationTokenResponse
from kafkalite.tools import delegation_tokens

WORDS = ["--bootstrap-server", "b:1", "--command-config", "c", "--describe"]


@pytest.fixture
def asked(monkeypatch):
    found = []

    def any_of(call, request):
        found.append(request)
        return DescribeDelegationTokenResponse()

    asking = SimpleNamespace(any=any_of, close=lambda: None)
    monkeypatch.setattr(delegation_tokens, "connect", lambda *where: asking)
    return found


def test_without_an_owner_none_is_asked_for(asked, capsys):
    """As Apache Kafka's tool does, which is told of no token then."""
    assert delegation_tokens.main(WORDS) == 0
    assert asked[0].owners == []
    assert "Total number of tokens : 0" in capsys.readouterr().out


def test_of_owners(asked):
    delegation_tokens.main([*WORDS, "--owner-principal", "User:a", "--owner-principal", "User:b"])
    assert [each.principal_name for each in asked[0].owners] == ["a", "b"]
