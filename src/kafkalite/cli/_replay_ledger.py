"""What became of a trace's requests when they were replayed: every one is counted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from kafkalite.testing.comparison.differences import explain
from kafkalite.testing.comparison.replaying import Exchange

ALIKE, DIFFERENT, NOT_COMPARED = 0, 1, 3  # exit codes; 2 is click's, for wrong usage


@dataclass(slots=True)
class Ledger:
    total: int  # requests in the trace
    compared: Counter[tuple[str, int]] = field(default_factory=Counter)  # by API and version
    different: int = 0
    allowed: int = 0  # differences, not requests
    only_sent: Counter[str] = field(default_factory=Counter)  # by why
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, exchange: Exchange) -> None:
        if exchange.left_out:
            self.left_out[exchange.left_out] += 1
        elif exchange.not_compared:
            self.only_sent[exchange.not_compared] += 1
        else:
            self.compared[exchange.api, exchange.version] += 1
            self.different += bool(exchange.differences)
            self.allowed += sum(explain(each) is not None for each in exchange.allowed)

    @property
    def compared_count(self) -> int:
        return self.compared.total()

    @property
    def missing(self) -> int:
        """Requests that were not come to."""
        done = self.compared_count + self.only_sent.total() + self.left_out.total()
        return self.total - done

    @property
    def exit_code(self) -> int:
        if self.missing or not self.compared_count:
            return NOT_COMPARED
        return DIFFERENT if self.different else ALIKE

    def lines(self) -> Iterator[str]:
        apis = len({api for api, _ in self.compared})
        yield (
            f"{self.total} requests: {self.compared_count} compared,"
            f" {self.only_sent.total()} only sent, {self.left_out.total()} left out"
            + (f", {self.missing} not come to" if self.missing else "")
            + f"; {apis} APIs, {len(self.compared)} versions;"
            f" {self.different} answered differently; {self.allowed} differences are allowed"
        )
        for what, reasons in (("only sent", self.only_sent), ("left out", self.left_out)):
            for reason, count in reasons.most_common():
                yield f"  {what}: {count} that {reason}"
        if not self.compared_count:
            yield "nothing was compared"
