"""bonnie++: sequential I/O on one file, and many files that are made and removed."""
