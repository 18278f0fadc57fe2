"""A client of any Kafka, on the project's own codecs: how commands and tests ask a cluster."""
