"""`type = "power_cut"` in a plan: datasets that are recorded, and one run of cuts on each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator

from bedplate import registry
from bedplate.cuts.records import (
    AT_ONCE,
    COMPLETIONS,
    CONTROLS,
    DEFAULT_PROFILES,
    DEVICE_UNIT,
    DURATION_S,
    EXHAUSTIVE,
    HAS_FUA,
    IMAGE_BYTES,
    JOURNAL_KEPT,
    JOURNAL_LOST,
    KEEP_ALL,
    KEEP_BAD,
    KEEP_SMALL,
    LARGE_SECTOR_BYTES,
    LATE,
    PLACED,
    PLACED_POINTS,
    PLAN_PROFILES,
    POINTS_DEFAULT,
    PRESSED,
    RAM_JOURNAL,
    RECUT,
    RECUTS_EACH,
    SECTOR_BYTES,
    SOUGHT_POINTS,
    STATES,
    UNIT_PROFILES,
    USUAL_SECTOR_BYTES,
    WORKLOAD,
    Profile,
    recoveries_for,
)
from bedplate.model.cell import Cell, RunSpec, engine_model
from bedplate.model.engines import ENGINE, POSTGRESQL
from bedplate.model.filesystem import TRAITS
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import Load, PlannedWorkload, model_of
from bedplate.plan import values
from bedplate.plan.estimate import FILESYSTEM_OVERHEAD_BYTES, WorkloadEstimate
from bedplate.plan.fields import ChosenCells, Count, Departures, Duration, Factor, Flag, Seed, within
from bedplate.plan.table import WorkloadTable
from bedplate.plan.words import joined
from bedplate.units import GIB, KIB, MIB, size_in_kb

RUN_NAME = "power-cut"

# Those that have a writer and an oracle.
CUT_ENGINES = registry.engines_with(WORKLOAD)

RAM_JOURNALS = (JOURNAL_LOST, JOURNAL_KEPT)

COMPLETIONS_OF = (AT_ONCE, LATE)

SECTOR_SIZES = (USUAL_SECTOR_BYTES, LARGE_SECTOR_BYTES)

KEPT_LOGS = (KEEP_SMALL, KEEP_ALL, KEEP_BAD)

PROFILES = tuple(profile.value for profile in PLAN_PROFILES)

NO_UNIT: Literal["none"] = "none"


def _device_unit(value: Any) -> int | str:
    """A unit in bytes, or none."""
    if value == NO_UNIT:
        return NO_UNIT
    try:
        return values.power_of_two(tuple(UNIT_PROFILES), value)
    except ValueError as error:
        raise ValueError(f"{error}, {NO_UNIT}") from error


CutEngine: TypeAlias = Annotated[str, within(values.one_of, CUT_ENGINES)]

SoughtPoints: TypeAlias = Annotated[int, within(values.whole_number, 0, 100_000)]

DeviceUnit: TypeAlias = Annotated[
    int | Literal["none"],
    within(
        _device_unit,
        form=values.either({"enum": [NO_UNIT]}, values.FORMS[values.power_of_two](tuple(UNIT_PROFILES))),
    ),
]

States: TypeAlias = Annotated[int, within(values.whole_number, 0, 100_000)]

CutProfiles: TypeAlias = Annotated[tuple[str, ...], within(values.some_of, PROFILES)]

# Less than a page is no cache; more than this no device has, and the window stands in memory.
# In memory, as often as points are worked on at once.
CutImage: TypeAlias = Annotated[int, within(values.size, values.SMALLEST_CUT_IMAGE_BYTES, 16 * GIB)]


class PowerCutTable(WorkloadTable):
    """`[[workload]]` of type power_cut: a short recording, cut at many points."""

    type: Literal["power_cut"] = Field(description="power_cut")
    engine: Factor[CutEngine] = (POSTGRESQL,)
    """load | `postgresql`, `lmdb`, `sqlite`, `mariadb`, `own-engine`: set up as in `[postgresql]`, `[lmdb]`, `[sqlite]`, `[mariadb]` and `[engine]` | `"postgresql"` | `{ vary = ["postgresql", "lmdb"] }`"""
    points: Annotated[int, within(values.whole_number, 1, 100_000)] = POINTS_DEFAULT
    """measure | 1 to 100000, one for each profile at least: how often the power is cut | `160` | `60`"""
    sought: SoughtPoints = SOUGHT_POINTS
    """measure | 0 to 100000: how often more the power is cut, at positions where metadata of the file system waits that a cut can
    tear. With late `completions` also behind flushes that met writes on their way. Each once with sectors of 512 bytes and once with 4 KiB,
    or once as a `device_unit` leaves it. Where the recording has no such
    position, or no profile tears, there are none, and the page says how many and why | `24` | `0`"""
    placed: SoughtPoints = PLACED_POINTS
    """measure | 0 to 100000: how often more the power is cut at most, where the order of what the engine does shows: behind commits of the file
    system that may have one change of names or sizes and not the next, each kind of such pairs in turn, the rarest first, and where file blocks
    are written over. They show what can happen, and not how often | `36` | `100`"""
    states: States = 0
    """measure | 0 to 100000: how often more the power is cut, each time to try one more state that a window between two flushes can
    leave. Of windows of up to 12 writes every subset, or a drawn part where these are more than half of this number. Of larger windows each
    write and each block of 4 KiB by itself missing or kept, and drawn subsets | `0` | `3000`"""
    recut: SoughtPoints = 0
    """measure | 0 to 100000: how often the power is cut again while file system and engine recover from an earlier cut. Each such
    recovery is recorded once and cut some 8 times; a cut in recovery takes longer than another | `0` | `40`"""
    exhaustive: SoughtPoints = 0
    """measure | 0 to 100000: how often more, at most, the power is cut in recoveries of up to 300 writes: behind every write, and with each write
    alone that came since a flush. What is left is for third cuts: behind every write of recoveries from such second cuts. A recovery
    is cut so only as a whole; each further 300 cuts are for one more recovery. They show what can happen, and not how often | `0` | `600`"""
    profiles: CutProfiles = tuple(profile.value for profile in DEFAULT_PROFILES)
    """measure | a list, `ordered` among them, of what the device makes of the writes after its last flush. `subset-4k` and
    `subset-512` keep each block of that size or not, by chance, and `whole` each write. `lost` keeps none, `ordered` all of them, as a
    cache does that power cannot take | `["subset-4k", "subset-512", "lost", "ordered"]` | `["lost", "ordered"]`"""
    device_unit: DeviceUnit = NO_UNIT
    """measure | `8 kB`, `16 kB`: what the cut device is said to write whole: a write of a power of two, aligned to itself and no longer;
    every other tears at 4 KiB. In place of the profiles that tear; the verdict is one on such a device, and no class of the cell |
    `"none"` | `"16 kB"`"""
    cache_bytes: Annotated[int, within(values.size, 4 * KIB, GIB)] = 8 * MIB
    """measure | 4 kB to 1 GB: the most that the device's cache holds; older writes count as written | `"8 MB"` | `"256 kB"`"""
    seed: Seed | None = None
    """measure | a whole number: draws the points, and what is kept at each | the plan's | `7`"""
    duration: Factor[Duration] = (DURATION_S,)
    """load | the time that is recorded, whole seconds; in its last two fifths others write to the file system too | `"20 s"` | `"60
    s"`"""
    clients: Factor[Count] = (2,)
    """load | sessions at once | `2` | `4`"""
    image_size: Factor[CutImage] = (IMAGE_BYTES,)
    """load | 128 MB to 16 GB: size of the recorded disk. It is in memory, sparse, once for each point that is worked on. On a
    small one Btrfs lacks room for metadata, and tears pages even in order | `"4 GB"` | `"512 MB"`"""
    ram_journal: Factor[Annotated[str, within(values.one_of, RAM_JOURNALS)]] = (JOURNAL_LOST,)
    """load | `lost`: an external journal in RAM is gone at the cut, as it would be; `kept`: it is cut like the disk, as if it were on a separate
    device | `"lost"` | `"kept"`"""
    press_dirty_pages: Factor[Flag] = (False,)
    """load | `true`: what the engine has dirty is written back all the while, each 30 ms. Without it what nobody syncs stays in memory for
    longer than a recording, and a cut finds it lost, and hardly ever damaged | `false` | `true`"""
    completions: Factor[Annotated[str, within(values.one_of, COMPLETIONS_OF)]] = (AT_ONCE,)
    """load | `at once`: the recorded disk answers each write when it comes. `late`: up to 2 ms later, so that several are under way at
    once and come to their end in any order, and a flush covers only what was complete before it; slower to record | `"at once"` |
    `{ vary = ["at once", "late"] }`"""
    sector_size: Factor[Annotated[int, within(values.power_of_two, SECTOR_SIZES)]] = (USUAL_SECTOR_BYTES,)
    """load | `512 B`, `4 kB`: sectors of the recorded disk, by which mkfs chooses; no write is smaller. Of 4 kB there is no
    `subset-512` | `"512 B"` | `"4 kB"`"""
    fua: Factor[Flag] = (False,)
    """load | `true`: as a disk leaves it that can write past its cache (FUA). What is written so is on the medium, and no flush behind it
    covers anything else, but where somebody else waited for one. Needs a kernel that reports such requests | `false` |
    `{ vary = [false, true] }`"""
    keep_logs: Annotated[str, within(values.one_of, KEPT_LOGS)] = KEEP_SMALL
    """measure | the write log of a recording without a bad cut: `small` keeps it if it packs to 32 MB or less, `all` always, `bad`
    never. The log of a recording with a bad cut is always kept | `"small"` | `"all"`"""
    cells: ChosenCells = ()
    """– | the cells that it runs in: a list of tables, each of what differs from the plan's first cell of that engine (below) |
    every cell of its engines | `[{ filesystem.barrier = false }]`"""

    @model_validator(mode="after")
    def _can_be_judged(self) -> PowerCutTable:
        reasons = []
        if Profile.ORDERED.value not in self.profiles:
            reasons.append(
                f'profiles lack "{Profile.ORDERED.value}": only cuts in order show that a recording is whole, and without them '
                "no verdict is made; add it"
            )
        if self.points < len(self.profiles):
            reasons.append(
                f"points = {self.points} leave some of {len(self.profiles)} profiles without a cut: give "
                f"{len(self.profiles)} or more, or name fewer profiles"
            )
        if self.device_unit != NO_UNIT and self.states:
            reasons.append(
                "states are of a device that writes 4 KiB whole, and a device_unit makes it another one. Leave one of the two out, or "
                f"put it into a second workload with another number of points ({self.points + 1}), which is a recording of its own"
            )
        if Profile.SUBSET_512.value in self.profiles_drawn() and LARGE_SECTOR_BYTES in self.sector_size:
            reasons.append(
                f'"{Profile.SUBSET_512.value}" tears sectors of 512 bytes, and sector_size has some of '
                f"{size_in_kb(LARGE_SECTOR_BYTES)}: leave one of the two out, or put it into a second workload"
            )
        if reasons:
            raise ValueError(joined(reasons))
        return self

    def profiles_drawn(self) -> tuple[str, ...]:
        """Those that were named; else those that every sector size of the workload can have."""
        if "profiles" in self.model_fields_set or LARGE_SECTOR_BYTES not in self.sector_size:
            return self.profiles
        return tuple(name for name in self.profiles if name != Profile.SUBSET_512.value)

    dataset_key: ClassVar[str] = ".engine"
    loaded_twice: ClassVar[str] = (
        "a recording has one list of cuts: leave this workload out, or give it another number of points, and it is a recording of its own"
    )

    def run_count(self) -> int:
        """One."""
        return 1

    def engines(self) -> tuple[str, ...]:
        """Those that are asked."""
        return self.engine

    def planned(self, seed: int, defaults: int) -> PlannedWorkload:  # noqa: ARG002 -- its defaults have one version
        """Every combination of its factors is a dataset, by the names that the workload reads: in bytes and seconds."""
        found = tuple(map(_without_default, self.datasets()))
        return PlannedWorkload(self.type, (), (power_cut_run(self, seed),), found)

    def cells_named(self) -> tuple[Departures, ...]:
        """Its `cells`."""
        return self.cells

    def dataset_factors(self) -> Mapping[str, tuple[Scalar, ...]]:
        """What tells its datasets apart: each is a recording of its own.

        Runs belong to a dataset, whatever the cell. So the number of points, in which workloads of a plan differ by cell,
        is part of what tells them apart.
        """
        return {
            ENGINE: self.engine,
            "image_bytes": self.image_size,
            "clients": self.clients,
            "duration_s": self.duration,
            RAM_JOURNAL: self.ram_journal,
            PRESSED: self.press_dirty_pages,
            COMPLETIONS: self.completions,
            SECTOR_BYTES: self.sector_size,
            HAS_FUA: self.fua,
            "points": (self.points,),
            RECUT: (self.recut,),
            EXHAUSTIVE: (self.exhaustive,),
        }


def power_cut_run(table: PowerCutTable, seed: int) -> RunSpec:
    """The cuts of one recording; `seed` is the plan's, where the table has none of its own."""
    levels: dict[str, Scalar] = {
        "points": table.points,
        "profiles": ",".join(table.profiles_drawn()),
        "cache_bytes": table.cache_bytes,
        "seed": seed if table.seed is None else table.seed,
    }
    if table.keep_logs != KEEP_SMALL:
        levels["keep_logs"] = table.keep_logs
    # Runs of earlier plans keep their names.
    if table.sought != SOUGHT_POINTS:
        levels["sought"] = table.sought
    if table.placed != PLACED_POINTS:
        levels[PLACED] = table.placed
    if table.device_unit != NO_UNIT:
        levels[DEVICE_UNIT] = table.device_unit
    if table.states:
        levels[STATES] = table.states
    if table.recut:
        levels[RECUT] = table.recut
    if table.exhaustive:
        levels[EXHAUSTIVE] = table.exhaustive
    return RunSpec(RUN_NAME, WORKLOAD, Levels(levels))


def _without_default(levels: Levels) -> Levels:
    """Without what says what holds anyway: datasets of earlier plans keep their names."""
    usual = {
        RAM_JOURNAL: JOURNAL_LOST,
        PRESSED: False,
        COMPLETIONS: AT_ONCE,
        SECTOR_BYTES: USUAL_SECTOR_BYTES,
        HAS_FUA: False,
        RECUT: 0,
        EXHAUSTIVE: 0,
    }
    return Levels({name: level for name, level in levels.items() if usual.get(name) != level})


PLAN = PowerCutTable

# What it takes to make the file system and the engine's data, and to read the log: 2 to 3 s on idle cores.
_RECORDING_OVERHEAD_S = 3.0

# On an emulated processor: 38 visits of LMDB with 106 cuts each took 86 min (docs/FINDINGS.md).
_EMULATED_TIMES = 5.0


class PowerCutEstimate(WorkloadEstimate):
    """The recorded disk stands in memory; on the device is no more than the new cluster that tells the settings."""

    def run_seconds(self, cell: Cell, load: Load, run: RunSpec, *, emulated: bool) -> float:
        """The recording, and each of its cuts: those that are drawn, sought or enumerated, the controls, and those in recovery."""
        levels = load.dataset.levels
        points_per_s = engine_model(model_of(WORKLOAD).engine_of(levels)).cuts_per_s
        sought, placed = run.levels.integer("sought"), run.levels.integer(PLACED)
        points = (
            (run.levels.integer("points") or 0)
            + (SOUGHT_POINTS if sought is None else sought)
            + (PLACED_POINTS if placed is None else placed)
            + (run.levels.integer(STATES) or 0)
            + CONTROLS
        )
        again, every = run.levels.integer(RECUT) or 0, run.levels.integer(EXHAUSTIVE) or 0
        recoveries = max(-(-again // RECUTS_EACH), recoveries_for(every))
        # Of each recovery two more are asked about: the one that is recorded, and the whole of it.
        points += again + every + 2 * recoveries
        cut_s = 1 / points_per_s + TRAITS[cell.filesystem.type].recovery_s
        worked_s = _RECORDING_OVERHEAD_S + points * cut_s
        return (levels.number("duration_s") or 0.0) + worked_s * (_EMULATED_TIMES if emulated else 1.0)

    def dataset_bytes(self, cell: Cell, load: Load) -> float:  # noqa: ARG002 -- in memory
        """Nothing."""
        return 0.0

    def device_bytes(self, cell: Cell, load: Load) -> int:  # noqa: ARG002 -- in memory
        """Without a server nothing but the file system."""
        return (2 if cell.build.engine in registry.engines_with("server") else 1) * FILESYSTEM_OVERHEAD_BYTES


ESTIMATE = PowerCutEstimate()
