"""Pages of files: where they lie on their device, which writes of them a file system takes whole, and which are cached."""
