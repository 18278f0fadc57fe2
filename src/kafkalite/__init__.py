"""kafkalite: a broker that speaks the Apache Kafka protocol.

Importing the package costs nothing: it holds its version and no more. The rooms are drawn in
ARCHITECTURE.md.
"""

__version__ = "0.1.0"
