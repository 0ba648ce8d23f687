"""MariaDB under a canary."""

from __future__ import annotations

from bedplate.model.cell import ClusterLevels

CANARY = ClusterLevels()
