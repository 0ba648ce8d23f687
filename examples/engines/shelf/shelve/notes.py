"""What a note says, and what is wrong with those that are there."""

import hashlib


def content(client, number):
    """A text that follows from both."""
    text = hashlib.sha256(b"%d %d" % (client, number)).hexdigest()
    return text * (1 + int(text[:2], 16) % 4)


def look(notes):
    """The last number of each client, and what is wrong, a gap before it among that."""
    clients, wrong, numbers = {}, [], {}
    for client, number, text in notes:
        numbers.setdefault(client, set()).add(number)
        if text != content(client, number):
            wrong.append(f"client {client}: note {number} is not what was written")
    for client, there in sorted(numbers.items()):
        clients[client] = max(there)
        if len(there) != max(there):
            wrong.append(f"client {client}: {len(there)} notes up to number {max(there)}")
    return clients, wrong[:20]
