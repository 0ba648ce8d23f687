"""The scripts of a run as its levels hold them: one, or several of which pgbench draws by their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.model.levels import LevelMismatch, Levels

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bedplate.model.levels import Scalar

READ_ONLY = "read-only"
READ_WRITE = "read-write"
# What stands for the script of a run of several.
SEVERAL = "several"
# The phase of the figures that a run has of each of several scripts.
PHASE = "scripts"
_VARIABLE = "variable_"


@dataclass(frozen=True)
class BuiltIn:
    """A script of pgbench's own: what pgbench calls it, and whether it writes."""

    option: str
    writes: bool


BUILT_IN: Mapping[str, BuiltIn] = {
    READ_ONLY: BuiltIn("select-only", writes=False),
    READ_WRITE: BuiltIn("tpcb-like", writes=True),
    "simple-update": BuiltIn("simple-update", writes=True),
}


@dataclass(frozen=True)
class RunScript:
    """A script of a run; `text` is None of a built-in one."""

    name: str
    text: str | None = None
    weight: int = 1

    @property
    def writes(self) -> bool | None:
        """Of a built-in one; None of one's own, whose functions may hide anything."""
        built_in = BUILT_IN.get(self.name) if self.text is None else None
        return None if built_in is None else built_in.writes


def levels_of(scripts: Sequence[RunScript], variables: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
    """As a run's levels hold them; one script has no number and no weight, as in studies from before there were several."""
    found: dict[str, Scalar] = {f"{_VARIABLE}{name}": value for name, value in variables.items()}
    if len(scripts) == 1:
        (only,) = scripts
        found["script"] = only.name
        if only.text is not None:
            found["script_text"] = only.text
        return found
    found["script"] = SEVERAL
    for number, script in enumerate(scripts, start=1):
        found |= {f"script_{number}": script.name, f"script_{number}_weight": script.weight}
        if script.text is not None:
            found[f"script_{number}_text"] = script.text
    return found


def scripts_of(levels: Levels) -> tuple[RunScript, ...]:
    """The scripts of a run in the order of pgbench's numbers (`script_no` of its log)."""
    return tuple(_scripts(levels))


def _scripts(levels: Levels) -> Iterator[RunScript]:
    name = levels.text("script") or READ_WRITE
    if name != SEVERAL or levels.text("script_text") is not None:
        yield RunScript(name, levels.text("script_text"))
        return
    number = 1
    while (each := levels.text(f"script_{number}")) is not None:
        weight = levels.integer(f"script_{number}_weight")
        if weight is None:
            raise LevelMismatch(f"level 'script_{number}' has no weight")
        yield RunScript(each, levels.text(f"script_{number}_text"), weight)
        number += 1


def variables_of(levels: Levels) -> Mapping[str, Scalar]:
    """What the scripts find set, by its name."""
    return {
        name.removeprefix(_VARIABLE): value for name, value in levels.items() if name.startswith(_VARIABLE)
    }


def writes(scripts: Sequence[RunScript]) -> bool | None:
    """Whether any script writes, None where that is for what the run did to tell."""
    known = [script.writes for script in scripts]
    if True in known:
        return True
    return None if None in known else False
