"""The image of a cut: what the medium held when the power went.

A builder goes through the log once. It keeps an image of what is durable, brings it up to the beginning of a point's
window, copies it and writes what is kept of the window into the copy. `rebuild` makes the same image from the log
alone.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bedplate.errors import BedplateError
from bedplate.host.devices.image_file import (
    copy_image,
    create_blank,
    fill_from,
    is_zeros,
    write_all,
    zero,
)
from bedplate.workloads.power_cut.run.log import DEVICE_NAMES, DISCARD, DISK
from bedplate.workloads.power_cut.run.window import window

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from bedplate.model.power_cut import CutPoint
    from bedplate.workloads.power_cut.run.log import Log
    from bedplate.workloads.power_cut.run.window import CrashState

# A write of zeros this long leaves a hole, which needs no copying; mkfs and new WAL segments write many.
_HOLE_BYTES = 4096


@dataclass(frozen=True)
class Built:
    """The images of one cut, `disk` and where there is one `journal`, and the window that they came from."""

    window: CrashState
    images: tuple[Path, ...]

    @property
    def disk(self) -> Path:
        """The image of the data device."""
        return self.images[DISK]

    @property
    def journal(self) -> Path | None:
        """The image of the external journal, None without one."""
        return self.images[DISK + 1] if len(self.images) > 1 else None


class ImageBuilder:
    """Builds the images of a log's points, fastest in the order of `positions.building_order`.

    `directory` holds the durable images, best in memory, where copies of them share no disk; a file system that can
    share blocks (`cp --reflink`) copies them in no time. `sizes` are those of the devices in bytes, the disk first.
    The devices in `lost` stand in memory and are blank after each cut. `base` are images of what the devices held before the
    log, which must stay as they are; without any they were blank. Not for several threads.
    """

    def __init__(
        self,
        log: Log,
        directory: Path,
        sizes: Sequence[int],
        *,
        window_bytes: int,
        measured_from: int = 0,
        lost: Collection[int] = (),
        base: Sequence[Path] = (),
    ) -> None:
        used = [bool(history.changes) for history in log.histories]
        if not 1 <= len(sizes) <= len(DEVICE_NAMES) or any(used[len(sizes) :]):
            raise BedplateError(
                f"the write log {log.path} is of {max(1, sum(used))} devices, and {len(sizes)} sizes were given"
            )
        self._log = log
        self._paths = tuple(directory / f"durable-{name}" for name in DEVICE_NAMES[: len(sizes)])
        self._sizes = tuple(sizes)
        self._window_bytes = window_bytes
        self._measured_from = measured_from
        self._lost = frozenset(lost)
        self._base = tuple(base)
        # How many changes of each device's history are in its durable image.
        self._applied = [0] * len(sizes)
        self._open: list[int] = []
        try:
            for device, (path, size) in enumerate(zip(self._paths, self._sizes, strict=True)):
                self._open.append(create_blank(path, size))
                self._lay_base(device)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the durable images; those that were built stay."""
        while self._open:
            os.close(self._open.pop())
        for path in self._paths:
            path.unlink(missing_ok=True)

    def build(self, point: CutPoint, directory: Path) -> Built:
        """The images of one point in `directory`, under the devices' names; former ones there are unlinked.

        BedplateError if the log writes beyond a device's size; ValueError if it has no such position.
        """
        cut = window(self._log, point, self._window_bytes, measured_from=self._measured_from)
        with ExitStack() as opened:
            targets, paths = [], []
            for device, size in enumerate(self._sizes):
                path = directory / DEVICE_NAMES[device]
                targets.append(create_blank(path, size))
                opened.callback(os.close, targets[-1])
                paths.append(path)
                if device not in self._lost:
                    self._advance(device, cut.durable_until[device])
                    copy_image(self._open[device], targets[-1])
            for piece in cut.kept:
                if self._log.devices[piece.entry] not in self._lost:
                    self._apply(targets, piece.entry, piece.start, piece.length)
        return Built(cut, tuple(paths))

    def _advance(self, device: int, until: int) -> None:
        """Bring a durable image to just before entry `until`; from the beginning if it is further already."""
        changes, applied = self._log.histories[device].changes, self._applied[device]
        if applied and changes[applied - 1] >= until:
            os.ftruncate(self._open[device], 0)
            os.ftruncate(self._open[device], self._sizes[device])
            self._lay_base(device)
            applied = 0
        while applied < len(changes) and changes[applied] < until:
            self._apply(self._open, changes[applied], 0, self._log.lengths[changes[applied]])
            applied += 1
            self._applied[device] = applied
        self._applied[device] = applied

    def _lay_base(self, device: int) -> None:
        if self._base:
            fill_from(self._base[device], self._open[device])

    def _apply(self, files: Sequence[int], index: int, start: int, length: int) -> None:
        """Do to an image what a part of one entry did to its device."""
        device, offset = self._log.devices[index], self._log.offsets[index] + start
        if offset + length > self._sizes[device]:
            raise BedplateError(
                f"entry {index} of the write log {self._log.path} reaches to byte {offset + length} of "
                f"the {DEVICE_NAMES[device]}, which has {self._sizes[device]}; give the size that was recorded"
            )
        if self._log.flags[index] & DISCARD:
            zero(files[device], offset, length)
            return
        data = self._log.data(index, start, length)
        if length >= _HOLE_BYTES and is_zeros(data):
            zero(files[device], offset, length)
        else:
            write_all(files[device], data, offset)


def rebuild(
    log: Log,
    point: CutPoint,
    directory: Path,
    sizes: Sequence[int],
    *,
    window_bytes: int,
    measured_from: int = 0,
    lost: Collection[int] = (),
    base: Sequence[Path] = (),
) -> Built:
    """The images of one point from the log alone, bit for bit those of any builder."""
    with ImageBuilder(
        log, directory, sizes, window_bytes=window_bytes, measured_from=measured_from, lost=lost, base=base
    ) as builder:
        return builder.build(point, directory)
