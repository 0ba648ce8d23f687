"""The study on disk: append-only, where the writing and the reading side meet."""
