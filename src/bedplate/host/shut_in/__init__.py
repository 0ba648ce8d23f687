"""Programs, servers and data of others: what they are kept from, and how."""
