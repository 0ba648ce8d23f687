"""A disk that fails while an engine writes: by order, at a place and a moment, and what is left of what was acknowledged."""
