"""A broker that speaks as one of another release does, as far as versions go.

Owns what its clients are told of them, and that they end there. What a request of a version that is
served means is for the broker. Not for its own cluster: other brokers and the helpers of tests are
answered as ever. Invariant: no client is answered what its release would not have been asked.
"""

from __future__ import annotations

import struct
from typing import Any

from kafkalite.env.later import Later
from kafkalite.handlers.call import CloseConnection
from kafkalite.protocol import codec, headers
from kafkalite.protocol.errors import Error, MalformedFrame
from kafkalite.protocol.messages import ApiVersionsResponse, ResponseHeader
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.request_header import HEAD_BYTES, read_header
from kafkalite.server.terms import Answer, Outcome, Reply, Service, Throttled, reply_in
from kafkalite.testing.profiles import API_VERSIONS_KEY, Profile
from kafkalite.testing.understanding import is_of_the_cluster

SIZE_BYTES = 4

UPDATE_FEATURES_KEY = 57
_API_VERSIONS = API_VERSIONS_KEY.to_bytes(2)  # as a frame begins
_head_at = struct.Struct(">hhih").unpack_from  # key, version, correlation id, client id's length


class Profiled:
    """A Service over another one."""

    def __init__(self, service: Service, profile: Profile) -> None:
        self._service = service
        self._profile = profile

    def refuse(self, head: memoryview, size: int, connection: ConnectionInfo) -> bytes:
        return self._service.refuse(head, size, connection)

    def expired(self, reason: str, connection: ConnectionInfo) -> None:
        self._service.expired(reason, connection)

    def answer(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        if not self.knows(frame):
            return self._beyond(frame)
        answer = self._service.answer(frame, connection)
        if frame[:2] == _API_VERSIONS and not _is_of_the_cluster(frame):
            return self._told(frame, answer)
        return answer

    def knows(self, frame: memoryview) -> bool:
        """Whether a broker of that release has this API in this version; who is of the cluster is
        known whatever it asks, and what is no request is for the broker to say."""
        if len(frame) < HEAD_BYTES:
            return True
        key, version, *_ = _head_at(frame)
        is_served = version in self._profile.answered.get(key, ())
        return is_served or _is_of_the_cluster(frame)

    def _beyond(self, frame: memoryview) -> Answer:
        key, version, correlation_id, _ = _head_at(frame)
        if key == API_VERSIONS_KEY:
            return self._unknown_version(correlation_id)
        return CloseConnection(
            f"a broker of Apache Kafka {self._profile.release} knows no version {version} of this"
        )

    def _unknown_version(self, correlation_id: int) -> Reply:
        """In version 0, so that the client can ask again."""
        response = ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION)
        if self._profile.names_own_versions:
            versions = self._profile.listed[API_VERSIONS_KEY]
            response.api_keys = [_entry(API_VERSIONS_KEY, versions)]
        return _reply(correlation_id, 0, response)

    def _told(self, frame: memoryview, answer: Answer) -> Answer:
        _, version, correlation_id, _ = _head_at(frame)
        if isinstance(answer, Later):
            return answer.map(lambda outcome: self._limited(version, correlation_id, outcome))
        return None if answer is None else self._limited(version, correlation_id, answer)

    def _limited(self, version: int, correlation_id: int, outcome: Outcome) -> Outcome:
        """What is served here and by that release, too."""
        reply = reply_in(outcome)
        if not isinstance(reply, list) or not reply:
            return outcome
        whole = b"".join(bytes(part) for part in reply)  # type: ignore[arg-type]
        _, start = codec.decode_prefix(ResponseHeader, 0, whole, SIZE_BYTES)
        response = codec.decode(ApiVersionsResponse, version, whole, start)
        response.api_keys = [
            _entry(each.api_key, both)
            for each in response.api_keys
            if (both := _both(each, self._profile.listed.get(each.api_key, range(0))))
        ]
        self._limit_features(response)
        reply = _reply(correlation_id, version, response)
        return Throttled(reply, outcome.wait_ms) if isinstance(outcome, Throttled) else reply

    def _limit_features(self, response: ApiVersionsResponse) -> None:
        known, listed = self._profile.features, self._profile.listed
        if not known:
            # Of a ZooKeeper's node that nobody has changed, or as where there is no such field.
            response.finalized_features_epoch = 0 if UPDATE_FEATURES_KEY in listed else -1
        response.supported_features = [
            each for each in response.supported_features if each.name in known
        ]
        response.finalized_features = [
            each for each in response.finalized_features if each.name in known
        ]
        for each in response.supported_features:
            each.max_version = min(each.max_version, known[each.name][-1])
        for level in response.finalized_features:
            highest = known[level.name][-1]
            level.min_version_level = min(level.min_version_level, highest)
            level.max_version_level = min(level.max_version_level, highest)


def _is_of_the_cluster(frame: memoryview) -> bool:
    """Also of a client id that is none: what is wrong with it is for the broker to say."""
    try:
        client_id = read_header(frame, False)[3]
    except MalformedFrame:
        return True
    return is_of_the_cluster(client_id)


def _both(served: ApiVersionsResponse.ApiKey, listed: range) -> range:
    return range(
        max(served.min_version, listed.start), min(served.max_version + 1, listed.stop)
    )


def _entry(key: int, versions: range) -> ApiVersionsResponse.ApiKey:
    return ApiVersionsResponse.ApiKey(
        api_key=key, min_version=versions.start, max_version=versions.stop - 1
    )


def _reply(correlation_id: int, version: int, response: Any) -> Reply:
    body = headers.encode_response_header(API_VERSIONS_KEY, version, correlation_id)
    body += codec.encode(response, version)
    return [len(body).to_bytes(SIZE_BYTES, "big"), body]
