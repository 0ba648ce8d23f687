"""The run of a study: planned, agreed to, prepared, ordered, kept, and shown while it runs.

Here: what a start does from a plan's text to the last visit in the store.
Not here: the words of the command line (`cli`), and how one visit gets where it runs (`executors`).
May import: `executors`, `visit`, `figures`, `filesystem`, `host`, `plan`, `study`, `cuts`, `model`; rich for the display.
Must not import: `engines`, `workloads`, `terminal`, `page`, `export`, `analysis`.
"""
