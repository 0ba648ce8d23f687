"""sysbench: its OLTP scripts, the same on every server that speaks SQL."""
