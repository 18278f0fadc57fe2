"""One directory that goes round between Apache Kafka and this broker, compared at every turn."""
