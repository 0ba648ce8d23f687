"""Power cuts: what a database still knows after each of many cuts of one recording."""
