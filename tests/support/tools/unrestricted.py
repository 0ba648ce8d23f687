"""A restriction that takes nothing away, for tests of what starts a program: the real one needs root (tests/host/test_restriction.py)."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

UNRESTRICTED: Any = SimpleNamespace(child=lambda: nullcontext(lambda: None))
