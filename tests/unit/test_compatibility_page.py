"""The page of compatibility: what a run in pieces keeps, replaces and drops."""

from __future__ import annotations

from pathlib import Path

from tests.compat import matrix, secured_page
from tests.compat.matrix import Outcomes

PASSED, FAILED = ["kcat", "passed"], ["kcat", "failed"]
KEPT: Outcomes = {"a.py": {"test_one": {"kafkalite": FAILED, "kafkalite-old": PASSED}}}


def test_a_piece_replaces_the_cases_that_it_ran() -> None:
    two = {"test_two": {"": PASSED}}
    ran: Outcomes = {"a.py": {"test_one": {"kafkalite": PASSED}}, "b.py": two}
    assert matrix.merged(KEPT, ran, is_whole=False) == {
        "a.py": {"test_one": {"kafkalite": PASSED, "kafkalite-old": PASSED}},
        "b.py": two,
    }
    assert matrix.merged(KEPT, ran, is_whole=True)["a.py"] == {"test_one": {"kafkalite": PASSED}}
    assert KEPT["a.py"]["test_one"]["kafkalite"] == FAILED


def test_tests_that_are_no_more_go(tmp_path: Path) -> None:
    file = tmp_path / "test_a.py"
    file.write_text("def test_one() -> None: ...\n")
    assert matrix.still(str(file), {"test_one": {"": PASSED}, "test_gone": {"": PASSED}}) == {
        "test_one": {"": PASSED}
    }
    assert matrix.still(str(tmp_path / "test_gone.py"), {"test_one": {"": PASSED}}) == {}


def test_the_name_of_a_test_has_its_parts() -> None:
    assert matrix.parts_of("a.py::test_one[kafkalite-a@b[0]]@group of tests") == (
        "a.py", "test_one", "kafkalite-a@b[0]"
    )
    assert matrix.parts_of("a.py::test_one@group") == ("a.py", "test_one", "")
    assert matrix.parts_of("a.py::test_one") == ("a.py", "test_one", "")


def test_the_broker_that_a_case_names_first_is_its_column() -> None:
    assert matrix.column_of("kafkalite-to-apache-kafka-4.3.1") == "kafkalite"
    assert matrix.column_of("batch-apache-kafka-3.9.2") == "Apache Kafka"
    assert matrix.column_of("") == "kafkalite"


def test_a_page_counts_the_cases_of_a_feature() -> None:
    outcomes: Outcomes = {
        "a.py": {
            "test_keys_and_values": {
                "kafkalite-1": PASSED, "kafkalite-2": FAILED,
                "apache-kafka-4.3.1-1": ["kcat", "skipped: no kcat"],
            }
        }
    }
    lines = matrix.page(outcomes)
    assert "| kcat | 1 failed, 1 passed | 1 skipped: no kcat |" in lines
    assert "| keys and values | 1 failed, 1 passed | 1 skipped: no kcat |" in lines


def test_an_answer_stands_once_with_its_ways() -> None:
    first = secured_page.with_found({}, "kcat", "SSL", {"wrong": "no", "no rule": "refused"})
    both = secured_page.with_found(first, "kcat", "mutual TLS", {"wrong": "no"})
    assert both["kcat"] == {"wrong": {"no": ["SSL", "mutual TLS"]}, "no rule": {"refused": ["SSL"]}}
    other = secured_page.with_found(both, "kcat", "SSL", {"wrong": "never"})
    assert other["kcat"]["wrong"] == {"no": ["mutual TLS"], "never": ["SSL"]}
    assert secured_page.heard_on(other, "kcat", "SSL") == {"wrong": "never", "no rule": "refused"}


def test_the_page_of_secured_clients_says_on_which_broker_it_was_shown() -> None:
    cases = {
        "kafkalite-franz-go 1.22 on SSL": ["", "passed"],
        "apache-kafka-4.3.1-franz-go 1.22 on SSL": ["", "passed"],
        "kafkalite-franz-go 1.22 on mutual TLS": ["", "passed"],
        "apache-kafka-4.3.1-franz-go 1.22 on mutual TLS": ["", "failed"],
        "kafkalite-sarama 1.61 on SSL": ["", "skipped: no Go toolchain on PATH"],
    }
    rows = [line for line in secured_page.page(cases) if line.startswith(("| franz", "| sarama"))]
    assert rows[0].startswith("| franz-go 1.22 | both | kafkalite alone | not shown |")
    assert rows[1].startswith("| sarama 1.61 | skipped: no Go toolchain on PATH | not shown |")
