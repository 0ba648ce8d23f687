"""The plan's own files: scripts and configurations that stand beside it and belong to the study."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def plan_files(text: str, directory: Path) -> dict[str, str]:
    """Texts of the files that a valid plan names, by their paths relative to the plan."""
    return {
        name: (directory / name).read_text(encoding="utf-8")
        for name in dict.fromkeys(_names(tomllib.loads(text)))
        if (directory / name).is_file()
    }


def _names(document: dict[str, Any]) -> Iterator[str]:
    yield from _levels(document.get("postgresql", {}).get("configuration"))
    for workload in document.get("workload", []):
        yield from _levels(workload.get("script"))
        for run in workload.get("run", []):
            yield from _levels(run.get("script"))


def _levels(value: Any) -> Iterator[str]:
    candidates = value.get("vary", []) if isinstance(value, dict) else [value]
    yield from (name for name in candidates if isinstance(name, str))
