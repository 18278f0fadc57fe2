"""What users import in their tests: a broker inside the test's own process.

Importing this package costs nothing; a broker's rooms are imported when one is started.
"""
