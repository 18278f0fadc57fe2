"""Tests: `unit` is fast and alone, `compat` asks kafkalite and Apache Kafka the same questions."""
