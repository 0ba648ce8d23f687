"""The slurm executor: every repetition as a job on one node, its visits collected from files."""
