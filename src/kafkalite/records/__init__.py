"""Record batches and message sets: Apache Kafka's formats of what a log holds.

batch.py looks at a batch without decoding it, record.py reads and builds its records, control.py
the markers among them; legacy.py is the two formats before batches, convert.py the ways between
all three, compression.py the bounded codecs. Nothing here keeps state or touches a file.
"""
