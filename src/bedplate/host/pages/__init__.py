"""Pages of files: where they lie on their device, and which writes of them a file system takes whole."""
