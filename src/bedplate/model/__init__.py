"""Frozen records: the words of the design as types, and the registry of metrics.

Here: what a cell, a run, a visit, a figure is, and JSON to and from it.
Not here: any work: nothing is read or written but the one file that a caller names.
May import: the standard library.
Must not import: any other room.
"""
