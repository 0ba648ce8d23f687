"""LMDB's microbenchmark on any engine that has a driver for it: fills, overwrites and reads of one database."""
