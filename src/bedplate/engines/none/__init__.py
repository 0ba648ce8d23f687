"""No engine: the file system itself, on which tools read and write files."""
