"""The configuration of a kernel: which options are built in, which are modules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bedplate.host.files import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BUILT_IN, MODULE, NOT_SET = "y", "m", "n"
_LINE = re.compile(r"^CONFIG_(\w+)=(.*)$|^# CONFIG_(\w+) is not set$", re.MULTILINE)


@dataclass(frozen=True)
class Configuration:
    """The text of a `.config`, wherever it came from; `place` says where."""

    text: str
    place: str

    @cached_property
    def values(self) -> Mapping[str, str]:
        """Every option that the text names, without CONFIG_; `n` for one that is not set."""
        return {match[1] or match[3]: match[2] or NOT_SET for match in _LINE.finditer(self.text)}

    def value(self, option: str) -> str:
        """`y`, `m`, a text or a number; `n` also where the option is not named, as its own needs are not met then."""
        return self.values.get(option, NOT_SET)

    def has(self, option: str, *, as_module: bool) -> bool:
        """Whether the kernel has it: built in, or as a module where one can be loaded."""
        return self.value(option) == BUILT_IN or (as_module and self.value(option) == MODULE)


def read_configuration(file: Path) -> Configuration | None:
    """The one in a file; None where it cannot be read, or is empty."""
    text = text_of(file)
    return Configuration(text, str(file)) if text else None
