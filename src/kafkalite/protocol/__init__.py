"""Kafka's wire protocol: from the specs over construct to compiled functions and message classes.

The way of a definition: spec.py reads it, layout.py makes it a construct object of primitives.py,
compiler.py writes Python from that with decoding.py, encoding.py and source.py. Users take
messages.py, codec.py, headers.py, framing.py and errors.py. Nothing here waits, reads the network
or knows what a message means.
"""
