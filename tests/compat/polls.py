"""How long a kafka-python member of a group polls at a time.

kafka-python 3.0 forgets an assignment that arrives as its poll times out, and then waits for ever
with nothing assigned. A poll that outlasts the join does not meet it.
"""

LONG_POLL_MS = 2_000
