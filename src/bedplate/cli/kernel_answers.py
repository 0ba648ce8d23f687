"""What this kernel and its tools refuse of what plans usually ask, for `bedplate doctor`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from bedplate.installation import COMMAND
from bedplate.model.codec import to_json
from bedplate.model.levels import as_in_a_plan
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.machine import Machine


@dataclass(frozen=True)
class KernelAnswers:
    """Usual levels in the order of the types, and the answers by levels: empty where they are taken.

    Levels without an answer were not tried: that needs root, the type's tools, and a loop device.
    """

    asked: tuple[FilesystemLevels, ...]
    answers: Mapping[FilesystemLevels, tuple[str, ...]]

    @property
    def unknown(self) -> tuple[FilesystemLevels, ...]:
        """Levels of which it is not known whether they are taken."""
        return tuple(levels for levels in self.asked if levels not in self.answers)

    @property
    def refused(self) -> tuple[FilesystemLevels, ...]:
        """Levels that cannot be had here."""
        return tuple(levels for levels in self.asked if self.answers.get(levels))

    def document(self) -> list[dict[str, Any]]:
        """One entry per levels that were asked; `taken` is null where it is not known."""
        return [
            {
                "name": label(levels),
                "levels": to_json(levels),
                "taken": None if levels not in self.answers else not self.answers[levels],
                "reasons": list(self.answers.get(levels, ())),
            }
            for levels in self.asked
        ]

    def lines(self, *, is_root: bool) -> Iterator[str]:
        """The same for a person: refusals with their reasons, then how many are taken or not known."""
        for reasons, refused in groupby(self.refused, key=self.answers.__getitem__):
            yield f"    refused    {'; '.join(map(label, refused))}"
            yield from (f"               {line}" for reason in reasons for line in reason.splitlines())
        taken = len(self.answers) - len(self.refused)
        yield f"    taken      {taken} of {len(self.asked)} usual levels"
        if self.unknown:
            kinds = ", ".join(dict.fromkeys(levels.type for levels in self.unknown))
            why = (
                "no trial could be made: is a tool or a loop device missing?"
                if is_root
                else f"trying needs root: sudo {COMMAND} doctor"
            )
            yield f"    not known  {len(self.unknown)} ({kinds}); {why}"


def ask_kernel(machine: Machine) -> KernelAnswers:
    """The answers that are known; as root, all that can be found by trying on a small image."""
    from bedplate.campaign.trial import find_refusals, known_refusals, usual_levels  # noqa: PLC0415

    asked = usual_levels(machine)
    if machine.is_root:
        return KernelAnswers(asked, find_refusals(asked, machine, tell=_tell))
    return KernelAnswers(asked, known_refusals(asked, machine))


def label(levels: FilesystemLevels) -> str:
    """`ext4 data=journal`, `xfs 512 B blocks`; the type alone where nothing else is asked."""
    parts = [levels.type]
    if levels.block_size_bytes is not None:
        parts.append(f"{format_size(levels.block_size_bytes)} blocks")
    parts += [f"{name}={as_in_a_plan(value)}" for name, value in levels.features.items()]
    if levels.barrier is not None:
        parts.append("barrier" if levels.barrier else "nobarrier")
    if levels.journal is not None:
        parts.append(f"journal={levels.journal}")
    return " ".join(parts)


def _tell(done: int, total: int) -> None:
    """On standard error, as the answer itself may be read by a program."""
    if done == 0:
        print(f"trying {total} file systems on this kernel, a fraction of a second each", file=sys.stderr)
