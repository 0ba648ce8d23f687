"""Settings of a server: their names and values in a plan, the files that they are written to, and what the server says of them."""
