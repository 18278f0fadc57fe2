"""Holds two brokers beside each other: the same requests to both, and the answers compared.

wire.py speaks to one broker, names.py translates what brokers choose by themselves (ids), views.py
makes an answer comparable, comparing.py finds what differs, differences.py lists what may.
"""
