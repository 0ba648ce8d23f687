"""Somebody's own database: an archive that is restored once, or a data directory, each copied to every visit, and what it may not do there."""
