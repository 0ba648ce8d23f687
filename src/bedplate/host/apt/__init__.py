"""The distribution's archives, read and fetched from beside the machine's own apt, which is never changed."""
