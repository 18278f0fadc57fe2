"""Today's Python libraries as programs that secured brokers are asked with."""
