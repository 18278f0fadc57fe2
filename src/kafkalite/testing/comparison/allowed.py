"""The table of differences that are allowed, each with its reason.

docs/generated/differences.md shows it. A row is as narrow as its reason: the fields that it names,
and a condition on what was asked and on what stands beside them (conditions.py).
"""

from __future__ import annotations

from kafkalite.testing.comparison.comparing import ABSENT
from kafkalite.testing.comparison.conditions import (
    CLOSED,
    SILENT,
    asked_for_nothing,
    cut_behind_a_part,
    drops_versions,
    found_a_kept_marker,
    found_behind_the_start,
    has_twins,
    is_described_before_it_is_recorded,
    is_kept_marker,
    is_latest_of_this_moment,
    is_told_later,
    is_told_once_more,
    lacks_an_epoch,
    marked,
    names_a_protocol_twice,
    names_an_id_of_zeros,
    of_this_moment,
    only_unrecorded,
    refused,
    same_records,
    same_records_of_a_part,
    theirs_failed,
    times_of_a_broker,
    two_texts,
)
from kafkalite.testing.comparison.differences import Allowed, of_each
from kafkalite.testing.comparison.orders import ORDERS

ALLOWED: tuple[Allowed, ...] = (
    *ORDERS,
    Allowed(
        "own words",
        (
            *of_each("AddRaftVoter", "error_message"),
            *of_each("AlterClientQuotas", "entries[].error_message"),
            *of_each("AlterConfigs", "responses[].error_message"),
            *of_each(
                "AlterPartitionReassignments",
                "error_message",
                "responses[].partitions[].error_message",
            ),
            *of_each("AlterUserScramCredentials", "results[].error_message"),
            *of_each("ConsumerGroupDescribe", "groups[].error_message"),
            *of_each("ConsumerGroupHeartbeat", "error_message"),
            *of_each("CreateAcls", "results[].error_message"),
            *of_each("CreatePartitions", "results[].error_message"),
            *of_each("CreateTopics", "topics[].error_message"),
            *of_each("DeleteAcls", "filter_results[].error_message"),
            *of_each("DeleteTopics", "responses[].error_message"),
            *of_each("DeleteShareGroupState", "results[].partitions[].error_message"),
            *of_each("DescribeAcls", "error_message"),
            *of_each("DescribeClientQuotas", "error_message"),
            *of_each("DescribeCluster", "error_message"),
            *of_each("DescribeConfigs", "results[].error_message"),
            *of_each("DescribeGroups", "groups[].error_message"),
            *of_each("DescribeProducers", "topics[].partitions[].error_message"),
            *of_each("DescribeQuorum", "error_message", "topics[].partitions[].error_message"),
            *of_each(
                "DescribeUserScramCredentials", "error_message", "results[].error_message"
            ),
            *of_each(
                "ElectLeaders", "replica_election_results[].partition_result[].error_message"
            ),
            *of_each("FindCoordinator", "error_message", "coordinators[].error_message"),
            *of_each("IncrementalAlterConfigs", "responses[].error_message"),
            *of_each("InitializeShareGroupState", "results[].partitions[].error_message"),
            *of_each("ListPartitionReassignments", "error_message"),
            *of_each(
                "Produce",
                "responses[].partition_responses[].error_message",
                "responses[].partition_responses[].record_errors[].batch_index_error_message",
            ),
            *of_each("ReadShareGroupState", "results[].partitions[].error_message"),
            *of_each("ReadShareGroupStateSummary", "results[].partitions[].error_message"),
            *of_each("RemoveRaftVoter", "error_message"),
            *of_each("UpdateFeatures", "error_message", "results[].error_message"),
            *of_each("WriteShareGroupState", "results[].partitions[].error_message"),
        ),
        "kafkalite tells in its own words what is wrong. The error code, and whether there is a"
        " text at all, are the same.",
        two_texts,
    ),
    Allowed(
        "times of this moment",
        (
            *of_each("Produce", "responses[].partition_responses[].log_append_time_ms"),
            *of_each("ListOffsets", "topics[].partitions[].timestamp"),
            *of_each(
                "DescribeProducers", "topics[].partitions[].active_producers[].last_timestamp"
            ),
            *of_each("DescribeTransactions", "transaction_states[].transaction_start_time_ms"),
            *of_each(
                "DescribeQuorum",
                "topics[].partitions[].current_voters[].last_fetch_timestamp",
                "topics[].partitions[].current_voters[].last_caught_up_timestamp",
            ),
        ),
        "Each broker's own clock, read while it did the same: ten seconds apart at most, and of the"
        " last hour.",
        of_this_moment,
    ),
    Allowed(
        "latest of times of this moment",
        of_each("ListOffsets", "topics[].partitions[].offset"),
        "The first record of the latest time (-3), where brokers set times: two written one"
        " after the other have the same time on one of them and not on the other.",
        is_latest_of_this_moment,
    ),
    Allowed(
        "time before the start",
        of_each(
            "ListOffsets",
            *(f"topics[].partitions[].{each}" for each in ("timestamp", "offset", "leader_epoch")),
        ),
        "The first record from a time on, where older segments than its own also hold such times,"
        " but only before the start of the log (DeleteRecords): kafkalite finds it, Apache Kafka"
        " says that there is none.",
        found_behind_the_start,
    ),
    Allowed(
        "times in batches",
        of_each(
            "Fetch",
            *(
                f"responses[].partitions[].records[].{each}"
                for each in ("base_timestamp", "max_timestamp", "records[].timestamp")
            ),
        ),
        "The same, in batches whose times the broker sets: markers of transactions, topics with"
        " LogAppendTime, and when compaction may forget a deletion.",
        times_of_a_broker,
    ),
    Allowed(
        "what compaction left of a batch",
        of_each(
            "Fetch",
            *(
                f"responses[].partitions[].records[].{each}"
                for each in ("base_timestamp", "size", "compressed_size")
            ),
        ),
        "The same records with the same times. kafkalite leaves those that stay as they are, with"
        " the batch's first time; Apache Kafka writes them anew, from the first time that stays.",
        same_records_of_a_part,
    ),
    Allowed(
        "cut behind what compaction left",
        of_each(
            "Fetch",
            *(f"responses[].partitions[].records[].{each}" for each in ("cut after", "bytes")),
        ),
        "The same number of bytes, the last of which are of a batch that was cut: behind one as"
        " above.",
        cut_behind_a_part,
    ),
    Allowed(
        "marker that compaction keeps",
        of_each(
            "Fetch",
            *(
                f"responses[].partitions[].records[].{each}"
                for each in ("attributes", "base_timestamp", "size", "count", "records[]")
            ),
        ),
        "A marker whose records are gone, and which is the last that tells its producer's epoch:"
        " Apache Kafka leaves an empty batch, of which its own recovery learns no epoch; kafkalite"
        " keeps the marker.",
        is_kept_marker,
        parts_states=True,
    ),
    Allowed(
        "marker that compaction keeps, found by its time",
        of_each(
            "ListOffsets",
            *(f"topics[].partitions[].{each}" for each in ("timestamp", "offset", "leader_epoch")),
        ),
        "The same: Apache Kafka finds a later record in its place, or none.",
        found_a_kept_marker,
        parts_states=True,
    ),
    Allowed(
        "metadata offset",
        of_each("ApiVersions", "finalized_features_epoch"),
        "An offset in each broker's own log of metadata.",
        lambda difference: difference.ours > 0 and difference.theirs > 0,
    ),
    Allowed(
        "metadata quorum",
        of_each(
            "DescribeQuorum",
            *(
                f"topics[].partitions[].{each}"
                for each in ("leader_epoch", "high_watermark", "current_voters[].log_end_offset")
            ),
        ),
        "The same, and the epoch of its leader.",
        lambda difference: difference.ours > 0 and difference.theirs > 0,
    ),
    Allowed(
        "room of a disk",
        of_each("DescribeLogDirs", "results[].total_bytes", "results[].usable_bytes"),
        "Of the disk of each, at the time of asking.",
        lambda difference: difference.ours > 0 and difference.theirs > 0,
    ),
    Allowed(
        "topic without partitions",
        ("TxnOffsetCommit topics[]", "OffsetDelete topics[]"),
        "A topic that a request names without any partition, which no client does: some answers of"
        " Apache Kafka repeat it and others do not.",
        asked_for_nothing,
    ),
    Allowed(
        "protocol twice",
        of_each(
            "JoinGroup",
            SILENT,
            "error_code",
            "generation_id",
            "protocol_type",
            "protocol_name",
            "leader",
            "member_id",
            "members[]",
        ),
        "A member that names a protocol twice: Apache Kafka counts it as two supporters, finds no"
        " protocol for the group and fails, or throws in a timer and never answers. kafkalite"
        " counts it once.",
        lambda difference: names_a_protocol_twice(difference.asked) and theirs_failed(difference),
        parts_states=True,
    ),
    Allowed(
        "pattern",
        of_each(
            "ConsumerGroupHeartbeat",
            "member_epoch",
            "assignment",
            "assignment.topic_partitions[]",
            "assignment.topic_partitions[].partitions[]",
        ),
        "A member that subscribes by a pattern: kafkalite looks for topics before it answers;"
        " Apache Kafka after, and tells the member at its next heartbeat.",
        is_told_later,
        parts_states=True,
    ),
    Allowed(
        "null records",
        of_each("Produce", SILENT),
        "A partition whose records are null: Apache Kafka fails inside and never answers;"
        " kafkalite answers INVALID_RECORD.",
        lambda difference: any(
            partition.records is None
            for topic in difference.asked.topic_data
            for partition in topic.partition_data
        ),
        parts_states=True,
    ),
    Allowed(
        "no transaction",
        of_each("AddPartitionsToTxn", SILENT),
        "A request about no transaction: Apache Kafka never answers it; kafkalite answers at once.",
        lambda difference: not difference.asked.transactions,
        parts_states=True,
    ),
    Allowed(
        "forgotten markers",
        of_each("WriteTxnMarkers", SILENT),
        "Several markers, the last of which has no partition that is there, or one that names a"
        " partition twice, which no broker sends: Apache Kafka forgets to answer.",
        lambda difference: len(difference.asked.markers) > 1
        or any(map(has_twins, map(marked, difference.asked.markers))),
        parts_states=True,
    ),
    Allowed(
        "resource twice",
        of_each("AlterConfigs", SILENT),
        "A resource that is named twice: Apache Kafka fails inside and never answers; kafkalite"
        " refuses it, as both do in IncrementalAlterConfigs.",
        lambda difference: has_twins(
            [(one.resource_type, one.resource_name) for one in difference.asked.resources]
        ),
        parts_states=True,
    ),
    Allowed(
        "marker of nobody",
        of_each("WriteTxnMarkers", "markers[].topics[].partitions[].error_code"),
        "A marker of a producer whose id is below -1: Apache Kafka writes it; kafkalite refuses it"
        " as both do one of the id -1, which stands for nobody.",
        lambda difference: difference.ours == "UNKNOWN_SERVER_ERROR"
        and any(marker.producer_id < -1 for marker in difference.asked.markers),
        parts_states=True,
    ),
    Allowed(
        "marker of nobody, beside one of nothing",
        of_each("WriteTxnMarkers", "markers[]"),
        "The same, where another marker has no partitions: a refusal of all names it, and no other"
        " answer does.",
        lambda difference: (
            difference.theirs is ABSENT
            and difference.ours["topics"] == []
            and any(not marker.topics for marker in difference.asked.markers)
            and any(marker.producer_id < -1 for marker in difference.asked.markers)
        ),
        parts_states=True,
    ),
    Allowed(
        "id of zeros",
        of_each("Fetch", SILENT, CLOSED, "error_code", "responses[]", "session_id"),
        "A topic id of zeros, which no topic has, among others: Apache Kafka fails at writing its"
        " answer, and answers that or never; kafkalite answers UNKNOWN_TOPIC_ID for the topic.",
        lambda difference: names_an_id_of_zeros(difference) and theirs_failed(difference),
        parts_states=True,
    ),
    Allowed(
        "unrecorded group",
        of_each("ListGroups", "groups[]"),
        "A group that only refused requests have named, of which nothing is recorded: kafkalite"
        " lists it at once; Apache Kafka when something else is recorded on the same shard.",
        only_unrecorded,
    ),
    Allowed(
        "unrecorded group, described",
        of_each(
            "DescribeGroups",
            "groups[].authorized_operations",
            "groups[].error_code",
            "groups[].error_message",
            "groups[].group_state",
            "groups[].members[]",
            "groups[].protocol_type",
        ),
        "The same, described: also with members, as long as none of them has been assigned a thing,"
        " which is what is recorded first.",
        is_described_before_it_is_recorded,
    ),
    Allowed(
        "no epoch",
        of_each("Produce", "responses[].partition_responses[].error_code"),
        "A batch of a producer with an id and without an epoch, which no client sends, for a topic"
        " that the broker compresses: Apache Kafka fails at writing it anew; kafkalite takes it, as"
        " both do where it is written as it is.",
        lambda difference: lacks_an_epoch(difference)
        and (difference.ours, difference.theirs) == ("NONE", "UNKNOWN_SERVER_ERROR"),
        parts_states=True,
    ),
    Allowed(
        "no epoch, no offset",
        of_each("Produce", "responses[].partition_responses[].base_offset"),
        "The same.",
        lambda difference: lacks_an_epoch(difference)
        and difference.theirs == -1 < difference.ours
        and difference.beside("error_code") == ("NONE", "UNKNOWN_SERVER_ERROR"),
    ),
    Allowed(
        "refused records, in words",
        of_each("Produce", "responses[].partition_responses[].error_message"),
        "Of a refused batch kafkalite always says what is wrong with it.",
        lambda difference: difference.theirs is None and refused(difference),
    ),
    Allowed(
        "size by codec",
        of_each("Fetch", "responses[].partitions[].records[].compressed_size"),
        "Of a batch that the broker compressed, which holds the same records: the codec libraries"
        " are not the same, nor are the times that each broker writes beside them, as above.",
        same_records,
    ),
    Allowed(
        "size of a partition by codec",
        of_each("DescribeLogDirs", "results[].topics[].partitions[].partition_size"),
        "The same, by a tenth at most.",
        lambda difference: abs(difference.ours - difference.theirs) <= difference.theirs // 10,
    ),
    Allowed(
        "documentation",
        of_each("DescribeConfigs", "results[].configs[].documentation"),
        "Settings are documented in kafkalite's own words, which also tell which have no effect.",
        two_texts,
    ),
    Allowed(
        "tasks once more",
        of_each("StreamsGroupHeartbeat", "active_tasks", "standby_tasks", "warmup_tasks"),
        "A member of a streams group says what it has, and that is not what it was given: it has"
        " missed the answer. Apache Kafka does not tell it again, and until the group changes"
        " nobody works on what it missed.",
        is_told_once_more,
    ),
    Allowed(
        "old versions",
        of_each("ApiVersions", "api_keys[].min_version"),
        "kafkalite also serves the old versions that Apache Kafka 4 dropped.",
        drops_versions,
    ),
)
