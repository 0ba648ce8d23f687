"""The types that the schema is written in: each checks its own value, and a factor its levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, PlainValidator

from bedplate.model.cell import JOURNAL_IN_RAM, JOURNAL_ON_DEVICE, UNTORN_LEVELS, Throttle
from bedplate.model.devices.latency import Latency
from bedplate.model.filesystem import AGE_PROFILES, FILLS, FRESH, TRAITS, feature_levels
from bedplate.model.kept_dataset import DATASETS
from bedplate.plan import values, words
from bedplate.plan.chosen_cells import Departures, departures
from bedplate.plan.emulated.latency_values import latency
from bedplate.plan.words import shown
from bedplate.units import GIB, TIB


def levels_of(value: Any) -> tuple[Any, ...]:
    """A bare value is one level; `{ vary = [...] }` is several."""
    if isinstance(value, list):
        raise ValueError(f"one key has one level; several are written {{ vary = {shown(value)} }}")
    return _levels_of_lists(value)


def _levels_of_lists(value: Any) -> tuple[Any, ...]:
    """The same of a factor whose level is a list."""
    if not (isinstance(value, dict) and "vary" in value):
        return (value,)
    if set(value) != {"vary"}:
        raise ValueError("vary is alone in its table: { vary = [first, second] }")
    if not isinstance(value["vary"], list) or not value["vary"]:
        raise ValueError("vary takes a list with at least one level: { vary = [first, second] }")
    return tuple(value["vary"])


def distinct_levels(levels: tuple[Any, ...]) -> tuple[Any, ...]:
    """The levels; ValueError where one is there twice, or is a table or a list where nothing has looked at it yet."""
    seen: set[Any] = set()
    try:
        twice = sorted({shown(level) for level in levels if level in seen or seen.add(level)})  # type: ignore[func-returns-value]
    except TypeError:
        raise ValueError("each level is one text, one number, true or false") from None
    if twice:
        raise ValueError(f"the level {', '.join(twice)} is listed twice")
    return levels


Level = TypeVar("Level")
# Always the tuple of levels, one for a bare value; the empty tuple of a default is "not asked for".
Factor: TypeAlias = Annotated[tuple[Level, ...], BeforeValidator(levels_of), AfterValidator(distinct_levels)]
ListFactor: TypeAlias = Annotated[
    tuple[Level, ...], BeforeValidator(_levels_of_lists), AfterValidator(distinct_levels)
]


def one_or_varied(value: Any) -> tuple[Any, ...]:
    """The levels of a key within a table that is read as a whole; ValueError where one is there twice."""
    return distinct_levels(levels_of(value))


def varies(metadata: Sequence[Any]) -> bool:
    """Whether what pydantic knows of a field makes it a factor."""
    before = (each.func for each in metadata if isinstance(each, BeforeValidator))
    return any(func in (levels_of, _levels_of_lists) for func in before)


def within(check: Any, *bounds: Any) -> PlainValidator:
    """A check of `values` with its bounds, as the type of a key."""
    return PlainValidator(lambda value: check(*bounds, value))


ChosenCells: TypeAlias = Annotated[tuple[Departures, ...], PlainValidator(departures)]
Title: TypeAlias = Annotated[str, PlainValidator(values.title)]
Repetitions: TypeAlias = Annotated[int, within(values.whole_number, 1, 1000)]
Seed: TypeAlias = Annotated[int, within(values.whole_number, 0, 2**53 - 1)]
Executor: TypeAlias = Annotated[str, within(values.one_of, values.EXECUTORS)]
DatasetBy: TypeAlias = Annotated[str, within(values.one_of, DATASETS)]
Flag: TypeAlias = Annotated[bool, PlainValidator(values.flag)]
ImageSize: TypeAlias = Annotated[int, within(values.size, values.SMALLEST_IMAGE_BYTES, 16 * TIB)]
Memory: TypeAlias = Annotated[int, within(values.size, values.SMALLEST_MEMORY_BYTES, 64 * TIB)]
ThrottleLevel: TypeAlias = Annotated[Throttle, PlainValidator(values.throttle)]
LatencyLevel: TypeAlias = Annotated[Latency, PlainValidator(latency)]
DeviceName: TypeAlias = Annotated[str, PlainValidator(values.device)]
ReadAhead: TypeAlias = Annotated[int, PlainValidator(values.read_ahead_kb)]
Scheduler: TypeAlias = Annotated[str, within(values.one_of, words.SCHEDULERS)]
FilesystemType: TypeAlias = Annotated[str, within(values.one_of, tuple(TRAITS))]
_FILESYSTEM_BLOCKS = tuple(sorted({size for traits in TRAITS.values() for size in traits.block_sizes}))
FilesystemBlock: TypeAlias = Annotated[int, within(values.power_of_two, _FILESYSTEM_BLOCKS)]
MountOptions: TypeAlias = Annotated[tuple[str, ...], PlainValidator(values.mount_options)]
MkfsOptions: TypeAlias = Annotated[tuple[str, ...], PlainValidator(values.mkfs_options)]
# What only some types know, by the name of the key.
FEATURES = {
    name: Annotated[str | bool, within(values.feature, levels)] for name, levels in feature_levels().items()
}
Fill: TypeAlias = Annotated[str, within(values.one_of, (FRESH, *FILLS))]
Aged: TypeAlias = Annotated[str, within(values.one_of, (FRESH, *AGE_PROFILES))]
Journal: TypeAlias = Annotated[str, within(values.one_of, ("internal", "external", "none"))]
JournalDevice: TypeAlias = Annotated[str, within(values.one_of, (JOURNAL_IN_RAM, JOURNAL_ON_DEVICE))]
JournalSize: TypeAlias = Annotated[int, within(values.size, values.SMALLEST_JOURNAL_BYTES, 64 * GIB)]
VisitsPerBoot: TypeAlias = Annotated[int, within(values.whole_number, 1, 1000)]
RunName: TypeAlias = Annotated[str, PlainValidator(values.run_name)]
Count: TypeAlias = Annotated[int, within(values.whole_number, 1, 10_000)]
Duration: TypeAlias = Annotated[float, within(values.duration, 1)]
Passes: TypeAlias = Annotated[tuple[str, ...], PlainValidator(values.passes)]
CanaryEvery: TypeAlias = Annotated[float, within(values.duration, 60)]
UntornWrites: TypeAlias = Annotated[str, within(values.one_of, UNTORN_LEVELS)]
