"""A workload and an engine that the program does not have, for the test that plants them in a copy of it."""
