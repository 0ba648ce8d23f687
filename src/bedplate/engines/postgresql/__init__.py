"""PostgreSQL: its source, builds per block size, and clusters."""
