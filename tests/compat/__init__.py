"""One suite, two brokers: each test runs against kafkalite and against Apache Kafka."""
