"""The voters that `kafka-storage format` gives a quorum whose voters are in its log (KIP-853).

Owns how they are written as words, `id@host:port:directory`, and as control records.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkalite.log.names import parse_uuid
from kafkalite.protocol import codec
from kafkalite.protocol.messages import KRaftVersionRecord, VotersRecord
from kafkalite.records.control import ControlRecord, ControlType
from kafkalite.tools.failures import Failure, illegal_argument, no_number
from kafkalite.tools.java_numbers import whole

_NEWEST_KRAFT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Voter:
    directory_id: bytes
    host: str
    port: int


def parse_voters(text: str) -> dict[int, Voter]:
    """By node id, in the order of these."""
    found: dict[int, Voter] = {}
    for word in filter(None, text.split(",")):
        node_id, voter = _voter(word.strip())
        if node_id in found:
            raise illegal_argument(f"Node id {node_id} was specified more than once.")
        found[node_id] = voter
    return dict(sorted(found.items()))


def _voter(word: str) -> tuple[int, Voter]:
    id_text, sign, rest = word.partition("@")
    if not sign:
        raise illegal_argument("No @ found in dynamic voter string.")
    node_id = _number(id_text, "node id")
    host, sign, rest = _host(rest)
    if not sign:
        raise illegal_argument("No colon following hostname could be found.")
    port_text, sign, directory = rest.partition(":")
    if not sign:
        raise illegal_argument("No colon following port could be found.")
    port = _number(port_text, "port")
    try:
        return node_id, Voter(parse_uuid(directory), host, port)
    except ValueError as error:
        raise _unparsed("directory ID", illegal_argument(str(error))) from None


def _host(rest: str) -> tuple[str, str, str]:
    """The host, which may be an address of IPv6 in brackets."""
    if not rest.startswith("["):
        return rest.partition(":")
    host, sign, behind = rest[1:].partition("]")
    if not sign:
        raise illegal_argument("Hostname began with left bracket, but no right bracket was found.")
    return host, behind[:1], behind[1:]


def _number(text: str, name: str) -> int:
    try:
        return whole(text)
    except ValueError:
        raise _unparsed(name, no_number(text)) from None


def _unparsed(name: str, cause: Failure) -> Failure:
    failure = illegal_argument(f"Failed to parse {name} in dynamic voter string.")
    failure.cause = cause
    return failure


def quorum_records(
    voters: dict[int, Voter], kraft_version: int, listener: str
) -> list[ControlRecord]:
    """What the first snapshot says of the quorum."""
    version = KRaftVersionRecord(version=0, k_raft_version=kraft_version)
    message = VotersRecord(
        version=0, voters=[_record(each, voters[each], listener) for each in voters]
    )
    return [
        (ControlType.KRAFT_VERSION, codec.encode(version, 0)),
        (ControlType.KRAFT_VOTERS, codec.encode(message, 0)),
    ]


def _record(node_id: int, voter: Voter, listener: str) -> VotersRecord.Voter:
    return VotersRecord.Voter(
        voter_id=node_id,
        voter_directory_id=voter.directory_id,
        endpoints=[VotersRecord.Endpoint(name=listener, host=voter.host, port=voter.port)],
        k_raft_version_feature=VotersRecord.KRaftVersionFeature(
            min_supported_version=0, max_supported_version=_NEWEST_KRAFT_VERSION
        ),
    )
