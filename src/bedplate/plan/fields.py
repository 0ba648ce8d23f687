"""The types that the schema is written in: each checks its own value, and a factor its levels."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, PlainValidator

from bedplate.model.cell import JOURNAL_IN_RAM, JOURNAL_ON_DEVICE, Throttle
from bedplate.model.engines import CUT_ENGINES
from bedplate.model.filesystem import TRAITS, feature_levels
from bedplate.model.plan import Scale
from bedplate.model.tpch import DRAWN, VALIDATION
from bedplate.plan import settings, values, words
from bedplate.plan.chosen_cells import Departures, departures
from bedplate.plan.lmdb_runs import LMDB_PREALLOCATIONS, LMDB_SYNC_MODES, LMDB_TESTS
from bedplate.plan.power_cut_runs import KEPT_LOGS, PROFILES, RAM_JOURNALS
from bedplate.plan.raw_runs import FioRun, fio_jobs
from bedplate.plan.scale import DATABASE_BLOCK_SIZES
from bedplate.plan.words import shown
from bedplate.units import GIB, KIB, MIB, TIB


def _levels(value: Any) -> tuple[Any, ...]:
    """A bare value is one level; `{ vary = [...] }` is several."""
    if not (isinstance(value, dict) and "vary" in value):
        return (value,)
    if set(value) != {"vary"}:
        raise ValueError("vary stands alone in its table: { vary = [first, second] }")
    if not isinstance(value["vary"], list) or not value["vary"]:
        raise ValueError("vary takes a list with at least one level: { vary = [first, second] }")
    return tuple(value["vary"])


def _distinct(levels: tuple[Any, ...]) -> tuple[Any, ...]:
    seen: set[Any] = set()
    twice = sorted({shown(level) for level in levels if level in seen or seen.add(level)})  # type: ignore[func-returns-value]
    if twice:
        raise ValueError(f"the level {', '.join(twice)} is listed twice")
    return levels


Level = TypeVar("Level")
# Always the tuple of levels, one for a bare value; the empty tuple of a default is "not asked for".
Factor: TypeAlias = Annotated[tuple[Level, ...], BeforeValidator(_levels), AfterValidator(_distinct)]


def _within(check: Any, *bounds: Any) -> PlainValidator:
    return PlainValidator(lambda value: check(*bounds, value))


Title: TypeAlias = Annotated[str, PlainValidator(values.title)]
Repetitions: TypeAlias = Annotated[int, _within(values.whole_number, 1, 1000)]
Seed: TypeAlias = Annotated[int, _within(values.whole_number, 0, 2**53 - 1)]
Executor: TypeAlias = Annotated[str, _within(values.one_of, values.EXECUTORS)]
Flag: TypeAlias = Annotated[bool, PlainValidator(values.flag)]
ImageSize: TypeAlias = Annotated[int, _within(values.size, values.SMALLEST_IMAGE_BYTES, 16 * TIB)]
Memory: TypeAlias = Annotated[int, _within(values.size, values.SMALLEST_MEMORY_BYTES, 64 * TIB)]
ThrottleLevel: TypeAlias = Annotated[Throttle, PlainValidator(values.throttle)]
DeviceName: TypeAlias = Annotated[str, PlainValidator(values.device)]
ReadAhead: TypeAlias = Annotated[int, PlainValidator(values.read_ahead_kb)]
Scheduler: TypeAlias = Annotated[str, _within(values.one_of, words.SCHEDULERS)]
FilesystemType: TypeAlias = Annotated[str, _within(values.one_of, tuple(TRAITS))]
_FILESYSTEM_BLOCKS = tuple(sorted({size for traits in TRAITS.values() for size in traits.block_sizes}))
FilesystemBlock: TypeAlias = Annotated[int, _within(values.power_of_two, _FILESYSTEM_BLOCKS)]
MountOptions: TypeAlias = Annotated[tuple[str, ...], PlainValidator(values.mount_options)]
MkfsOptions: TypeAlias = Annotated[tuple[str, ...], PlainValidator(values.mkfs_options)]
# What only some types know, by the name of the key.
FEATURES = {
    name: Annotated[str | bool, _within(values.feature, levels)] for name, levels in feature_levels().items()
}
Journal: TypeAlias = Annotated[str, _within(values.one_of, ("internal", "external", "none"))]
JournalDevice: TypeAlias = Annotated[str, _within(values.one_of, (JOURNAL_IN_RAM, JOURNAL_ON_DEVICE))]
JournalSize: TypeAlias = Annotated[int, _within(values.size, values.SMALLEST_JOURNAL_BYTES, 64 * GIB)]
Kernel: TypeAlias = Annotated[str, PlainValidator(values.kernel)]
VisitsPerBoot: TypeAlias = Annotated[int, _within(values.whole_number, 1, 1000)]
Version: TypeAlias = Annotated[str, PlainValidator(values.version)]
DatabaseBlock: TypeAlias = Annotated[int, _within(values.power_of_two, DATABASE_BLOCK_SIZES)]
WalBlock: TypeAlias = Annotated[int, _within(values.power_of_two, (*DATABASE_BLOCK_SIZES, 64 * KIB))]
Configuration: TypeAlias = Annotated[str, PlainValidator(values.configuration)]
SettingName: TypeAlias = Annotated[str, AfterValidator(settings.setting_name)]
SettingValue: TypeAlias = Annotated[str, PlainValidator(settings.setting_value)]
ScaleLevel: TypeAlias = Annotated[Scale, PlainValidator(values.scale)]
RunName: TypeAlias = Annotated[str, PlainValidator(values.run_name)]
ScriptLevel: TypeAlias = Annotated[values.Script, PlainValidator(values.script)]
Count: TypeAlias = Annotated[int, _within(values.whole_number, 1, 10_000)]
WarmUp: TypeAlias = Annotated[float | str, PlainValidator(values.warmup)]
Duration: TypeAlias = Annotated[float, _within(values.duration, 1)]
Rate: TypeAlias = Annotated[float | None, PlainValidator(values.rate)]
Protocol: TypeAlias = Annotated[str, _within(values.one_of, values.PROTOCOLS)]
ScaleFactor: TypeAlias = Annotated[float, PlainValidator(values.scale_factor)]
Passes: TypeAlias = Annotated[tuple[str, ...], PlainValidator(values.passes)]
Streams: TypeAlias = Annotated[int, _within(values.whole_number, 0, 100)]
QueryParameters: TypeAlias = Annotated[str, _within(values.one_of, (VALIDATION, DRAWN))]
LmdbEntries: TypeAlias = Annotated[int, _within(values.whole_number, 1000, 10**12)]
# LMDB itself refuses a value of 4 GiB, in its own words.
LmdbValue: TypeAlias = Annotated[int, _within(values.size, 1, 8 * GIB)]
LmdbMap: TypeAlias = Annotated[int, _within(values.size, MIB, 64 * TIB)]
LmdbTests: TypeAlias = Annotated[tuple[str, ...], _within(values.some_of, LMDB_TESTS)]
SyncMode: TypeAlias = Annotated[str, _within(values.one_of, LMDB_SYNC_MODES)]
Preallocation: TypeAlias = Annotated[str, _within(values.one_of, LMDB_PREALLOCATIONS)]
FileSize: TypeAlias = Annotated[int | str, PlainValidator(values.file_size)]
ChunkSize: TypeAlias = Annotated[int, _within(values.power_of_two, tuple(2**n for n in range(12, 21)))]
PerCharacter: TypeAlias = Annotated[int, PlainValidator(values.per_character)]
FileCount: TypeAlias = Annotated[int, PlainValidator(values.file_count)]
FioJobs: TypeAlias = Annotated[tuple[FioRun, ...], PlainValidator(fio_jobs)]
ChosenCells: TypeAlias = Annotated[tuple[Departures, ...], PlainValidator(departures)]
CutEngine: TypeAlias = Annotated[str, _within(values.one_of, CUT_ENGINES)]
CutPoints: TypeAlias = Annotated[int, _within(values.whole_number, 1, 100_000)]
SoughtPoints: TypeAlias = Annotated[int, _within(values.whole_number, 0, 100_000)]
CutProfiles: TypeAlias = Annotated[tuple[str, ...], _within(values.some_of, PROFILES)]
RamJournal: TypeAlias = Annotated[str, _within(values.one_of, RAM_JOURNALS)]
KeptLogs: TypeAlias = Annotated[str, _within(values.one_of, KEPT_LOGS)]
# Less than a page is no cache; more than this no device has, and the window stands in memory.
CacheBytes: TypeAlias = Annotated[int, _within(values.size, 4 * KIB, GIB)]
# In memory, as often as points are worked on at once.
CutImage: TypeAlias = Annotated[int, _within(values.size, values.SMALLEST_CUT_IMAGE_BYTES, 16 * GIB)]
CanaryEvery: TypeAlias = Annotated[float, _within(values.duration, 60)]
