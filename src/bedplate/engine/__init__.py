"""Engines: how a database is built, started, configured and read back."""
