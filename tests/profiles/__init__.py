"""What brokers of Apache Kafka's releases serve, asked of the classes of each release."""
