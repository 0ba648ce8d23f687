"""How a cell was made, as lines to copy: the commands of its visits, with the names of one's own device and directory to fill in."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate.analysis.factors import level_text, short_name
from bedplate.model.cell import BuildLevels, ClusterLevels
from bedplate.model.engine import engine_model
from bedplate.model.filesystem import LABEL, TRAITS, FilesystemTraits
from bedplate.model.levels import as_in_a_plan
from bedplate.model.visit import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.analysis.overview import Overview
    from bedplate.model.cell import Cell
    from bedplate.model.visit import VisitRecord

DEVICE, DIRECTORY, JOURNAL_DEVICE, POOL = "DEVICE", "DIRECTORY", "JOURNAL_DEVICE", "POOL"
_DEVICES = "/dev/"
_ZPOOL = "zpool"
_JOURNAL = "journal_dev"


@dataclass(frozen=True)
class SetUp:
    """What was made of a cell, for a person to make it again.

    `journal`, `mkfs` and `mount` are command lines as a visit ran them, the first where an external journal is made by itself, without the label and the flags by which bedplate is not
    asked; None where no visit of the cell came so far. `settings` are all that its cells were told, by name, `varied`
    the names of those that differ between cells of the study. `further` says in words what else the cell departs in from
    what is usual: block sizes that are chosen when an engine is built, checksums, the kernel.
    """

    journal: str | None
    mkfs: str | None
    mount: str | None
    settings: Mapping[str, str]
    varied: tuple[str, ...] = ()
    further: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[str, ...]:
        """The command lines that are known."""
        return tuple(line for line in (self.journal, self.mkfs, self.mount) if line is not None)


def set_up(found: Overview, cell: str) -> SetUp:
    """The lines of one cell, from the first of its visits that was mounted."""
    levels = found.study.schedule.cells[cell]
    journal, mkfs, mount = next(
        (
            lines
            for visit in found.study.visits
            if visit.record.key.cell == cell and not visit.record.key.canary
            for lines in [command_lines(visit.record)]
            if lines[2] is not None
        ),
        (None, None, None),
    )
    settings = {name: as_in_a_plan(value) for name, value in levels.cluster.settings.items()}
    every = [found.study.schedule.cells[each].cluster.settings for each in found.cells]
    return SetUp(
        journal=journal,
        mkfs=mkfs,
        mount=mount,
        settings=settings,
        varied=tuple(name for name in settings if len({repr(each.get(name)) for each in every}) > 1),
        further=tuple(_further(levels)),
    )


def command_lines(record: VisitRecord) -> tuple[str | None, str | None, str | None]:
    """What makes the external journal, the mkfs and the mount of a visit; None for each that it does not have."""
    traits = TRAITS.get(record.cell.filesystem.type, FilesystemTraits(record.cell.filesystem.type, (), ()))
    mounts = [
        (number, argv)
        for number, argv in enumerate(record.commands)
        if _mounts(argv, record.cell.filesystem.type)
    ]
    if not mounts or (record.outcome is not Outcome.COMPLETED and not record.runs):
        return None, None, None
    number, mount = mounts[0]
    source, target = mount[-2:]
    made = next(
        (argv for argv in record.commands[:number] if _makes(argv, source)),
        None,
    )
    device = source if made is None or made[0] != _ZPOOL else made[-1]
    names = {source: DEVICE if source.startswith(_DEVICES) else POOL, device: DEVICE, target: DIRECTORY}
    journal = next((argv for argv in record.commands[:number] if _makes_journal(argv, source)), None)
    own, its = (
        None if argv is None else _line(_own_words_left_out(argv, traits), names) for argv in (journal, made)
    )
    return own, its, _line(mount, names)


def _mounts(argv: Sequence[str], type_: str) -> bool:
    """Whether a command mounts the cell's file system: by mount(8), or by the type's own program."""
    if len(argv) < 3:
        return False
    return (argv[0] == "mount" and "tracefs" not in argv) or argv[0] == type_


def _makes(argv: Sequence[str], source: str) -> bool:
    if argv[:2] == (_ZPOOL, "create"):
        return True
    return argv[-1] == source and (argv[0].startswith(("mk", "bcachefs")))


def _makes_journal(argv: Sequence[str], source: str) -> bool:
    """mke2fs and mkfs.jfs make the log as a device of its own first (mke2fs(8), `-O journal_dev`)."""
    return argv[0].startswith("mk") and _JOURNAL in argv and argv[-1] not in ("", source)


def _own_words_left_out(argv: Sequence[str], traits: FilesystemTraits) -> tuple[str, ...]:
    """Without the label, by which bedplate would take the device for its own and erase it, and without what forces mkfs."""
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word in traits.unasked_flags:
            continue
        if word in traits.label_flags:
            value = next(rest, "")
            if not value.startswith(LABEL):
                words += [word, value]
            continue
        words.append(POOL if word == LABEL else word)
    return tuple(words)


def _line(argv: Sequence[str], names: Mapping[str, str]) -> str:
    return " ".join(_word(word, names) for word in argv)


def _word(word: str, names: Mapping[str, str]) -> str:
    if word in names:
        return names[word]
    # `device=/dev/loop1` of an external journal, in one word or behind its flag.
    before, found, _ = word.partition(_DEVICES)
    if found:
        return f"{before}{JOURNAL_DEVICE}"
    return shlex.quote(word)


def _further(cell: Cell) -> list[str]:
    words = []
    usual = replace(cell, build=replace(BuildLevels(), engine=cell.build.engine), cluster=ClusterLevels())
    if cell.build.is_built and cell.database_block_bytes != usual.database_block_bytes:
        level = engine_model(cell.build.engine).block_level or ""
        words.append(f"{short_name(level)} {level_text(level, cell.database_block_bytes or 0)}")
    if cell.cluster.data_checksums is not None:
        words.append(f"data checksums {'on' if cell.cluster.data_checksums else 'off'}")
    if cell.cluster.configuration is not None:
        words.append("the plan's own configuration file")
    if cell.kernel.release is not None:
        words.append(f"kernel {cell.kernel.release}")
    if cell.device != replace(cell, device=type(cell.device)()).device:
        words.append("the device as the plan limits it")
    return words


def settings_words(settings: Mapping[str, str]) -> str:
    """`a = 1, b = 'x y'`, as lines of a configuration file behind each other."""
    return ", ".join(f"{name} = {value}" for name, value in settings.items())
