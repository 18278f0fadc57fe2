"""Which delegation token an HMAC is of: its owner says nothing else of it.

Owns what follows from tokens and the secret, kept since it takes a while to make for thousands.
"""

from __future__ import annotations

from kafkalite.env.slicing import Steps
from kafkalite.protocol.messages import DelegationTokenRecord
from kafkalite.security.delegation import token_hmac

HMACS_PER_STEP = 64
SEEN_PER_STEP = 8_192


class TokenIds:
    """Looked up among the tokens as they are; an HMAC is made for each that is new since then."""

    def __init__(self) -> None:
        self._ids: dict[bytes, str] = {}
        self._seen: set[str] = set()

    def find(
        self, secret: str, tokens: dict[str, DelegationTokenRecord], hmac: bytes
    ) -> Steps[DelegationTokenRecord | None]:
        if len(self._seen) > 2 * len(tokens):  # of which most have gone
            self._ids.clear()
            self._seen.clear()
        made = 0
        for number, token_id in enumerate(tokens, 1):
            if token_id not in self._seen:
                self._seen.add(token_id)
                self._ids[token_hmac(secret, token_id)] = token_id
                made += 1
                if made % HMACS_PER_STEP == 0:
                    yield
            if number % SEEN_PER_STEP == 0:
                yield
        return tokens.get(self._ids.get(hmac, ""))
