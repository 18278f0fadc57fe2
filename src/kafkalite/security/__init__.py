"""Who is at the other end: the exchanges by which a peer says, and proves, who it is.

Below the rooms that serve: it knows settings and chance, and no connection.
"""
