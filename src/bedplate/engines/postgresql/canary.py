"""PostgreSQL under a canary."""

from __future__ import annotations

from bedplate.model.cell import ClusterLevels
from bedplate.model.levels import Levels

# 8 s hold no timed checkpoint at the default timeout anyway; say so, so that it stays so.
CANARY = ClusterLevels(settings=Levels(checkpoint_timeout="1h"))
