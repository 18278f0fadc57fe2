"""The Java side: finds a Java virtual machine, and fetches the jars that fit.

A leaf: used by Spark sessions, tests and measurements, never by the broker, which needs no Java.
"""
