"""What a note says, and whose balance it counts for."""

import hashlib


def content(key):
    """A text that follows from the key."""
    text = hashlib.sha256(key).hexdigest().encode()
    return text * (1 + int(text[:2], 16) % 4)


def account(key):
    """One of a hundred."""
    return b"%d" % (int(hashlib.sha256(key).hexdigest()[2:6], 16) % 100)
