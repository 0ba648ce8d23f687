"""What a person allows: given with the call, or when asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.model.visit import ScratchDevice


def _nobody(_question: str) -> bool:
    return False


@dataclass(frozen=True)
class Consent:
    """Which devices may be erased, also with a foreign signature, and whether packages may be installed.

    `ask` puts a question to a person, and is True for a yes.
    """

    erase: tuple[str, ...] = ()
    erase_foreign: bool = False
    yes: bool = False
    ask: Callable[[str], bool] = _nobody

    def allowed(self, device: ScratchDevice) -> ScratchDevice:
        """The device with what may be erased."""
        return replace(device, erase=self.erase, erase_foreign=self.erase_foreign)
