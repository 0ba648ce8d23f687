"""SQLite: its PRAGMAs, and what they leave of what the file system promises."""
