"""Unit and property tests, one folder per room: no network, no subprocess, no sleep."""
