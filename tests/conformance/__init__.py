"""Our codecs against the message classes of Apache Kafka."""
