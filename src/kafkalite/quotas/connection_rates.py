"""How many connections addresses may make in a second: as it is said of them, of hosts, and of all.

Owns which of several that are said of one address holds: what is said of the address itself before
what is said of a host that has it, and of each the one that was said last.
"""

from __future__ import annotations

from kafkalite.quotas.host_names import address_in

Said = dict[str, float]  # by address as it is written, or by host; the last at the end


class ConnectionRates:
    """Of one broker's clients."""

    def __init__(self) -> None:
        self._of_all: float | None = None
        self._of_hosts: Said = {}
        self._addresses: dict[str, str] = {}  # of hosts, as far as they have one
        self._by_address: dict[str, tuple[Said, Said]] = {}  # of itself, and of hosts that have it

    def set(self, host: str | None, rate: float | None) -> None:
        """Of an address, a host, or all; None says nothing of it any more."""
        if host is None:
            self._of_all = rate
        elif (address := address_in(host)) is not None:
            self._put(address, 0, host, rate)
        else:
            self._of_hosts.pop(host, None)
            if rate is not None:
                self._of_hosts[host] = rate
            self.is_at(host, self._addresses.get(host))

    def is_at(self, host: str, address: str | None) -> None:
        """What is said of a host holds for this address, or for nobody."""
        before, rate = self._addresses.pop(host, None), self._of_hosts.get(host)
        if before is not None:
            self._put(before, 1, host, None)
        if address is not None and rate is not None:
            now = self._addresses[host] = written(address)
            self._put(now, 1, host, rate)

    def of(self, address: str) -> float | None:
        """What holds for it, if somebody has said so."""
        if not self._by_address:
            return self._of_all
        for said in self._by_address.get(written(address), ()):
            if said:
                return said[next(reversed(said))]
        return self._of_all

    def _put(self, address: str, which: int, key: str, rate: float | None) -> None:
        both = self._by_address.setdefault(address, ({}, {}))
        both[which].pop(key, None)
        if rate is not None:
            both[which][key] = rate
        elif not any(both):
            del self._by_address[address]


def written(address: str) -> str:
    """An address in one of all ways to write it; what is none stays as it is."""
    return address_in(address) or address
