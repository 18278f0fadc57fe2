"""Records what a client and its brokers say to each other, and reads it back.

proxy.py stands between them, link.py carries one connection, cutting.py cuts it into frames and
conversation.py understands them (said.py), addresses.py keeps clients on the proxy. scribe.py has
them written down on a thread of its own, trace_file.py is the file, trace.py a line of it, plain.py
the form of a message in that line.
"""
