"""The account of a run adds up, or says where it does not."""

import json

from kafkalite.pipelines.common.ledger import Account, Ledger
from kafkalite.pipelines.common.offsets import Range
from kafkalite.pipelines.common.outcomes import MEANINGS, epilog

RANGES = (Range("t", 0, 0, 10), Range("t", 1, 5, 10))


def test_what_was_read_is_written_or_left_out() -> None:
    ledger = Ledger("dlq", "t", "dead")
    ledger.add(Account(3, 2, {"good": 7}), RANGES, 12)
    assert ledger.faults == []
    assert ledger.without_record == 3
    assert ledger.as_json()["proven"] is True


def test_what_is_not_accounted_for_is_a_fault() -> None:
    ledger = Ledger("to-lake", "t", "lake")
    ledger.add(Account(14), RANGES, 15)
    assert ledger.faults == [
        "15 records were read, but 14 are accounted for: 14 written, 0 there already, 0 left out"
    ]
    ledger = Ledger("mirror", "t", "copy")
    ledger.add(Account(16), RANGES, 15)
    assert len(ledger.faults) == 1


def test_what_a_batch_counted_itself_goes_before_what_the_source_counted() -> None:
    ledger = Ledger("dlq", "t", "dead")
    ledger.add(Account(1, left_out={"good": 4}, read=5), RANGES, 10)
    assert ledger.faults == []


def test_one_line_for_machines_has_all_that_people_are_told() -> None:
    ledger = Ledger("to-lake", "t", "lake", committed_to="lake/_checkpoint")
    ledger.add(Account(15), RANGES, 15)
    ledger.reached = {("t", 1): 10, ("t", 0): 10}
    line = json.dumps(ledger.as_json())
    assert "\n" not in line
    assert json.loads(line) == {
        "command": "to-lake",
        "source": "t",
        "isolation": "read_committed",
        "read": 15,
        "written": 15,
        "there_already": 0,
        "left_out": {},
        "without_record": 0,
        "lost": [],
        "batches": 1,
        "sink": "lake",
        "committed_to": "lake/_checkpoint",
        "reached": {"t": {"0": 10, "1": 10}},
        "faults": [],
        "proven": True,
    }
    assert ledger.rows() == [
        ("read", "15 records of t (read_committed)"),
        ("written", "15 to lake"),
        ("committed", "lake/_checkpoint"),
    ]


def test_each_exit_code_has_one_meaning() -> None:
    assert sorted(MEANINGS) == list(range(6))
    assert all(meaning in epilog() for meaning in MEANINGS.values())
