"""Groups: who reads what, and how far (KIP-345, KIP-394, KIP-429, KIP-848).

`front.Groups` is the way in, `shard` the state machine of one partition of __consumer_offsets.
"""
