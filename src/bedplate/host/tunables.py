"""Settings under /sys and /proc/sys: saved, set, read back, restored."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, RequirementMissing, VerifyFailed
from bedplate.host.block_tree import BlockTree
from bedplate.host.ledger import Holding, KnownHoldings, Ledger, restore_file, restore_write_cache, selected
from bedplate.model.visit import ReadBack

if TYPE_CHECKING:
    from bedplate.host.scratch_device import AttachedDevice

WRITE_BACK = "write back"
WRITE_THROUGH = "write through"

# Writing one zeroes the other, and zero cannot be written back
# (Documentation/admin-guide/sysctl/vm.rst): what is restored is the one that was in force.
_COUNTERPARTS = {
    "dirty_bytes": "dirty_ratio",
    "dirty_background_bytes": "dirty_background_ratio",
    "dirty_ratio": "dirty_bytes",
    "dirty_background_ratio": "dirty_background_bytes",
}


@dataclass(frozen=True)
class Tuned:
    """One setting: what stood there `before`, what was `asked`, what reads back as `effective`."""

    path: Path
    before: str
    asked: str
    effective: str


def read_tunable(path: Path) -> str:
    """The value in force: the bracketed word where the file lists a choice (`[none] mq-deadline`)."""
    return selected(path.read_text().strip())


def set_tunable(path: Path, value: str, *, ledger: KnownHoldings) -> Tuned:
    """Set one value, with its original in the ledger first; VerifyFailed if it does not read back.

    RequirementMissing if this kernel has no such setting.
    """
    try:
        before = read_tunable(path)
    except OSError as error:
        raise RequirementMissing(f"{path} cannot be read: {error.strerror}; this kernel lacks it") from error
    _note_first(_holding(path, before), ledger)
    return Tuned(path, before, value, _write(path, value))


def restore(tuned: Tuned, *, ledger: Ledger) -> None:
    """Give one setting its original back; VerifyFailed if it will not take it."""
    key = _holding(tuned.path, tuned.before).key
    for holding in ledger.holdings():
        if holding.key == key:
            outcome = restore_file(Path(holding.name), holding.detail)
            if outcome.problem is not None:
                raise VerifyFailed(outcome.problem)
            ledger.settled(holding)


@contextlib.contextmanager
def tuned(ledger: Ledger, values: Mapping[Path, str]) -> Iterator[tuple[Tuned, ...]]:
    """The values in force within the block, the originals after it, last set first."""
    done: list[Tuned] = []
    try:
        for path, value in values.items():
            done.append(set_tunable(path, value, ledger=ledger))
        yield tuple(done)
    finally:
        for item in reversed(done):
            restore(item, ledger=ledger)


def restore_all(ledger: Ledger) -> tuple[str, ...]:
    """Restore every tunable and write cache that the ledger holds; the problems as sentences."""
    problems = []
    for holding in reversed(ledger.holdings()):
        if holding.kind == "tunable":
            outcome = restore_file(Path(holding.name), holding.detail)
        elif holding.kind == "write_cache":
            outcome = restore_write_cache(holding.name, holding.detail)
        else:
            continue
        if outcome.problem is not None:
            problems.append(outcome.problem)
        if outcome.settled:
            ledger.settled(holding)
    return tuple(problems)


def queue_settings(
    device: AttachedDevice,
    *,
    read_ahead_kb: int | None,
    scheduler: str | None,
    write_back: bool,
    ledger: KnownHoldings,
    tree: BlockTree | None = None,
    prefix: str = "device",
) -> tuple[ReadBack, ...]:
    """Set the queue of the whole device and read it back, asked or not.

    `prefix` begins the names of the comparisons (`journal_device` for the second device).
    RequirementMissing names the other users of the device if a setting would have to change under
    them. VerifyFailed with one reason per setting that did not take.
    """
    tree = tree or BlockTree()
    queue = tree.sys / "class/block" / device.queue_name / "queue"
    cache = WRITE_BACK if write_back else WRITE_THROUGH
    asked: dict[str, str | None] = {
        "read_ahead_kb": None if read_ahead_kb is None else str(read_ahead_kb),
        "scheduler": scheduler,
        "write_cache": cache,
        # Never written. Zero would keep btrfs from making an image sparse again, but the kernel then has no
        # granularity, refuses every other value, and keeps that over detach and attach until the loop device
        # is removed and added (LOOP_CTL_REMOVE; seen on 6.18). The `nodiscard` of mkfs and mount does the
        # same without harm.
        "discard_max_bytes": None,
    }
    found = {name: _read_or_none(queue / name) for name in asked}
    others = tree.users_of_queue(device.name)
    reasons = [
        f"{name} of {device.queue_name} is {found[name]!r} and would have to become {value!r}, but {user}"
        for name, value in asked.items()
        if value is not None and found[name] != value
        for user in others
    ]
    if reasons:
        raise RequirementMissing(*reasons)
    comparisons = []
    for name, value in asked.items():
        try:
            level = f"{prefix}.{name}"
            comparisons.append(
                _queue_setting(queue / name, level, value, found[name], device=device, ledger=ledger)
            )
        except BedplateError as error:
            reasons += error.reasons
    if reasons:
        raise VerifyFailed(*reasons)
    return tuple(comparisons)


def have_write_back(device: AttachedDevice) -> None:
    """Have a loop device flushed, which another user of it may have switched off; VerifyFailed if that stays."""
    _write(BlockTree().sys / "class/block" / device.queue_name / "queue/write_cache", WRITE_BACK)


def _queue_setting(
    path: Path,
    level: str,
    value: str | None,
    setting: str | None,
    *,
    device: AttachedDevice,
    ledger: KnownHoldings,
) -> ReadBack:
    if value is None:
        return ReadBack(level, None, _number(setting), str(path), None)
    if path.name != "write_cache":
        effective = set_tunable(path, value, ledger=ledger).effective
        return ReadBack(level, _number(value), _number(effective), str(path), True)
    # The switch survives detach and attach of a loop device, so whatever was found may be another's
    # leaving: it is always written, and always goes back to flushing.
    original = WRITE_BACK if device.image is not None else (setting or WRITE_BACK)
    _note_first(Holding("write_cache", device.queue_name, original), ledger)
    if device.image is None and value == WRITE_BACK and setting == WRITE_THROUGH:
        return _real_write_back(path, level)
    return ReadBack(level, value, _write(path, value), str(path), True)


def _real_write_back(path: Path, level: str) -> ReadBack:
    """A disk without a volatile cache refuses the switch, and needs no flushes."""
    try:
        return ReadBack(level, WRITE_BACK, _write(path, WRITE_BACK), str(path), True)
    except VerifyFailed:
        effective = read_tunable(path)
        return ReadBack(level, None, effective, f"{path}: the device has no volatile cache", None)


def _note_first(holding: Holding, ledger: KnownHoldings) -> None:
    """The first original counts, whatever was set since."""
    if holding.key not in {item.key for item in ledger.holdings()}:
        ledger.note(holding)


def _write(path: Path, value: str) -> str:
    try:
        path.write_text(value)
    except OSError as error:
        choice = path.read_text().strip()
        raise VerifyFailed(
            f"{path} does not take {value!r} ({error.strerror}); it is {choice!r}, choose from that"
        ) from error
    effective = read_tunable(path)
    if effective != value:
        raise VerifyFailed(f"{path}: asked for {value!r}, effective is {effective!r}")
    return effective


def _holding(path: Path, before: str) -> Holding:
    counterpart = _COUNTERPARTS.get(path.name)
    if counterpart is not None and before == "0":
        other = path.with_name(counterpart)
        return Holding("tunable", str(other), read_tunable(other))
    return Holding("tunable", str(path), before)


def _read_or_none(path: Path) -> str | None:
    try:
        return read_tunable(path)
    except OSError:
        return None


def _number(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isdecimal() else text
