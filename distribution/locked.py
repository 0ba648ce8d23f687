"""What a wheel asks pip for, put into its metadata by hatchling: the locked requirements.

So pip and pipx install the versions that were tested, and that the bill of materials names. Hashes have no place there.
"""

from __future__ import annotations

from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Locked(MetadataHookInterface):  # type: ignore[misc] # hatchling is in the environment of ./package alone
    """pyproject.toml names this file."""

    def update(self, metadata: dict[str, object]) -> None:
        """Each line of requirements/runtime.txt that has a version, with its marker."""
        locked = (Path(self.root) / "requirements/runtime.txt").read_text(encoding="utf-8")
        metadata["dependencies"] = [
            line.removesuffix("\\").strip() for line in locked.splitlines() if "==" in line
        ]
