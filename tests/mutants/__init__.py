"""Planted defects: each patch here puts back a mistake that was once made, and names the net that
must find it. `python -m tests.mutants` plants one after the other and tells which net caught it."""
