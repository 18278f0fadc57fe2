"""A web page to look at any Kafka: its topics and records, groups, transactions, settings."""
