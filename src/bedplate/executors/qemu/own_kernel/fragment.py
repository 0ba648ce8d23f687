"""What a kernel is configured with: the shipped guest configuration, and what the user's own fragment adds to it or takes out.

A fragment is a text as `.config` has it, a few lines long. Its own lines decide where both name an option.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.executors.qemu.own_kernel.configuration import NOT_SET, Configuration
from bedplate.executors.qemu.own_kernel.options import EVERY_GUEST, RECORDER

if TYPE_CHECKING:
    from collections.abc import Iterator

GUEST = Path(__file__).with_name("guest.config")
_MUST = frozenset(option.name for option in (*EVERY_GUEST, *RECORDER))


@dataclass(frozen=True)
class WantedConfiguration:
    """`own` is the text of the user's fragment, None for the shipped configuration alone."""

    own: str | None = None

    @property
    def text(self) -> str:
        """All of it, for KCONFIG_ALLCONFIG: the last word on an option counts."""
        return "\n".join((GUEST.read_text(encoding="utf-8"), *(() if self.own is None else (self.own, ""))))

    @property
    def digest(self) -> str:
        """SHA-256, as hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def lost(self, found: Configuration) -> Iterator[str]:
        """A sentence for each option that had to come out as it was asked for, and did not.

        That is what every guest needs, and every line of the user's own. The rest of the shipped configuration is what a kernel may not know.
        """
        own = Configuration("" if self.own is None else self.own, "own").values
        shipped = {name: value for name, value in _shipped().items() if name in _MUST}
        for name, value in {**shipped, **own}.items():
            if found.value(name) != value:
                wanted = "is not set" if value == NOT_SET else f"={value}"
                is_now = "not set" if found.value(name) == NOT_SET else f"={found.value(name)}"
                yield (
                    f"CONFIG_{name}{' ' if value == NOT_SET else ''}{wanted} did not survive (it is {is_now}): this kernel does not know it, or lacks "
                    "what it depends on"
                )

    def left_out(self, found: Configuration) -> tuple[str, ...]:
        """Options of the shipped configuration that this kernel does not take, beside those of `lost`."""
        own = Configuration("" if self.own is None else self.own, "own").values
        return tuple(
            name
            for name, value in _shipped().items()
            if name not in _MUST and name not in own and found.value(name) != value
        )


def _shipped() -> dict[str, str]:
    return dict(Configuration(GUEST.read_text(encoding="utf-8"), str(GUEST)).values)
