"""Frozen records, no I/O: the words of the design as types."""
