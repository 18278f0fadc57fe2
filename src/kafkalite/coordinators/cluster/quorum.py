"""Who may lead the metadata log: `quorum-state`, and the voters that the log itself names.

Owns kraft.version and the voters (KIP-853) as the control records of snapshots and of the log say
them. They are kept byte for byte, for it is by them that Apache Kafka's controllers find each other
again. Never holds an election: this controller is the only voter, or it does not start.
"""

from __future__ import annotations

import json
from typing import Any, Final

from kafkalite.coordinators.cluster.records import UnknownMetadata
from kafkalite.env.disk import Disk, read_whole, replace_file
from kafkalite.log.names import uuid_text
from kafkalite.protocol import codec
from kafkalite.protocol.messages import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from kafkalite.records.control import ControlRecord, ControlType, read_type
from kafkalite.records.record import Record

QUORUM_STATE: Final = "quorum-state"
NEWEST_KRAFT_VERSION: Final = 1
# An offset that is before every record: voters that only the formatting of a directory named.
NOWHERE: Final = -1
NO_DIRECTORY: Final = bytes(16)


class ForeignQuorum(Exception):
    """The metadata of a cluster whose controllers are others."""


class Quorum:
    """The voters of the metadata log, of whom this controller must be the only one."""

    __slots__ = (
        "_records",
        "_state",
        "directory_id",
        "disk",
        "kraft_version",
        "node_id",
        "path",
        "voters",
        "voters_offset",
    )

    def __init__(self, disk: Disk, directory: str, node_id: int, directory_id: bytes) -> None:
        self.disk = disk
        self.path = f"{directory}/{QUORUM_STATE}"
        self.node_id = node_id
        self.directory_id = directory_id
        self.kraft_version = 0
        # Node id -> directory id, None while no record names voters: they are then static.
        self.voters: dict[int, bytes] | None = None
        self.voters_offset = NOWHERE
        self._records: dict[ControlType, bytes] = {}
        self._state: dict[str, Any] = {}

    # --- reading ------------------------------------------------------------------------------

    def fold(self, record: Record, offset: int) -> None:
        """Takes note of a control record; one in a snapshot counts for its last offset."""
        kind = read_type(record.key)
        value = record.value or b""
        if kind == ControlType.KRAFT_VERSION:
            self._set_version(value)
        elif kind == ControlType.KRAFT_VOTERS:
            message = codec.decode(VotersRecord, 0, value)
            _check_version("KRaftVoters", message.version)
            self.voters = {each.voter_id: each.voter_directory_id for each in message.voters}
            self.voters_offset = offset
        elif kind == ControlType.UNKNOWN:
            number = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
            raise UnknownMetadata(f"a control record of type {number}")
        else:
            return
        self._records[kind] = bytes(value)

    def _set_version(self, value: bytes) -> None:
        self.kraft_version = kraft_version_in(value)

    def read_state(self) -> int:
        """The last epoch that somebody led or voted in, as this node has it on disk."""
        try:
            found = json.loads(read_whole(self.disk, self.path))
            epoch = int(found["leaderEpoch"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return 0  # the log has the epoch of its last record
        self._state = found
        return epoch

    def check(self) -> None:
        """Raises ForeignQuorum unless this controller is the only voter."""
        voters = self.voters
        if voters is None:
            static = self._state.get("currentVoters") or [{"voterId": self.node_id}]
            voters = {int(each["voterId"]): NO_DIRECTORY for each in static}
        if set(voters) != {self.node_id}:
            raise ForeignQuorum(f"its quorum is of {_listed(voters)}")
        if voters[self.node_id] not in (NO_DIRECTORY, self.directory_id):
            voter, own = uuid_text(voters[self.node_id]), uuid_text(self.directory_id)
            raise ForeignQuorum(f"its controller has the directory.id {voter}, this one {own}")

    # --- writing ------------------------------------------------------------------------------

    def snapshot_records(self) -> list[ControlRecord]:
        """What every snapshot begins with, behind its header."""
        if self.kraft_version == 0:
            return []
        return [(kind, self._records[kind]) for kind in sorted(self._records)]

    def epoch_records(self) -> list[ControlRecord]:
        """What a leader begins its epoch with; voters that only the formatting named come into the
        log with it."""
        voter = LeaderChangeMessage.Voter(voter_id=self.node_id)
        message = LeaderChangeMessage(
            version=0, leader_id=self.node_id, voters=[voter], granting_voters=[voter]
        )
        records = [(ControlType.LEADER_CHANGE, codec.encode(message, 0))]
        if self.voters_offset == NOWHERE:
            records += self.snapshot_records()
        return records

    def write_state(self, epoch: int) -> None:
        """Says on disk that this controller leads in an epoch, in the form that goes with
        kraft.version."""
        state: dict[str, Any] = {"leaderId": self.node_id, "leaderEpoch": epoch, "votedId": -1}
        if self.kraft_version == 0:
            voters = [{"voterId": self.node_id}]
            state = {"clusterId": "", **state, "appliedOffset": 0, "currentVoters": voters}
        else:
            state["votedDirectoryId"] = uuid_text(NO_DIRECTORY)
        state["data_version"] = self.kraft_version
        text = json.dumps(state, separators=(",", ":"))
        replace_file(self.disk, self.path, text.encode())


def kraft_version_in(value: bytes) -> int:
    """What such a control record says; raises UnknownMetadata."""
    message = codec.decode(KRaftVersionRecord, 0, value)
    _check_version("KRaftVersion", message.version)
    if not 0 <= message.k_raft_version <= NEWEST_KRAFT_VERSION:
        raise UnknownMetadata(f"kraft.version {message.k_raft_version}")
    return message.k_raft_version


def _check_version(name: str, version: int) -> None:
    if version != 0:
        raise UnknownMetadata(f"a control record {name} of version {version}")


def _listed(voters: dict[int, bytes]) -> str:
    *others, last = map(str, sorted(voters))
    ids = f"{', '.join(others)} and {last}" if others else last
    return f"the controllers {ids}" if others else f"controller {ids}"
