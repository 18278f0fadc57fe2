"""Random requests to kafkalite and Apache Kafka side by side: `python -m tests.differential`.

pools.py has the values, generating.py makes requests of them, running.py asks both brokers and
compares, shrinking.py finds the shortest conversation that still differs, report.py prints it, and
pieces.py keeps how far a long search has come. mended.py has what once differed, made of steps.py.
"""
