"""File systems tried on this machine: what it refuses is known before a plan is run, and kept.

A distribution's kernel takes or refuses a block size or a mount option whatever its version says, so
trying is the only way to know. Trying needs root; an answer that was found once is read by everybody.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.filesystem.refusals import (
    MKFS_REFUSED,
    MKFS_WARNED,
    PASSING_TROUBLE,
    probe_key,
    probe_refusals,
)
from bedplate.filesystem.registry import FILESYSTEMS, filesystem_for
from bedplate.host.cache import SYSTEM_CACHE, cache_directory
from bedplate.host.command import Commands
from bedplate.host.interruption import held
from bedplate.host.ledger import Ledger
from bedplate.host.state import state_directory
from bedplate.model.cell import FilesystemLevels
from bedplate.model.filesystem import BARRIER_BY_MOUNT_OPTION, TRAITS, contradictions, without_age
from bedplate.model.levels import Levels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from bedplate.model.machine import Machine

# A tenth of a second each. A plan with more is judged by the rules, and by its visits.
MOST_TRIALS = 200
# What a loop device lacks and a real one may have, or what fits a large device and not a small image.
_OF_THE_DEVICE = re.compile(
    r"(?:^|,)(?:dax|discard|(?:su|sw|sunit|swidth|stride|stripe|stripe[-_]width|ag\w+|size|maxpct)=)"
)
_LOOP = re.compile(r"(?:/dev/)?\bloop\d+\b")


@dataclass(frozen=True)
class Trial:
    """One question: these levels, kept under that name."""

    levels: FilesystemLevels
    key: str


def usual_levels(machine: Machine) -> tuple[FilesystemLevels, ...]:
    """What plans ask of the types that `machine` has, one level at a time beside the type's defaults.

    Every block size, every level of a type's own factors, no barriers, no journal. A journal on a second
    device is left out, as a trial has one image.
    """
    found: list[FilesystemLevels] = []
    for kind, traits in TRAITS.items():
        if kind not in FILESYSTEMS or not set(traits.kernel_types) & set(machine.filesystems):
            continue
        plain = FilesystemLevels(kind)
        found.append(plain)
        found += [replace(plain, block_size_bytes=size) for size in traits.block_sizes]
        found += [
            replace(plain, features=Levels({name: level}))
            for name, levels in traits.features.items()
            for level in levels
            if without_age(Levels({name: level}))
        ]
        # Where the device's switch does it, the file system is not asked.
        if traits.barrier_by == BARRIER_BY_MOUNT_OPTION:
            found.append(replace(plain, barrier=False))
        if "none" in traits.journals:
            found.append(replace(plain, journal="none"))
    return tuple(found)


def known_refusals(
    wanted: Iterable[FilesystemLevels], machine: Machine
) -> Mapping[FilesystemLevels, tuple[str, ...]]:
    """The answers that are there already, by levels: none refused, or the reasons. Needs no root."""
    found = {}
    for trial in _trials(wanted, machine):
        answer = _read(trial.key)
        if answer is not None:
            found[trial.levels] = answer
    return found


def find_refusals(
    wanted: Iterable[FilesystemLevels], machine: Machine, *, tell: Callable[[int, int], None]
) -> Mapping[FilesystemLevels, tuple[str, ...]]:
    """The same with what is not known tried now: needs root; `tell` is given done and total.

    A trial that cannot be made (a tool is missing, no loop device) leaves its levels out: the rules
    then judge them, and in the end a visit.
    """
    trials = tuple(_trials(wanted, machine))
    found = {trial.levels: answer for trial in trials if (answer := _read(trial.key)) is not None}
    unknown = [trial for trial in trials if trial.levels not in found][:MOST_TRIALS]
    if not unknown:
        return found
    commands = Commands()
    ledger = Ledger.open(state_directory(), f"{os.getpid()}-trial")
    try:
        for number, trial in enumerate(unknown):
            tell(number, len(unknown))
            try:
                reasons = probe_refusals(trial.levels, commands=commands, ledger=ledger)
            except BedplateError:
                continue
            codes = {reason.code for reason in reasons}
            # Options of the plan's own that mkfs minds it may take on a device of another size.
            of_the_size = bool(trial.levels.mkfs_options and codes & {MKFS_REFUSED, MKFS_WARNED})
            if of_the_size or PASSING_TROUBLE in codes:
                continue
            answer = tuple(_LOOP.sub("a trial image", reason.sentence) for reason in reasons)
            found[trial.levels] = answer
            _keep(trial.key, answer)
        tell(len(unknown), len(unknown))
    finally:
        with held():
            ledger.release(commands)
            ledger.close()
    return found


def _trials(wanted: Iterable[FilesystemLevels], machine: Machine) -> Iterator[Trial]:
    """What trying can answer, each once: not what the kernel lacks altogether, nor what no kernel has."""
    versions: dict[str, Mapping[str, str] | None] = {}
    for levels in dict.fromkeys(wanted):
        kind = levels.type
        if kind not in FILESYSTEMS or not set(TRAITS[kind].kernel_types) & set(machine.filesystems):
            continue
        if contradictions(levels) or _asks_of_the_device(levels):
            continue
        if kind not in versions:
            versions[kind] = _versions(kind)
        told = versions[kind]
        if told is not None:
            tried = replace(levels, features=without_age(levels.features))
            yield Trial(levels, probe_key(tried, versions=told))


def _asks_of_the_device(levels: FilesystemLevels) -> bool:
    return any(
        _OF_THE_DEVICE.search(word) is not None for word in (*levels.mount_options, *levels.mkfs_options)
    )


def _versions(kind: str) -> Mapping[str, str] | None:
    try:
        return filesystem_for(kind).versions(commands=Commands())
    except BedplateError:
        return None  # its tool is missing, which `doctor` and `run` say


def _read(key: str) -> tuple[str, ...] | None:
    for place in dict.fromkeys((cache_directory(), SYSTEM_CACHE)):
        try:
            answer = json.loads((place / "refusals" / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(answer, list) and all(isinstance(reason, str) for reason in answer):
            return tuple(answer)
    return None


def _keep(key: str, reasons: tuple[str, ...]) -> None:
    folder = cache_directory() / "refusals"
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{key}.{os.getpid()}"
    temporary.write_text(json.dumps(reasons), encoding="utf-8")
    temporary.replace(folder / f"{key}.json")
