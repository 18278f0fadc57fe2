"""Records what a client and its brokers say to each other, and reads it back.

proxy.py stands between them, conversation.py understands one connection, addresses.py keeps clients
on the proxy, trace.py is the file of it, plain.py the form of a message in that file.
"""
