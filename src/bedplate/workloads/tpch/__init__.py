"""TPC-H: PostgreSQL as a data warehouse, loaded, asked alone and asked by several at once."""
