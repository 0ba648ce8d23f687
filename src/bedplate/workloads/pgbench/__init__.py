"""PostgreSQL under pgbench: a dataset by scale, and runs of scripts on it."""
