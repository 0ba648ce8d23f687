"""A change measured in pairs: the plan of it, and blocks until it can be told."""
