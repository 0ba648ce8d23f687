"""An engine that nobody knows: files, one brick upon another."""
