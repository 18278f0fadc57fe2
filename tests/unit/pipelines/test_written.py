"""What a table's own log says of a batch."""

import json
from typing import Any

from kafkalite.pipelines.common.written import metrics, of_query
from kafkalite.pipelines.snapshot import DELETED, KEYLESS, OLDER, UNCHANGED, merged


def commit(*actions: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in actions)


def add(rows: int | None) -> dict[str, Any]:
    return {"add": {"path": "x", **({} if rows is None else {"stats": f'{{"numRecords":{rows}}}'})}}


INFO = {"commitInfo": {"operationMetrics": {"numOutputRows": "9", "executionTimeMs": "5"}}}
TXN = {"txn": {"appId": "q", "version": 3, "lastUpdated": 1}}


def test_the_rows_of_a_batch_are_those_that_its_commit_added() -> None:
    text = commit(INFO, TXN, add(4), add(5))
    assert of_query(text, "q", 3) == 9
    assert of_query(text, "q", 2) is None
    assert of_query(text, "other", 3) is None
    assert of_query(commit(TXN), "q", 3) == 0


def test_without_statistics_the_operation_tells() -> None:
    assert of_query(commit(INFO, TXN, add(None), add(5)), "q", 3) == 9
    assert metrics(commit(add(1))) == {}


def test_a_merge_is_accounted_for_by_what_it_says_of_itself() -> None:
    said = {
        "numSourceRows": 6,
        "numTargetRowsInserted": 2,
        "numTargetRowsUpdated": 1,
        "numTargetRowsDeleted": 1,
    }
    account = merged(said, read=10, keyed=9, keys=6)
    assert account.written == 3
    assert account.left_out == {OLDER: 3, KEYLESS: 1, DELETED: 1, UNCHANGED: 2}
    # Fewer came to the merge than there were keys: that does not add up.
    lost = merged(said | {"numSourceRows": 5}, read=10, keyed=9, keys=6)
    assert lost.written + sum(lost.left_out.values()) == 9
