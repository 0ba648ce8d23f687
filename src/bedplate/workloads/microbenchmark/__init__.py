"""LMDB's microbenchmark, `type = "lmdb"`: fills, overwrites and reads of one environment."""
