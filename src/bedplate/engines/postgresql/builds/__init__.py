"""PostgreSQL's sources and its builds, one for each block size: found, unpacked, compiled, kept in the cache and recorded."""
