"""What is written down of logins and of what is secret: that it was, and nothing of it."""

import json

import pytest

from kafkalite.client.wire import request_frame
from kafkalite.protocol import codec, headers
from kafkalite.protocol.messages import (
    AlterConfigsRequest,
    AlterUserScramCredentialsRequest,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    EnvelopeRequest,
    EnvelopeResponse,
    ExpireDelegationTokenRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafkalite.testing.recording.conversation import Conversation, Peer
from kafkalite.testing.recording.said import frame_of
from kafkalite.testing.recording.trace import from_json, to_json

SECRET = b"hunter2"
SHOWN = ("hunter2", "aHVudGVyMg", "hodW50ZXIy", "odW50ZXIy")  # also in base64, wherever it begins


@pytest.fixture
def conversation():
    return Conversation(1, Peer("127.0.0.1", 9092))


def asked(request, version):
    return request_frame(request, version, 1, "me")


def answered(response, version):
    key = type(response).SPEC.api.key
    return headers.encode_response_header(key, version, 1) + codec.encode(response, version)


def line(said):
    text = to_json(said)
    assert not any(each in text for each in SHOWN), text
    assert SECRET not in said.frame
    assert from_json(text).kind == said.kind
    return json.loads(text)


@pytest.mark.parametrize("version", range(3))
def test_tokens_are_left_out(conversation, version):
    for data in (b"\0alice\0" + SECRET, b"xx" + SECRET, SECRET):
        request = asked(SaslAuthenticateRequest(auth_bytes=data), version)
        assert line(conversation.request(request, 0))["fields"] == {"auth_bytes": ""}
        response = answered(SaslAuthenticateResponse(auth_bytes=data), version)
        assert line(conversation.response(response, 0))["fields"]["auth_bytes"] == ""


def test_of_one_that_is_cut_nothing_is_kept(conversation):
    request = asked(SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + SECRET), 2)
    said = line(conversation.request(request, 0, cut="it is too large"))
    assert (said["api"], said["frame"]) == ("SaslAuthenticate", "")


def test_of_one_that_the_end_has_cut_off_nothing_is_kept(conversation):
    frame = asked(SaslAuthenticateRequest(auth_bytes=SECRET + b"x" * 100), 2)
    start = len(frame).to_bytes(4, "big") + frame[:-50]
    assert line(conversation.unreadable("request", start, "it has ended", 0))["frame"] == ""
    conversation.request(asked(DescribeDelegationTokenRequest(), 3), 0)
    assert line(conversation.unreadable("response", b"....." + SECRET, "end", 0))["frame"] == ""


def test_of_others_that_the_end_has_cut_off_the_start_is_kept(conversation):
    frame = asked(MetadataRequest(), 9)
    conversation.request(frame, 0)
    start = len(frame).to_bytes(4, "big") + frame[:-2]
    for data in (start, b"", b"GET / HTTP/1.1", start[:5]):
        for kind in ("request", "response"):
            assert conversation.unreadable(kind, data, "it has ended", 0).frame == data


def test_of_a_token_that_the_end_has_cut_off_nothing_is_kept(conversation):
    conversation.request(asked(SaslHandshakeRequest(mechanism="PLAIN"), 0), 0)
    said = conversation.unreadable("request", b"\0\0\0\x20\0al\0" + SECRET, "it has ended", 0)
    assert line(said)["frame"] == ""


def test_a_token_that_begins_as_a_header_does_is_none(conversation):
    conversation.request(asked(SaslHandshakeRequest(mechanism="PLAIN"), 0), 0)
    token = "\0Aéuser\0".encode() + SECRET + b"x" * 200  # of a negative version, and a client's id
    assert headers.decode_request_header(token)[0].client_id is not None
    said = line(conversation.request(token, 0))
    assert {said[name] for name in ("api", "version", "correlation_id", "client_id")} == {None}


def test_tokens_without_a_header_are_left_out_and_what_follows_is_read(conversation):
    conversation.request(asked(SaslHandshakeRequest(mechanism="PLAIN"), 0), 0)
    conversation.response(answered(SaslHandshakeResponse(), 0), 0)
    for data in (b"\0alice\0" + SECRET, SECRET, b"n,,n=alice,r=" + SECRET):
        assert line(conversation.request(data, 0))["frame"] == ""
        assert line(conversation.response(b"r=" + SECRET, 0))["frame"] == ""
    assert line(conversation.request(asked(MetadataRequest(), 9), 0))["api"] == "Metadata"


def test_what_stands_for_a_password_is_left_out(conversation):
    upsertion = AlterUserScramCredentialsRequest.Upsertion(
        name="alice", mechanism=1, iterations=4096, salt=b"s", salted_password=SECRET
    )
    request = asked(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
    fields = line(conversation.request(request, 0))["fields"]
    assert [each["name"] for each in fields["upsertions"]] == ["alice"]


@pytest.mark.parametrize("version", range(4))
def test_proofs_of_delegation_tokens_are_left_out(conversation, version):
    made = CreateDelegationTokenResponse(token_id="an-id", hmac=SECRET)
    listed = DescribeDelegationTokenResponse(
        tokens=[DescribeDelegationTokenResponse.Token(token_id="an-id", hmac=SECRET)]
    )
    asked_for = [CreateDelegationTokenRequest(), DescribeDelegationTokenRequest(owners=None)]
    for request, response in zip(asked_for, (made, listed), strict=True):
        line(conversation.request(asked(request, version), 0))
        assert "an-id" in json.dumps(line(conversation.response(answered(response, version), 0)))
    if version < 3:
        for request in (RenewDelegationTokenRequest, ExpireDelegationTokenRequest):
            said = line(conversation.request(asked(request(hmac=SECRET), version), 0))
            assert said["fields"]["hmac"] == ""


SETTINGS = {
    "ssl.key.password": False, "listener.name.outside.ssl.keystore.key": False,
    "listener.name.outside.plain.sasl.jaas.config": False, "what.nobody.knows": False,
    "log.retention.ms": True, "listener.name.outside.ssl.keystore.location": True,
    "retention.ms": True, "consumer.session.timeout.ms": True, "interval.ms": True,
}  # fmt: skip


@pytest.mark.parametrize("kind", [AlterConfigsRequest, IncrementalAlterConfigsRequest])
def test_what_secret_settings_are_set_to_is_left_out(conversation, kind):
    configs = [kind.Config(name=name, value=SECRET.decode()) for name in SETTINGS]
    configs.append(kind.Config(name="ssl.key.password", value=None))
    resource = kind.Resource(resource_type=4, resource_name="1", configs=configs)
    said = conversation.request(asked(kind(resources=[resource]), 1), 0)
    [left] = said.message.resources
    shown = {each.name: each.value for each in left.configs[:-1]}
    assert shown == {
        name: SECRET.decode() if is_shown else "[hidden]" for name, is_shown in SETTINGS.items()
    }
    assert left.configs[-1].value is None
    left.configs = [each for each in left.configs if not SETTINGS[each.name]]
    said.frame = frame_of(said)
    line(said)


def test_levels_of_loggers_and_settings_that_are_none_stay_byte_for_byte(conversation):
    kind = IncrementalAlterConfigsRequest
    config = kind.Config(name="kafka.what", value=SECRET.decode())
    resource = kind.Resource(resource_type=8, resource_name="1", configs=[config])
    frame = asked(kind(resources=[resource]), 1)
    assert conversation.request(frame, 0).frame == frame


def test_of_settings_that_cannot_be_read_nothing_is_kept(conversation):
    frame = asked(AlterConfigsRequest(), 2) + b"?" + SECRET
    assert line(conversation.request(frame, 0))["frame"] == ""
    start = len(frame).to_bytes(4, "big") + frame[:-1]
    assert line(conversation.unreadable("request", start, "it has ended", 0))["frame"] == ""


def test_what_a_broker_forwards_and_what_it_copies_of_the_metadata_is_left_out(conversation):
    for request, response, version in (
        (
            EnvelopeRequest(request_data=SECRET, client_host_address=b"1234"),
            EnvelopeResponse(response_data=SECRET), 0,
        ),
        (FetchRequest(), fetched(topic_id=bytes(15) + b"\1"), 13),
        (FetchRequest(), fetched(topic="__cluster_metadata"), 12),
        (FetchSnapshotRequest(), snapshot(), 0),
    ):  # fmt: skip
        line(conversation.request(asked(request, version), 0))
        line(conversation.response(answered(response, version), 0))
    conversation.request(asked(FetchRequest(), 12), 0)
    frame = answered(fetched(topic="orders"), 12)
    assert conversation.response(frame, 0).frame == frame


def fetched(**names):
    partition = FetchResponse.Partition(records=SECRET)
    return FetchResponse(responses=[FetchResponse.Response(partitions=[partition], **names)])


def snapshot():
    kind = FetchSnapshotResponse
    partition = kind.Partition(snapshot_id=kind.SnapshotId(), unaligned_records=SECRET)
    return kind(topics=[kind.Topic(name="__cluster_metadata", partitions=[partition])])
