"""Plans as texts: read, written, and kept to one cell."""
