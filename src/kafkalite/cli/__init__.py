"""The command line: one module per command, each found by its file's name.

Owns what a person types and reads. Holds no logic of the broker: a command parses its arguments,
calls one room below and prints. Running one command imports that command's module only.
"""
