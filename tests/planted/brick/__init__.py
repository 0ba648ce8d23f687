"""A workload that nobody knows: it writes a file of bricks and syncs each."""
