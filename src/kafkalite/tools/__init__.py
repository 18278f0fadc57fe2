"""Apache Kafka's command line tools without a JVM; each says what Apache Kafka's own says."""
