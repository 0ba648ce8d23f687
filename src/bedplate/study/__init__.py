"""The study on disk: append-only, where the writing and the reading side meet.

Here: its layout, the store that writes it, what reads it back, checksums and what is set aside.
Not here: what figures mean.
May import: `cuts`, `model`.
Must not import: what touches a machine (`host`, `visit`), nor what reads figures (`figures`, `statistics`, `analysis`).
"""
