"""What cells are called beside their figures, and which emulation stands between them and a real device."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from math import prod

from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    KernelLevels,
    database_block_levels,
    engine_model,
)
from bedplate.model.filesystem import TRAITS
from bedplate.model.levels import Scalar
from bedplate.model.plan import model_of
from bedplate.model.visit import VisitRecord
from bedplate.units import format_size, parse_duration_s, parse_size

DEFAULT = "default"

TYPE = "filesystem.type"

ENGINE = "build.engine"

FILESYSTEM_BLOCK = "filesystem.block_size_bytes"

_KERNEL = "kernel.release"

_SETTING = "cluster.settings."

_CONFIGURATION = "cluster.configuration"

_READ_AHEAD = "device.read_ahead_kb"

_UNITS = ("_bytes", "_kb")

# How a plan begins the names of levels, by how cells do; those of its engine are the engine's.
_PLAN_WORDS: Mapping[str, str] = {
    "device.memory": "machine.memory",
    "device.throttle.read_bytes_per_s": "scratch_device.throttle.read_bandwidth",
    "device.throttle.write_bytes_per_s": "scratch_device.throttle.write_bandwidth",
    "device.latency.bytes_per_s": "scratch_device.latency.bandwidth",
    **{
        f"device.latency.disk.{name}_bytes_per_s": f"scratch_device.latency.disk.{name}"
        for name in ("outer", "inner")
    },
    "device.": "scratch_device.",
    "kernel.release": "machine.kernel",
}

# Layers whose factors only exist for one file system type, or for one engine.
_WITHIN = {"filesystem": TYPE, "build": ENGINE, "cluster": ENGINE}

# Defaults that are values and no word: those of a build, and switches that are off.
_KNOWN: Mapping[str, Scalar] = {
    f"{layer}.{entry.name}": entry.default
    for layer, record in (("build", BuildLevels), ("cluster", ClusterLevels))
    for entry in fields(record)
    if isinstance(entry.default, str | int | bool)
}

# Said only where some cell asks for another than a build.
_SERVER = "build.server"


def factor_levels(cells: Iterable[tuple[Cell, int | None]]) -> tuple[dict[str, Scalar], ...]:
    """The levels of each cell by the factor's dotted name, in the order of the cells.

    Beside each cell stands its file system's block size as it was read back, None where it is not known: a
    default block of 4 KiB is one of 4 KiB.
    """
    found = [_own(cell, block) for cell, block in cells]
    names = dict.fromkeys(name for levels in found for name in levels)
    having: dict[str, set[Scalar | None]] = {
        name: {_kind(name, levels) for levels in found if name in levels} for name in names
    }
    return tuple(
        {
            name: levels[name] if name in levels else _KNOWN.get(name, DEFAULT)
            for name in names
            if name in levels or _kind(name, levels) in having[name]
        }
        for levels in found
    )


def usual_factors(levels: Mapping[str, Scalar]) -> frozenset[str]:
    """Of some levels those factors that are at what holds where nobody asks: `barrier = true`, `data = ordered`."""
    traits = TRAITS.get(str(levels.get(TYPE)))
    known = {} if traits is None else {f"filesystem.{name}": level for name, level in traits.usual.items()}
    return frozenset(
        name
        for name, level in levels.items()
        if level == DEFAULT or (name in known and known[name] == level) or _KNOWN.get(name) == level
    )


def short_name(name: str) -> str:
    """A factor in few letters, as a sentence has it: `barrier`, `fs block`, `db block`, `shared_buffers`."""
    blocks = {
        FILESYSTEM_BLOCK: "fs block",
        TYPE: "file system",
        **dict.fromkeys(database_block_levels(), "db block"),
    }
    if name in blocks:
        return blocks[name]
    if name == _KERNEL:
        return "kernel"
    if name.startswith(_SETTING):
        return name.removeprefix(_SETTING)
    return name.partition(".")[2] or name


def level_rank(name: str, level: Scalar) -> tuple[bool, float, tuple[tuple[float, str], ...]]:
    """Numbers, `128MB` and `5min` by what they come to, before words by their letters and numbers: kernel 6.9 is before 6.18."""
    if isinstance(level, int | float):
        return False, float(level), ()
    for parse in (parse_size, parse_duration_s) if name != _KERNEL else ():
        with suppress(ValueError):
            return False, float(parse(level)), ()
    parts = re.findall(r"[0-9]+|[^0-9]+", level)
    return True, 0.0, tuple((float(part), "") if part.isdecimal() else (-1.0, part) for part in parts)


def typed(level: Scalar) -> tuple[type, Scalar]:
    """`True` and 1 are two levels, whatever Python says."""
    return type(level), level


def level_text(name: str, level: Scalar) -> str:
    """A level as a person reads it: `4 KiB`, `yes`, `512MB`."""
    if isinstance(level, bool):
        return "yes" if level else "no"
    if isinstance(level, int) and (name.endswith("_bytes") or name in database_block_levels()):
        return format_size(level)
    return str(level)


def plan_levels(cells: Mapping[str, Cell]) -> Mapping[str, Mapping[str, Scalar]]:
    """What a plan asks for in each cell, by the plan's own keys: `filesystem.block_size`, `postgresql.settings.fsync`.

    Sizes are in bytes, which a plan takes too. A key of which a cell was asked nothing is none of its own.
    """
    found = factor_levels((cell, None) for cell in cells.values())
    return {
        name: {
            plan_key(level, cell.build.engine): f"{value} kB" if level == _READ_AHEAD else value
            for level, value in ({TYPE: levels[TYPE]} | levels).items()
            if value != DEFAULT
        }
        for (name, cell), levels in zip(cells.items(), found, strict=True)
    }


def plan_key(level: str, engine: str) -> str:
    """The key of a plan that a level of a cell of this engine stands for; `engine` is the workload's."""
    if level == ENGINE:
        return "engine"
    words = {**_PLAN_WORDS, **engine_model(engine).plan_words}
    begin = next((start for start in words if level.startswith(start)), "")
    rest = level.removeprefix(begin)
    # A setting of an engine has the engine's own name.
    unit = "" if level.startswith(_SETTING) else next((unit for unit in _UNITS if rest.endswith(unit)), "")
    return words.get(begin, "") + rest.removesuffix(unit)


def _own(cell: Cell, block: int | None) -> dict[str, Scalar]:
    levels = dict(cell.levels)
    if cell.build.is_built:
        shown = (name for name in _KNOWN if name.startswith("build.") and name != _SERVER)
        levels |= {name: _KNOWN[name] for name in shown} | levels
    if block is not None:
        levels[FILESYSTEM_BLOCK] = block
    if cell.cluster.configuration is not None:
        content = hashlib.sha256(cell.cluster.configuration.encode()).hexdigest()[:8]
        levels[_CONFIGURATION] = f"{engine_model(cell.build.engine).configuration_words} {content}"
    return levels


def _kind(name: str, levels: Mapping[str, Scalar]) -> Scalar | None:
    """Among which cells a factor exists: those of one type or engine, or all."""
    within = _WITHIN.get(name.partition(".")[0])
    return None if within is None else levels.get(within)


# Levels that have a place of their own: the variant's name, or an axis of the heat map.
_SHOWN_ELSEWHERE = ("filesystem.", "device.throttle.", "device.latency.")

_OWN_CONFIGURATION = "cluster.configuration"

_KERNEL = "kernel.release"

DEFAULT_BLOCK = "default"

EMULATED_SENTENCE = (
    "emulated processors (QEMU's TCG): speeds measure the emulator, compare them with nothing; what a kernel "
    "takes and how often it flushes holds"
)


@dataclass(frozen=True)
class CellLabel:
    """`panel` is the heat map in which the cell is a square; the blocks are its row and column.

    Block sizes in bytes stand beside their labels to be sorted by; None where it is not known. A cell whose
    engine has no blocks to choose has no database block: its label is empty.
    """

    panel: str
    filesystem_block: str
    filesystem_block_bytes: int | None
    database_block: str
    database_block_bytes: int | None
    throttle: str | None
    latency: str | None = None

    @property
    def emulated_device(self) -> str:
        """What slows its device: a throttle, latency, both; empty of a real one."""
        return " and ".join(filter(None, (self.throttle, self.latency)))

    @property
    def full(self) -> str:
        """The whole name on one line."""
        return f"{self.panel} · {self.blocks}"

    @property
    def blocks(self) -> str:
        """`fs 4 KiB · db 8 KiB`; without a database block the first of them alone."""
        database = f" · db {self.database_block}" if self.database_block else ""
        return f"fs {self.filesystem_block}{database}"


def label_cells(cells: Iterable[Cell], effective_blocks: Mapping[str, int]) -> dict[str, CellLabel]:
    """Labels by cell id: the variant, and whatever else varies between these cells.

    Where one factor at a time departs from what most cells have, the departures are named and the rest is not.
    `effective_blocks` are file system block sizes by cell id, read back where none was requested.
    """
    known = list(cells)
    labels = _labels(known, effective_blocks, brief=True)
    if len({label.full for label in labels.values()}) < len({cell.id for cell in known}):
        return _labels(known, effective_blocks, brief=False)
    return labels


def _labels(known: list[Cell], effective_blocks: Mapping[str, int], *, brief: bool) -> dict[str, CellLabel]:
    engines = dict.fromkeys(cell.build.engine for cell in known)
    # What one engine is told says nothing of another's cells.
    alike = {name: [cell for cell in known if cell.build.engine == name] for name in engines}
    varying = {name: _varying(cells) for name, cells in alike.items()}
    usual = {name: _usual(cells, varying[name]) if brief else {} for name, cells in alike.items()}
    return {
        cell.id: CellLabel(
            panel=" ".join(
                [
                    cell.variant,
                    *([engine_model(cell.build.engine).label] if len(engines) > 1 else []),
                    *_other_levels(cell, varying[cell.build.engine], usual[cell.build.engine]),
                ]
            ),
            filesystem_block=_block_label(cell.filesystem.block_size_bytes, effective_blocks.get(cell.id)),
            filesystem_block_bytes=cell.filesystem.block_size_bytes or effective_blocks.get(cell.id),
            database_block=format_size(size) if (size := cell.database_block_bytes) else "",
            database_block_bytes=cell.database_block_bytes,
            throttle=cell.device.throttle.name if cell.device.throttle else None,
            latency=cell.device.latency.label if cell.device.latency else None,
        )
        for cell in known
    }


def effective_block_bytes(record: VisitRecord) -> int | None:
    """The file system's block size as a visit read it back."""
    for comparison in record.comparisons:
        if comparison.name == FILESYSTEM_BLOCK and isinstance(comparison.effective, int):
            return comparison.effective
    return None


def study_marks(cells: Iterable[Cell], records: Iterable[VisitRecord]) -> tuple[str, ...]:
    """Sentences that must stand beside every figure of a study: emulation and image files."""
    marks = []
    known, visits = list(cells), list(records)
    if any(record.emulated for record in visits):
        marks.append(EMULATED_SENTENCE)
    throttles = sorted({cell.device.throttle.name for cell in known if cell.device.throttle})
    if throttles:
        marks.append(
            f"emulated device ({', '.join(throttles)}): IOPS and bandwidth are limited, "
            "the latency of a flush is not"
        )
    emulated = {cell.device.latency for cell in known if cell.device.latency}
    disks = sorted(latency.name for latency in emulated if latency.disk)
    if disks:
        marks.append(
            f"modelled disk ({'; '.join(disks)}): seeks, rotation, queue and caches are computed, in user space, and the data is in memory"
        )
    latencies = sorted(latency.name for latency in emulated if not latency.disk)
    if latencies:
        marks.append(
            f"emulated device ({'; '.join(latencies)}): what requests and flushes take is drawn, in user space, and the data "
            "is in memory"
        )
    # What is cut, or fails, stands in memory: an image only shows what the cell's levels come to.
    if any(
        stands_on_image(record) and not model_of(record.dataset.workload).has_own_disk for record in visits
    ):
        below = "virtio disk" if any(record.accelerator for record in visits) else "loop device"
        marks.append(f"image file: the figures include the host's file system and the {below}")
    kernels = sorted({record.provenance["kernel"] for record in visits if "kernel" in record.provenance})
    if len(kernels) > 1 and not varies_the_kernel(known):
        marks.append(
            f"kernels differ ({', '.join(kernels)}) and are no factor of the plan: between cells of two "
            "kernels no difference is the file system's alone"
        )
    return tuple(marks)


def varies_the_kernel(cells: Iterable[Cell]) -> bool:
    """Whether some two cells differ in nothing but the kernel: then it is a factor."""
    known = set(cells)
    return len({replace(cell, kernel=KernelLevels()) for cell in known}) < len(known)


def stands_on_image(record: VisitRecord) -> bool:
    """True where the scratch device was an image file, on a loop device or behind a guest's disk."""
    kinds = (str(record.device_facts.get("kind", "")), record.provenance.get("disk", ""))
    return any(kind.startswith("image file") for kind in kinds)


def _varying(cells: list[Cell]) -> tuple[str, ...]:
    levels = [cell.levels for cell in cells]
    elsewhere = (*_SHOWN_ELSEWHERE, *database_block_levels())
    names = sorted({name for found in levels for name in found if not name.startswith(elsewhere)})
    return tuple(name for name in names if len({repr(found.get(name)) for found in levels}) > 1)


def _usual(cells: list[Cell], varying: tuple[str, ...]) -> dict[str, str]:
    """By factor the level that more than half of the cells have, as text; none where the factors are crossed."""
    levels = [cell.levels for cell in cells]
    counts = {name: Counter(repr(found.get(name)) for found in levels) for name in varying}
    crossed = len({cell.variant for cell in cells}) * prod(map(len, counts.values()))
    if 2 * len(cells) > crossed:
        return {}
    most = {name: count.most_common(1)[0] for name, count in counts.items()}
    return {name: level for name, (level, n) in most.items() if 2 * n > len(cells)}


def _other_levels(cell: Cell, varying: tuple[str, ...], usual: Mapping[str, str]) -> list[str]:
    levels = cell.levels
    return [
        _level_label(name, levels.get(name)) for name in varying if usual.get(name) != repr(levels.get(name))
    ]


def _level_label(name: str, value: Scalar | None) -> str:
    short = (
        "kernel" if name == _KERNEL else name.removeprefix("cluster.settings.").rsplit(".", maxsplit=1)[-1]
    )
    if value is None:
        return f"default {short}"
    if name == _OWN_CONFIGURATION:
        return "own postgresql.conf"
    if short.endswith("_bytes") and isinstance(value, int):
        return f"{short.removesuffix('_bytes')}={format_size(value)}"
    if isinstance(value, bool):
        return short if value else f"no {short}"
    return f"{short}={value}"


def _block_label(asked: int | None, effective: int | None) -> str:
    if asked is not None:
        return format_size(asked)
    return f"{DEFAULT_BLOCK}, {format_size(effective)}" if effective else DEFAULT_BLOCK
