"""The types that the schema is written in: each checks its own value, and a factor its levels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator

from bedplate.model.cell import UNTORN_LEVELS, RunSpec
from bedplate.model.filesystem import TRAITS, feature_levels
from bedplate.model.levels import Levels, Scalar
from bedplate.model.machine import CONTROLLER_DEADLINE_S, DIFFERING, LOCAL_DIRECTORY
from bedplate.model.plan import CellChoice, Plan, PlannedWorkload
from bedplate.plan import values
from bedplate.plan.table import EngineTable, PlanTable, combination_count, combinations, engine_tables
from bedplate.plan.values import TEXT, Form
from bedplate.plan.words import in_quotes
from bedplate.units import TIB

MOST_TABLES = 1000

# What a table asks for: names of levels as a cell has them, each with those that it takes.
Departures: TypeAlias = tuple[tuple[str, tuple[Scalar, ...]], ...]


def departures(value: object) -> tuple[Departures, ...]:
    """The tables of `cells` as a plan has them; ValueError says what is allowed."""
    allowed = 'allowed is a list of tables such as { filesystem.type = ["xfs", "btrfs"], filesystem.barrier = false }'
    if not isinstance(value, list) or not value or len(value) > MOST_TABLES:
        raise ValueError(allowed)
    found = []
    for table in value:
        if not isinstance(table, dict):
            raise ValueError(allowed)
        # By name alone: levels of two types have no order.
        found.append(tuple(sorted(_named_levels(table), key=itemgetter(0))))
    if len(set(found)) < len(found):
        raise ValueError("a table is there twice")
    return tuple(found)


def limit_to_cells(
    plan: Plan, restrictions: Mapping[int, tuple[Departures, ...]], reasons: list[str]
) -> Plan:
    """The plan with its workloads kept to the cells that they name, by the workload's place in the plan.

    What matches no cell, and what would visit one cell and dataset twice, is added to `reasons`.
    """
    first_levels: dict[str, Levels] = {}
    for cell in plan.cells():
        first_levels.setdefault(cell.build.engine, cell.levels)
    workloads = []
    for index, workload in enumerate(plan.workloads):
        choices = tuple(
            CellChoice(departures, levels)
            for departures in restrictions.get(index, ())
            for levels in first_levels.values()
        )
        workloads.append(replace(workload, only=choices))
        reasons += _unmatched(plan, workload, index, restrictions.get(index, ()), first_levels)
    kept = replace(plan, workloads=tuple(workloads))
    reasons += _visited_twice(kept)
    return kept


def _sections() -> Mapping[str, type[EngineTable] | None]:
    """The tables of a plan that may be named, and the engine that they are of."""
    of_engines = {name: table for table in engine_tables().values() for name in table.level_names}
    return {"filesystem": None, **of_engines}


def _named_levels(table: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, tuple[Scalar, ...]]]:
    sections = _sections()
    for key, value in table.items():
        name = f"{section}.{key}" if section else key
        if name in sections and isinstance(value, dict):
            yield from _named_levels(value, name)
        elif section:
            # A list is several levels, as nothing that may be named here has lists for levels.
            levels = tuple(value) if isinstance(value, list) else (value,)
            wrong = [level for level in levels if not isinstance(level, (str, int, float, bool))]
            if wrong or not levels:
                raise ValueError(
                    f"{in_quotes(name)} takes a level, or a list of levels; found {in_quotes(value)}"
                )
            engine = sections[section]
            if engine is None:
                yield f"{section}.{key}", levels
            else:
                yield engine.level_name(section, key), tuple(engine.level(section, each) for each in levels)
        else:
            raise ValueError(f"{in_quotes(key)}: a table names keys of {', '.join(sections)}")


def _unmatched(
    plan: Plan,
    workload: PlannedWorkload,
    index: int,
    restrictions: tuple[Departures, ...],
    first_levels: Mapping[str, Levels],
) -> list[str]:
    cells = [cell for cell in plan.cells() if plan.runs_on(workload, cell.build.engine)]
    found = []
    for number, named in enumerate(restrictions):
        choices = [
            CellChoice(named, first_levels[engine]) for engine in {cell.build.engine for cell in cells}
        ]
        if not any(choice.takes(cell.levels) for cell in cells for choice in choices):
            words = (
                ", ".join(f"{name} {'/'.join(map(_in_words, levels))}" for name, levels in named)
                or "the first"
            )
            found.append(
                f"workload[{index}].cells[{number}]: no cell of the plan has {words} and else what the first cell has; "
                "vary those factors where they belong"
            )
    return found


def _visited_twice(plan: Plan) -> list[str]:
    for cell in plan.cells():
        loaded = Counter(
            (workload.type, levels)
            for workload in plan.workloads_of(cell)
            for levels in (*workload.scales, *workload.datasets)
        )
        twice = [kind for (kind, _), count in loaded.items() if count > 1]
        if twice:
            words = (
                f"workload: two of type {twice[0]} load the same dataset in {cell.variant} ({cell.slug}); "
                "keep them apart by `cells`"
            )
            return [words]
    return []


def _in_words(level: Scalar) -> str:
    """As it is where it can be read, in quotes and short where it cannot."""
    text = str(level)
    return text if text.isprintable() and len(text) <= 80 else in_quotes(level)


def levels_of(value: Any) -> tuple[Any, ...]:
    """A bare value is one level; `{ vary = [...] }` is several."""
    if isinstance(value, list):
        raise ValueError(f"one key has one level; several are written {{ vary = {in_quotes(value)} }}")
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
        twice = sorted({in_quotes(level) for level in levels if level in seen or seen.add(level)})  # type: ignore[func-returns-value]
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


def is_of_levels(function: object) -> bool:
    """Whether it is what makes a key a factor: it reads a bare value, or `{ vary = [...] }`."""
    return function in (levels_of, _levels_of_lists)


def varies(metadata: Sequence[Any]) -> bool:
    """Whether what pydantic knows of a field makes it a factor."""
    return any(isinstance(each, BeforeValidator) and is_of_levels(each.func) for each in metadata)


def within(check: Callable[..., Any], *bounds: Any, form: Form | None = None) -> PlainValidator:
    """A check with its bounds as the type of a key; `form` is what editors know of it, where it is no check of `values`."""
    known = values.FORMS[check](*bounds) if form is None else form
    return PlainValidator(
        partial(check, *bounds), json_schema_input_type=Annotated[Any, WithJsonSchema(known)]
    )


CELLS: Form = {"type": "array", "items": {"type": "object"}, "minItems": 1, "maxItems": MOST_TABLES}

ChosenCells: TypeAlias = Annotated[tuple[Departures, ...], within(departures, form=CELLS)]
Seed: TypeAlias = Annotated[int, within(values.whole_number, 0, 2**53 - 1)]
Flag: TypeAlias = Annotated[bool, within(values.flag)]
Memory: TypeAlias = Annotated[int, within(values.size, values.SMALLEST_MEMORY_BYTES, 64 * TIB)]
DeviceName: TypeAlias = Annotated[str, within(values.device)]
FilesystemType: TypeAlias = Annotated[str, within(values.one_of, tuple(TRAITS))]

_FILESYSTEM_BLOCKS = tuple(sorted({size for traits in TRAITS.values() for size in traits.block_sizes}))

FilesystemBlock: TypeAlias = Annotated[int, within(values.power_of_two, _FILESYSTEM_BLOCKS)]

# What only some types know, by the name of the key.
FEATURES = {
    name: Annotated[str | bool, within(values.feature, levels)] for name, levels in feature_levels().items()
}

Count: TypeAlias = Annotated[int, within(values.whole_number, 1, 10_000)]
Duration: TypeAlias = Annotated[float, within(values.duration, 1)]
Passes: TypeAlias = Annotated[tuple[str, ...], within(values.passes)]

# What a key with a unit is called in records.
_LEVEL_NAMES = {"warmup": "warmup_s", "duration": "duration_s", "rate": "rate_tps"}


class RunTable(PlanTable):
    """`[[workload.run]]` of scripts: one run, or several where a key varies. `varying` are its keys that may, `script` the first of them."""

    name: Annotated[str, within(values.run_name)] | None = None
    """– | 1 to 60 letters, digits, blanks and `. _ = -` | the script's name | `"at 500 tps"`"""

    varying: ClassVar[tuple[str, ...]]

    def factors(self) -> dict[str, tuple[Any, ...]]:
        """The levels of each key that may vary."""
        return {key: getattr(self, key) for key in self.varying}

    def run_count(self) -> int:
        """Every combination of the levels."""
        return combination_count(self.factors())

    def levels(self, by_key: Mapping[str, Any], defaults: int) -> Mapping[str, Scalar | None]:  # noqa: ARG002 -- of what a version decides
        """One combination as records have it, by the names of their levels; `defaults` is the version of the plan's defaults."""
        return {_LEVEL_NAMES.get(key, key): level for key, level in by_key.items()}

    def word(self, level: Any) -> str:
        """A level in the name of a run."""
        if level is None:
            return "unlimited"
        return f"{level:g}" if isinstance(level, float) else str(level).replace(" ", "-")

    def specs(self, workload: str, defaults: int) -> Iterator[RunSpec]:
        """Every combination, the last key varying fastest; the level of a key that varies is part of the name."""
        factors = self.factors()
        for by_key in combinations(factors):
            script = self.word(by_key["script"])
            name = self.name or script
            for key, level in by_key.items():
                if len(factors[key]) > 1 and key != "script":
                    name += f"-{key}-{self.word(level)}"
                elif len(factors[key]) > 1 and self.name is not None:
                    name += f"-{script}"
            levels = self.levels(by_key, defaults).items()
            yield RunSpec(name, workload, Levels({key: level for key, level in levels if level is not None}))


def run_specs(
    run_tables: Iterable[RunTable], workload: str, defaults: int, same_name: Callable[[str], str] = str.lower
) -> tuple[RunSpec, ...]:
    """The runs of all tables, in the order of the plan; ValueError if `same_name` makes one of the names of two."""
    specs = tuple(spec for table in run_tables for spec in table.specs(workload, defaults))
    names = Counter(same_name(spec.name) for spec in specs)
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        raise ValueError(f"two runs are called {', '.join(twice)}; give each a name")
    return specs


UntornWrites: TypeAlias = Annotated[str, within(values.one_of, UNTORN_LEVELS)]

MOST_NODES = 1000

# What stands on sbatch's command line, and in the name of a folder.
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)

_RANGES = re.compile(
    r"([A-Za-z0-9._-]*)\[(\d{1,6}(?:-\d{1,6})?(?:,\d{1,6}(?:-\d{1,6})?)*)\]([A-Za-z0-9._-]*)", re.ASCII
)

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:=-]{0,99}", re.ASCII)
_CONSTRAINT = re.compile(r"[A-Za-z0-9_&|!()\[\]*,.:=-]{1,200}", re.ASCII)


def expand_nodes(text: str) -> tuple[str, ...]:
    """`n[1-3,7]` as Slurm writes it, expanded; a plain name is itself. ValueError for anything else."""
    found = _RANGES.fullmatch(text)
    if found is None:
        if _NODE.fullmatch(text) is None:
            raise ValueError('allowed are names of nodes as Slurm knows them: "n1", or "n[01-16]"')
        return (text,)
    before, ranges, after = found.groups()
    names = []
    for part in ranges.split(","):
        low, _, high = part.partition("-")
        last = int(high or low)
        if last < int(low) or last - int(low) >= MOST_NODES:
            raise ValueError(f"{text}: {part} is no range of at most {MOST_NODES} nodes")
        # Slurm keeps the leading zeros of the first number.
        names += [f"{before}{number:0{len(low)}d}{after}" for number in range(int(low), last + 1)]
    if not all(map(_NODE.fullmatch, names)):
        raise ValueError(f"{text} makes names that no node has")
    return tuple(names)


def nodes(value: Any) -> tuple[str, ...]:
    """A list of names, ranges among them; every node once."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not listed or not all(isinstance(name, str) for name in listed):
        raise ValueError('allowed is a list of names of nodes: ["n1", "n2"], or ["n[01-16]"]')
    found = [name for text in listed for name in expand_nodes(text)]
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise ValueError(f"{', '.join(twice)}: listed twice")
    if len(found) > MOST_NODES:
        raise ValueError(f"{len(found)} nodes; allowed are {MOST_NODES}")
    return tuple(found)


def _matching(pattern: re.Pattern[str], words: str) -> PlainValidator:
    def check(value: Any) -> str:
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        raise ValueError(f"allowed is {words}")

    return within(check, form=values.pattern(pattern.pattern))


def _directory(value: Any) -> str:
    if (
        isinstance(value, str)
        and value.startswith("/")
        and value.isprintable()
        and len(value) <= 500
        and ".." not in value.split("/")
    ):
        return value
    raise ValueError("allowed is an absolute path on every node")


Word: TypeAlias = Annotated[str, _matching(_WORD, "one word as sbatch takes it")]

Nodes: TypeAlias = Annotated[
    tuple[str, ...], within(nodes, form=values.either(TEXT, {"type": "array", "items": TEXT, "minItems": 1}))
]

NodeName: TypeAlias = Annotated[str, _matching(_NODE, "the name of a node")]
JobTime: TypeAlias = Annotated[float, within(values.duration, 60)]


class SlurmTable(PlanTable):
    """`[slurm]`: which nodes, how jobs are asked for, and what stands on the nodes."""

    nodes: Nodes = Field(description='list of names of nodes: ["n1", "n2"], or ["n[01-16]"]')
    """– | a list of names of nodes, ranges as Slurm writes them; repetition 1 runs on the first, 2 on the second, and so on,
    round and round | required | `["n[01-16]"]`"""
    partition: Word | None = None
    """– | partition of the nodes | the cluster's | `"bench"`"""
    constraint: Annotated[str, _matching(_CONSTRAINT, "a constraint as sbatch takes it")] | None = None
    """– | features that the nodes must have | none | `"nvme"`"""
    account: Word | None = None
    """– | account that the jobs are charged to | the user's | `"storage"`"""
    gres: Word | None = None
    """– | a generic resource that every job asks for | none | `"scratch_device:1"`"""
    time: JobTime | None = None
    """– | a minute or more: limit of one job, which is one repetition on one node | three times the estimate, an hour at least |
    `"12 h"`"""
    devices: dict[NodeName, DeviceName] = Field(
        default_factory=dict, description="a table of scratch devices by node"
    )
    """– | a table of scratch devices by node, in place of `device` in `[scratch_device]`; **each will be erased**, and must be
    named with `--erase` | none | `{ n1 = "/dev/disk/by-id/nvme-…" }`"""
    journal_devices: dict[NodeName, DeviceName] = Field(
        default_factory=dict, description="a table of devices of external journals by node"
    )
    """– | a table of devices of external journals by node, in place of `device` in `[journal_device]`; **each will be erased**, and
    must be named with `--erase` | none | `{ n1 = "/dev/disk/by-id/nvme-…" }`"""
    local_directory: Annotated[str, within(_directory, form=values.pattern("/.*"))] = LOCAL_DIRECTORY
    """– | an absolute path on every node, on its own disk: results and images are below it while a visit runs |
    `"/var/tmp"` | `"/scratch"`"""
    controller_deadline: JobTime = CONTROLLER_DEADLINE_S
    """– | how long a controller that does not answer is waited for | `"1 d"` | `"2 h"`"""
    differing: Annotated[tuple[str, ...], within(values.some_of, tuple(DIFFERING))] = ()
    """– | in what nodes may differ: a list of `cpu`, `memory`, `kernel`, `distribution`, `firmware`, `device` | nothing |
    `["firmware"]`"""

    @model_validator(mode="after")
    def _knows_its_nodes(self) -> SlurmTable:
        for key in ("devices", "journal_devices"):
            unknown = [name for name in getattr(self, key) if name not in self.nodes]
            if unknown:
                raise ValueError(f"{key} of {', '.join(map(in_quotes, unknown))}, which nodes does not list")
        return self
