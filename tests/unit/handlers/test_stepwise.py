"""Large messages are let go of in steps, whose size is told by what lies in each element."""

from __future__ import annotations

from kafkalite.handlers.stepwise import let_go
from kafkalite.protocol.messages import DescribeConfigsResponse

RESULTS = 300
MOST = 1_000  # elements freed in one step


def test_elements_that_hold_much_are_let_go_of_one_by_one() -> None:
    for settings in (0, 1, 50, 700):
        response = DescribeConfigsResponse(
            results=[
                DescribeConfigsResponse.Result(
                    configs=[DescribeConfigsResponse.Config() for _ in range(settings)]
                )
                for _ in range(RESULTS)
            ]
        )
        left, steps = RESULTS, 0
        for _ in let_go(response):
            freed, left = left - len(response.results), len(response.results)
            assert 0 < freed * (1 + settings) <= MOST
            steps += 1
        assert left == 0
        assert steps >= RESULTS * (1 + settings) // MOST
