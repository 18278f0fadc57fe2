"""The broker of unittest's test cases."""

from __future__ import annotations

import unittest

from kafkalite.testing.case import WithKafkalite


def run(case: type[unittest.TestCase]) -> unittest.TestResult:
    return unittest.defaultTestLoader.loadTestsFromTestCase(case).run(unittest.TestResult())


def test_the_tests_of_a_class_share_a_broker() -> None:
    seen = []

    class Shared(WithKafkalite, unittest.TestCase):
        kafkalite_options = {"topics": ["orders"]}  # noqa: RUF012 - as people write it

        def test_a(self) -> None:
            seen.append(self.kafkalite)
            self.kafkalite.produce("orders", "one")

        def test_b(self) -> None:
            seen.append(self.kafkalite)
            assert self.kafkalite.records("orders").one().text == "one"

    assert run(Shared).wasSuccessful()
    assert seen[0] is seen[1]
    assert not seen[0].is_running


def test_what_a_test_has_go_wrong_is_taken_back_at_its_end() -> None:
    class Shared(WithKafkalite, unittest.TestCase):
        def test_a(self) -> None:
            self.kafkalite.fail("Metadata", error="UNKNOWN_SERVER_ERROR", times=None)
            self.kafkalite.explore(1, rate=1)

        def test_b(self) -> None:
            assert not self.kafkalite._controls.faults
            assert self.kafkalite._controls.explored.chooser is None

    assert run(Shared).wasSuccessful()


def test_each_test_has_its_own_when_it_is_to_be_fresh() -> None:
    seen = []

    class Fresh(WithKafkalite, unittest.TestCase):
        kafkalite_is_fresh = True

        def test_a(self) -> None:
            seen.append(self.kafkalite)

        def test_b(self) -> None:
            seen.append(self.kafkalite)

    assert run(Fresh).wasSuccessful()
    assert seen[0] is not seen[1]
    assert [each.is_running for each in seen] == [False, False]
