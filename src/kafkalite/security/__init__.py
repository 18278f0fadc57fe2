"""Who somebody is, by which exchanges they prove it, and what they may do.

Below the rooms that serve: it knows settings and chance, and no connection.
"""
