"""Anybody's own engine: two programs in a folder with an engine.toml (docs/ENGINES.md)."""
