"""What one trial of the torture is asked and says."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Tally:
    """What was tried, by kind, and everything that was wrong, each with how to see it again."""

    tried: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def expect(self, is_so: bool, otherwise: str) -> None:
        """Note `otherwise` as wrong unless it is so."""
        if not is_so:
            self.wrong.append(otherwise)

    def add(self, other: Tally) -> None:
        """Take over what another trial found."""
        self.tried += other.tried
        self.wrong += other.wrong


# A trial draws everything from the generator, so that its number and the seed bring it back.
Trial = Callable[[random.Random, Path, Tally], None]
