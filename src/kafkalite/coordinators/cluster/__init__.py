"""The cluster's metadata: a log of Apache Kafka's metadata records, its fold, and who decides.

`image` is the fold, `records` the way to and from bytes, `log` the log with its snapshots, the
modules named after what they decide on answer requests with records, and `cluster` ties them.
"""
