"""File systems: one file each, with mkfs, mount, reading back and checking; the proof of barriers."""
