"""MariaDB with InnoDB: the distribution's packages, unpacked in the cache; its server, and what survives under it."""
