"""LMDB: how its environment is opened, and what its modes leave of what the file system promises."""
