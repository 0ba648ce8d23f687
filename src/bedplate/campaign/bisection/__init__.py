"""Which commit of many made it so: git's own search, driven by studies of pairs."""
