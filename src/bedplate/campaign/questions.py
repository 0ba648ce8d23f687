"""Questions as plans: what a person wants to know, to the text of a plan that answers it.

The plans are short, as a plan's own defaults suit the machine; what a question adds stands in them. A file system that
the running kernel lacks is asked about in a guest.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.campaign.preparation import OwnPrograms, builds_to_make, preparations
from bedplate.cuts.records import POINTS_DEFAULT
from bedplate.errors import PlanError
from bedplate.filesystem.standing import MountedPlace, standing_of
from bedplate.host.block_tree import CacheKind, DeclaredCache, gets_flushes, worst_cache
from bedplate.model.cell import (
    JOURNAL_IN_RAM,
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    digest,
    engine_model,
)
from bedplate.model.durability import OF_FLUSHES, UNKNOWN, UNSAFE, FilesystemPromise, worse
from bedplate.model.figure import Better, Scale
from bedplate.model.filesystem import TRAITS, feature_levels
from bedplate.model.machine import Machine
from bedplate.model.metrics import METRICS, unknown_metric
from bedplate.model.plan import (
    ANY,
    MEASURED,
    NOT_ASKED,
    SURVIVING,
    WANTED,
    Load,
    NotWorse,
    PlannedCell,
    SearchCandidate,
    SearchLeftOut,
    SearchRecord,
    model_of,
)
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Durability, FlushCount, ReadBack
from bedplate.near_names import of_near_paths, unknown_run
from bedplate.plan.estimate import BOOT_S, estimate_of, visit_seconds
from bedplate.plan.rules import LOCAL, QEMU
from bedplate.study.records import SEARCH_VERSION
from bedplate.units import format_duration
from bedplate.visit.declaration import declare, durability_of

if TYPE_CHECKING:
    from bedplate.campaign.planning import PlannedStudy
    from bedplate.model.engines import DataDirectory, KnownFiles

# Where no file system is named: those that a server is usually put on.
USUAL = ("ext4", "xfs", "btrfs")

# Five can tell what three cannot; in a guest, whose speeds are those of an emulator or of KVM, the fewest that can tell at all.
_REPETITIONS, _REPETITIONS_IN_GUESTS = 5, 3

# So many cuts of each recording, by how many recordings there are: a setting beside its opposite on three file systems is answered
# within five minutes on two cores (docs/BENCHMARKS.md).
_POINTS = ((1, POINTS_DEFAULT), (3, 80))

_POINTS_OF_MANY = 40
_RECORDED = "15 s"
_TRIED_S = 10

_OF_AN_ENGINE = """\
engine = {kind}
# Cuts that are sought where the file system's own metadata can be torn show its faults, and not the engine's.
sought = 0
# Cuts while file system and engine recover from one of the others.
recut = {recut}
# At most so many behind every write of short recoveries, and of recoveries from second cuts.
exhaustive = {exhaustive}
"""

# Options of a mount that change what is measured, and that a plan takes as they are.
_KEPT_OPTIONS = frozenset(
    {
        "noatime",
        "nodiratime",
        "lazytime",
        "commit",
        "compress",
        "compress-force",
        "nodelalloc",
        "logbufs",
        "logbsize",
        "allocsize",
    }
)

# Of every mount, or with a key of its own in a plan.
_NO_OPTIONS = frozenset({"rw", "relatime", "nobarrier", "barrier", "data", "nodatacow", "norecovery"})

_USUAL_BLOCK = 4096
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_UNFIT = re.compile(r"[^A-Za-z0-9._]+")
_OPPOSITE = {"on": "off", "off": "on"}

# What a plan has in [[filesystem]].
_OF_FILESYSTEMS = frozenset(
    {"type", "block_size", "mount_options", "mkfs_options", "barrier", "journal", *feature_levels()}
)

_BEGIN = """\
# Written by bedplate. Copy it, change the question, and run it with `bedplate run`: docs/PLANS.md has every key, and
# what a key that is left out means. It erases nothing: the scratch device is an image file.
"""


@dataclass(frozen=True)
class Question:
    """A plan that answers a question. `name` is fit for a directory.

    `types` are the file systems that are asked about and `lacking` those of them that the running kernel does not have.
    """

    name: str
    title: str
    types: tuple[str, ...]
    lacking: tuple[str, ...]
    body: str
    executor: str = LOCAL

    @property
    def text(self) -> str:
        """The plan."""
        return "\n".join((_BEGIN, *self.lines, ""))

    @property
    def lines(self) -> tuple[str, ...]:
        """The plan without what stands above it."""
        return (f"title = {_quoted(self.title)}", f'executor = "{self.executor}"', *self.body.splitlines())

    @property
    def in_guest(self) -> Question:
        """The same, with a kernel that has what the running one lacks."""
        return replace(self, executor=QEMU)


def filesystem_question(
    machine: Machine,
    types: Sequence[str],
    *,
    repetitions: int | None = None,
    scale: str | None = None,
    build_levels: BuildLevels | None = None,
) -> Question:
    """Which file system suits PostgreSQL, here; on the server of `build_levels`, or a build."""
    chosen = _types(types, machine)
    load = "" if scale is None else f"{_workload()}scale = {_scale(scale, machine)}\n"
    return Question(
        _name("ask-filesystem", types),
        f"Which file system for PostgreSQL: {', '.join(chosen)}",
        chosen,
        _missing_types(chosen, machine),
        f"repetitions = {repetitions or _REPETITIONS}\n{_filesystems(chosen)}{_of_server(build_levels)}{load}",
    )


def kernel_question(
    kernels: Sequence[str], types: Sequence[str], *, repetitions: int | None = None
) -> Question:
    """Did a kernel make PostgreSQL slower: guests with each of them, as short as gives an answer."""
    if len(set(kernels)) < 2:
        raise PlanError("name two kernels to compare: bedplate ab --kernel 6.1 6.12")
    chosen = tuple(dict.fromkeys(types)) or USUAL[:1]
    body = f"""\
repetitions = {repetitions or _REPETITIONS_IN_GUESTS}

[machine]
kernel = {{ vary = [{", ".join(map(_quoted, kernels))}] }}
# The guest is that large.
memory = "1 GB"
{_filesystems(chosen)}
{_workload()}# 60 MB: an emulated processor loads one unit in some 5 s.
scale = 4

[[workload.run]]
# Over one whole checkpoint, which the settings make short.
script = "read-write"
clients = 2
warmup = "5 s"

[postgresql.settings]
checkpoint_timeout = "30s"
checkpoint_completion_target = 0.3
max_wal_size = "1GB"

[canary]
# Short as it is, each repetition holds every kernel: drift takes no side.
enabled = false
"""
    return Question(
        _name("ask-kernel", (*kernels, *types)),
        f"Kernels {' and '.join(kernels)} under PostgreSQL on {', '.join(chosen)}",
        chosen,
        # A guest has its own kernel: what the machine's has does not matter.
        (),
        body,
        QEMU,
    )


def safe_question(
    machine: Machine,
    settings: Mapping[str, Sequence[str]],
    types: Sequence[str],
    *,
    points: int | None = None,
    build_levels: BuildLevels | None = None,
) -> Question:
    """What is left after a power cut, with settings beside their opposites; on the server of `build_levels`, or a build.

    `settings` are PostgreSQL's, each with the values that are asked about. One that is on or off stands beside its
    opposite. Several change together, as in a server that has them all: the first cell has none of them. PlanError where one of
    several has nothing beside it.
    """
    chosen = _types(types, machine)
    levels = {name: _levels(values) for name, values in settings.items()}
    together = len(levels) > 1
    single = [name for name, values in levels.items() if together and len(values) == 1]
    if single:
        raise PlanError(
            f"nothing would be beside {single[0]}={levels[single[0]][0]}: of several settings, one that is not on or off "
            "has to have two values, first the one to compare with: wal_sync_method=fdatasync,open_sync"
        )
    cells = len(chosen) * (2 if together else max(map(len, levels.values()), default=1))
    number = next((each for most, each in _POINTS if cells <= most), _POINTS_OF_MANY)
    asked = " ".join(f"{name}={','.join(values)}" for name, values in settings.items())
    return Question(
        _name("ask-safe", (*settings, *chain(*settings.values()), *types)),
        f"Is it safe after a power cut: {asked or 'PostgreSQL as it comes'} on {', '.join(chosen)}"[:200],
        chosen,
        _missing_types(chosen, machine),
        f"repetitions = 1\n{_filesystems(chosen)}{_of_server(build_levels)}{_settings(levels)}"
        f"{cuts(points or number, _cells(levels, chosen) if together else '')}",
    )


def engine_question(
    machine: Machine,
    folder: Path,
    settings: Mapping[str, Sequence[str]],
    types: Sequence[str],
    *,
    points: int | None = None,
    recut: int | None = None,
    exhaustive: int | None = None,
    duration_s: int = _TRIED_S,
) -> Question:
    """What power cuts leave of an engine of somebody's own, in a folder; `recut` of them in recovery, else a quarter more.

    At most `exhaustive` are behind every write of recoveries, else half as many more.
    """
    (kind,) = registry.engines_with("own_programs")
    programs: OwnPrograms = registry.engine_part(kind, "own_programs")
    engine = programs.engine_in(folder, settings)
    chosen = _types(types, machine)
    recordings = len(chosen) * prod(len(values) for values in settings.values())
    number = points or next((each for most, each in _POINTS if recordings <= most), _POINTS_OF_MANY)
    of_engine = _OF_AN_ENGINE.format(
        kind=_quoted(kind),
        recut=number // 4 if recut is None else recut,
        exhaustive=number // 2 if exhaustive is None else exhaustive,
    )
    return Question(
        _name("try", (engine.name, *chain(*settings.values()), *types)),
        f"After a power cut: {engine.name} on {', '.join(chosen)}",
        chosen,
        _missing_types(chosen, machine),
        f"repetitions = 1\n{_filesystems(chosen)}{engine.table}"
        f"{cuts(number, of_engine, duration=f'{duration_s} s')}",
    )


def own_question(
    machine: Machine, inspection: Inspected, *, compare: bool = False, points: int | None = None
) -> Question | None:
    """What a server has now: is it safe; how fast, where `compare` puts it beside the usual file systems. None where no plan can make that.

    PlanError where it is asked whether a server is safe of which not all can be read, or whose places stand on several file systems.
    """
    standing, directory = inspection.place, inspection.directory
    if standing.type not in TRAITS or not standing.layers or (directory and not directory.settings):
        return None
    own = _own_filesystem(standing)
    usual = tuple(kind for kind in USUAL if compare and not _missing_types((kind,), machine))
    types = tuple(dict.fromkeys((standing.type, *usual)))
    engine = next(iter(registry.ENGINES)) if directory is None else directory.engine
    server = "" if directory is None else _server(inspection, directory)
    if compare:
        # Its type is asked about as it comes, too, where it is mounted in another way than that.
        others = types[1:] if own == _filesystems(types[:1]) else types
        load = _workload_of(directory) if directory else ""
        body = f"repetitions = {_REPETITIONS}\n{own}{_filesystems(others) if others else ''}{server}{load}"
        title = "As fast as its neighbours"
    else:
        _refuse_part(inspection)
        body = f"repetitions = 1\n{own}{server}{cuts(points or POINTS_DEFAULT, _named_engine(engine))}"
        title = "Safe after a power cut"
    return Question(
        _name("ask-own", (standing.type, Path(inspection.path).name)),
        f"{title}: the {standing.type} that is in use",
        types,
        _missing_types(types, machine),
        body,
    )


def _refuse_part(inspection: Inspected) -> None:
    """PlanError where the plan would have a part of the server alone: its answer would be taken for that of the whole."""
    own = inspection.place
    problems = [f"not all of it can be read: {sentence}" for sentence in inspection.unknown]
    problems += [
        f"{what} is not where the data is: it is {_place_words(place)}, and the data {_place_words(own)}"
        for what, place in inspection.places.items()
        if _identity(place) != _identity(own)
    ]
    if problems:
        types = dict.fromkeys(place.type for place in inspection.places.values() if place.type in TRAITS)
        raise PlanError(
            *problems,
            "ask about its file systems and settings by name, as in: "
            f"bedplate ask safe full_page_writes=off --on {','.join(types)}"
            if inspection.directory is None or inspection.directory.engine == next(iter(registry.ENGINES))
            else "write a plan of its file systems and settings: docs/PLANS.md",
        )


def _identity(mounted_place: MountedPlace) -> tuple[object, ...]:
    return mounted_place.type, mounted_place.options, tuple(layer.name for layer in mounted_place.layers)


def _place_words(mounted_place: MountedPlace) -> str:
    device = mounted_place.layers[0].name if mounted_place.layers else "no device"
    return f"{mounted_place.type} of {device} with {','.join(mounted_place.options)}"


def _server(inspection: Inspected, directory: DataDirectory) -> str:
    """Its version, if that can be built here, what it was made with, and its settings; what no plan takes over as comments."""
    from bedplate.plan.values import VERSIONS  # noqa: PLC0415 -- pydantic

    changed = {name: directory.settings[name] for name in directory.said_by} | dict(directory.more)
    settings = _settings(
        {name: (value,) for name, value in changed.items() if value.isprintable()}, directory.engine
    )
    version = directory.version if directory.version.isprintable() else "of the server"
    # It has words of the server's owner.
    head = [
        f"# Not in this plan: {''.join(sign if sign.isprintable() else '?' for sign in sentence)}"
        for sentence in _left_out(inspection, directory)
    ]
    made = [f"{name} = {json.dumps(value)}" for name, value in directory.made_with.items()]
    if not engine_model(directory.engine).is_built:
        head.append(
            f"# Version {version or 'of the server'}: that of this machine's distribution takes its place."
        )
    elif directory.version in VERSIONS:
        made = [f'version = "{directory.version}"', *made]
    else:
        head.append(f"# Version {version} cannot be built here: the newest that can takes its place.")
    table = [f"[{directory.engine}]", *made] if made else []
    return "\n".join(("", *head, *table, settings))


def _left_out(inspection: Inspected, directory: DataDirectory) -> Iterator[str]:
    """Sentences about what was read of a server, and what was not, that the plan does not say."""
    own = inspection.place
    options = [word for word in own.shown if word.partition("=")[0] not in _KEPT_OPTIONS | _NO_OPTIONS]
    if options:
        yield f"mount options {','.join(options)}: write those that matter into mount_options"
    for what, place in inspection.places.items():
        if _identity(place) != _identity(own):
            yield f"{what} on a file system of its own, {_place_words(place)}; a plan has one for all"
    yield from (f"{sentence} (not known, and so as it comes)" for sentence in inspection.unknown)
    yield from directory.left_out


def _workload_of(directory: DataDirectory) -> str:
    """The workload that measures its engine; empty where a plan needs none for that."""
    if not directory.measured_by:
        return ""
    return f'\n[[workload]]\ntype = "{directory.measured_by}"\n{_named_engine(directory.engine)}'


def _named_engine(engine: str) -> str:
    """The key of a workload of several engines; empty of the engine that it has where a plan names none."""
    return "" if engine == next(iter(registry.ENGINES)) else f"engine = {_quoted(engine)}\n"


def _own_filesystem(mounted_place: MountedPlace) -> str:
    """The table of the file system as it is mounted, as far as a plan has words for it."""
    traits = TRAITS[mounted_place.type]
    lines = [f"type = {_quoted(mounted_place.type)}"]
    options = [word for word in mounted_place.shown if word.partition("=")[0] in _KEPT_OPTIONS]
    if options:
        lines.append(f"mount_options = [{', '.join(map(_quoted, options))}]")
    size = mounted_place.block_bytes
    if size in traits.block_sizes and size != _USUAL_BLOCK and mounted_place.type != "zfs":
        lines.append(f'block_size = "{size} B"')
    if mounted_place.flushes is False and traits.barrier_by is not None:
        lines.append("barrier = false")
    if mounted_place.data in traits.features.get("data", ()) and mounted_place.data != traits.usual.get(
        "data"
    ):
        lines.append(f"data = {_quoted(str(mounted_place.data))}")
    if "nodatacow" in traits.features and "nodatacow" in mounted_place.options:
        lines.append("nodatacow = true")
    if mounted_place.journal == "none" and "none" in traits.journals:
        lines.append('journal = "none"')
    return "\n".join(("\n[[filesystem]]", *lines, ""))


def asked_settings(
    words: Sequence[str], *, factors: Collection[str] = _OF_FILESYSTEMS
) -> Mapping[str, tuple[str, ...]]:
    """`full_page_writes=off`, `synchronous_commit=on,local` as names with values; PlanError for what is none.

    `factors` are names that no setting has.
    """
    found: dict[str, tuple[str, ...]] = {}
    for word in words:
        name, equals, values = word.partition("=")
        name = name.strip().lower()
        if not equals or not name or not values.strip():
            raise PlanError(f"{word!r} is no setting; write one as full_page_writes=off")
        if name in factors:
            raise PlanError(
                f"{name} is a factor of file systems and no setting of PostgreSQL; write it into a plan, as "
                f"{name} = {values} in [[filesystem]]"
            )
        if name in found:
            raise PlanError(f"{name} is given twice; write its values with commas: {name}=on,off")
        found[name] = tuple(value.strip() for value in values.split(","))
    return found


def cuts(points: int, further_keys: str = "", *, duration: str = _RECORDED) -> str:
    """The workload of power cuts as TOML; `further_keys` are others of it."""
    return f"""
[[workload]]
type = "power_cut"
# A quarter of them in order, as a cache does that power cannot take; the others are those of a volatile cache.
points = {points}
duration = "{duration}"
{further_keys}
[canary]
# Nothing here is timed.
enabled = false
"""


def _types(types: Sequence[str], machine: Machine) -> tuple[str, ...]:
    """Those that are named, else the usual ones that this kernel has."""
    if types:
        return tuple(dict.fromkeys(types))
    return tuple(kind for kind in USUAL if not _missing_types((kind,), machine)) or USUAL


def _missing_types(types: Iterable[str], machine: Machine) -> tuple[str, ...]:
    """Those that the running kernel does not have; what is no file system at all is the plan's to refuse."""
    here = set(machine.filesystems)
    return tuple(kind for kind in types if kind in TRAITS and not here & set(TRAITS[kind].kernel_types))


def _levels(values: Sequence[str]) -> tuple[str, ...]:
    """The values, the opposite of a single switch before it."""
    values = tuple(dict.fromkeys(values))
    opposite = _OPPOSITE.get(values[0].lower()) if len(values) == 1 else None
    return values if opposite is None else (opposite, values[0].lower())


def _settings(levels: Mapping[str, Sequence[str]], engine: str = "") -> str:
    """The settings of an engine, of the first where none is named, in the tables that a plan has for them."""
    words = engine_model(engine or next(iter(registry.ENGINES))).plan_words
    tables: dict[str, list[str]] = {}
    for name, values in levels.items():
        level = f"cluster.settings.{name}"
        begin = next(start for start in words if level.startswith(start))
        table = (words[begin] + level.removeprefix(begin)).removesuffix(f".{name}")
        tables.setdefault(table, []).append(f"{_key(name)} = {_varied(values)}\n")
    return "".join(f"\n[{table}]\n{''.join(lines)}" for table, lines in tables.items())


def _cells(levels: Mapping[str, Sequence[str]], types: Sequence[str]) -> str:
    """None of the settings, and all of them: a table each."""
    every = f"filesystem.type = [{', '.join(map(_quoted, types))}]"
    changed = ", ".join(
        f"postgresql.settings.{_key(name)} = [{', '.join(map(_quoted, values[1:] or values))}]"
        for name, values in levels.items()
    )
    return f"cells = [\n    {{ {every} }},\n    {{ {every}, {changed} }},\n]\n"


def _filesystems(types: Sequence[str]) -> str:
    return f"\n[[filesystem]]\ntype = {_varied(types)}\n"


def _of_server(build_levels: BuildLevels | None) -> str:
    """The table of its server; empty of the one that a plan has by itself."""
    if build_levels is None or build_levels == BuildLevels():
        return ""
    return (
        f"\n[{build_levels.engine}]\nserver = {_quoted(build_levels.server)}\n"
        f"version = {_quoted(build_levels.version)}\n"
    )


def _varied(values: Sequence[str]) -> str:
    if len(values) == 1:
        return _quoted(values[0])
    return f"{{ vary = [{', '.join(map(_quoted, values))}] }}"


def _workload() -> str:
    """The head of the table of the workload that runs where a plan has none."""
    return f'\n[[workload]]\ntype = "{registry.first_workload()}"\n'


def _scale(word: str, machine: Machine) -> int:
    """A scale, or a multiple of the memory as one: an image of the right size can be made of a number alone."""
    from bedplate.plan import values  # noqa: PLC0415 -- pydantic

    is_number = word.isascii() and word.isdigit() and len(word) < 10
    try:
        scale = values.scale(int(word) if is_number else word)
    except ValueError as error:
        raise PlanError(f"--scale {word!r}: {error}") from None
    return estimate_of(registry.first_workload()).scale_units(scale, machine.memory_bytes)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    """A text of TOML; what a plan takes nowhere is refused here, as it would end the text."""
    if not text.isprintable():
        raise PlanError(f"{text!r} has characters that are not printable; nothing in a plan has")
    return json.dumps(text, ensure_ascii=False)


def _name(question: str, words: Iterable[str]) -> str:
    """Of what is asked: letters, digits and dots, as long as a directory may be called."""
    return _UNFIT.sub("-", "-".join((question, *words)))[:100].rstrip("-.")


_PATTERNS = ("appending", "logging", "overwriting")


@dataclass(frozen=True)
class Inspected:
    """A path with what it stands on: `places` by what is there (`data`, `WAL`, tablespaces), the first the path's own.

    `directory` is None where no engine's files are known there. `cache` is that of the worst disk. `unknown` are sentences: what
    could not be read or told, and why.
    """

    path: str
    directory: DataDirectory | None
    places: Mapping[str, MountedPlace]
    durability: Durability
    cache: DeclaredCache
    unknown: tuple[str, ...]

    @property
    def place(self) -> MountedPlace:
        """What the path itself stands on."""
        return next(iter(self.places.values()))

    @property
    def fitting(self) -> str | None:
        """The class with the cache that the disks declare; None where they do not say which they have."""
        of_kind = {
            CacheKind.VOLATILE: self.durability.volatile_cache,
            CacheKind.PROTECTED: self.durability.protected_cache,
            CacheKind.MEMORY: UNSAFE,
        }
        classes = (self.durability.volatile_cache, self.durability.protected_cache)
        return of_kind.get(self.cache.kind, classes[0] if classes[0] == classes[1] else None)


def inspect(path: Path, *, virtualisation: str | None = None) -> Inspected:
    """A data directory, a mount point, any file, or a block device; PlanError where it is not there, or no path at all."""
    unknown: list[str] = []
    try:
        own = standing_of(path, virtualisation=virtualisation)
        directory = _recognised(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise PlanError(f"{path} cannot be looked at: {why}{of_near_paths(path, error)}") from None
    is_closed = path.is_dir() and not os.access(path, os.R_OK | os.X_OK)
    if is_closed:
        unknown.append(f"{path}: this user may not look into it, so what it holds is not known; sudo may")
    places = {"data": own}
    for what, place in (directory.places if directory else {}).items():
        if what != "data":
            try:
                places[what] = standing_of(Path(place), virtualisation=virtualisation)
            except OSError as error:
                unknown.append(f"{what} in {place}: {error.strerror or error}")
    if directory is not None:
        unknown += directory.unread
    knows_settings = directory.knows_settings if directory else not is_closed
    found = [_declared(place, directory, knows_settings=knows_settings) for place in places.values()]
    durability = found[0]
    for other in found[1:]:
        durability = worse(durability, other)
    layers = tuple(layer for place in places.values() for layer in place.layers)
    in_memory = any(place.in_memory for place in places.values())
    return Inspected(
        path=str(path),
        directory=directory,
        places=places,
        durability=durability,
        cache=DeclaredCache(CacheKind.MEMORY, "the file system is memory itself")
        if in_memory
        else worst_cache(layers),
        unknown=tuple(dict.fromkeys(unknown)),
    )


def servers(proc: Path = Path("/proc")) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The data directories of the servers that run here, and sentences about those that cannot be looked at."""
    found: dict[Path, None] = {}
    # A server has a process for each session and worker; what is said of its first one is enough.
    elsewhere: dict[Path, str] = {}
    unseen: list[str] = []
    called = frozenset[str]().union(*(files.processes for files in _known_files()))
    for folder in sorted(proc.glob("[0-9]*"), key=lambda each: int(each.name)):
        try:
            if (folder / "comm").read_text(errors="replace").strip() not in called:
                continue
            directory = (folder / "cwd").readlink()
            same = (folder / "ns/mnt").readlink() == (proc / "self/ns/mnt").readlink()
        except PermissionError:
            unseen.append(
                f"process {folder.name} is a server whose directory only its owner and root may see"
            )
            continue
        except OSError:
            continue  # it has ended
        if same:
            found[directory] = None
        else:
            elsewhere.setdefault(
                directory,
                f"process {folder.name} is a server in another mount namespace (a container): inspect {directory} there",
            )
    # Of processes that cannot be looked at nothing tells which belong together.
    return tuple(found), (*elsewhere.values(), *unseen[:3])


def _recognised(path: Path) -> DataDirectory | None:
    return next((found for files in _known_files() if (found := files.recognise(path)) is not None), None)


def _known_files() -> Iterator[KnownFiles]:
    return iter(registry.engine_parts("data_directory").values())


def _declared(
    mounted_place: MountedPlace, directory: DataDirectory | None, *, knows_settings: bool
) -> Durability:
    """The class of an engine with these settings there; of no engine, that of a file that is synced."""
    unknown = list(_not_known(mounted_place, knows_settings=knows_settings))
    if unknown:
        return Durability(UNKNOWN, UNKNOWN, "declared", tuple(unknown))
    engine = directory.engine if directory else next(iter(registry.ENGINES))
    settings = directory.settings if directory else {}
    flushes = mounted_place.flushes is True and gets_flushes(mounted_place.layers) is not False
    counts = tuple(FlushCount("data", pattern, 1, int(flushes)) for pattern in _PATTERNS)
    found = declare(
        Cell(
            DeviceLevels(),
            KernelLevels(),
            FilesystemLevels(mounted_place.type, journal=mounted_place.journal),
            BuildLevels(engine),
            ClusterLevels(),
        ),
        TRAITS[mounted_place.type],
        (
            ReadBack("filesystem.data", None, mounted_place.data, "mountinfo", matches=None),
            ReadBack("filesystem.barrier", None, flushes, "mountinfo", matches=None),
        ),
        counts,
        settings,
        journal_in_memory=False,
    )
    # Counts are none here, and what `declare` says of them is nothing of the place.
    reasons = [reason for reason in found.reasons if reason.code not in OF_FLUSHES]
    return replace(found, reasons=(*reasons, *([] if flushes else [_no_flush(mounted_place)])))


def _not_known(mounted_place: MountedPlace, *, knows_settings: bool) -> Iterator[Reason]:
    if mounted_place.in_memory:
        yield because(
            "file-system-in-memory", "the file system is memory itself: a power cut takes all of it"
        )
    elif mounted_place.type not in TRAITS:
        words = (
            f"what fsync does on {mounted_place.type} is not known here"
            if mounted_place.type
            else "nothing is mounted of it"
        )
        yield because("file-system-not-known", words)
    elif mounted_place.flushes is None:
        yield because("flushes-not-known", f"no table shows whether {mounted_place.type} sends flushes")
    elif mounted_place.journal == "external":
        yield because(
            "journal-elsewhere",
            "the journal is on another device: a visit counts which of the two is flushed",
        )
    if not knows_settings:
        yield because("settings-not-known", "settings that decide are not known")


def _no_flush(mounted_place: MountedPlace) -> Reason:
    if mounted_place.flushes:
        words = "the queue is set to write through, so that no flush is sent"
    else:
        words = f"{mounted_place.type} sends no flush as it is mounted"
    return because("no-flush-sent", f"{words}: a volatile cache may lose what fsync promised")


# What counts as the same, of a search as of any comparison.
MARGIN = 0.05

DURABLE_DEFAULT = "volatile"


@dataclass(frozen=True)
class SearchAsked:
    """What a call asks; None, or nothing, where it leaves it to a search that was begun."""

    best: str | None = None
    runs: tuple[str, ...] = ()
    durable: str | None = None
    budget_s: float | None = None
    not_worse: tuple[NotWorse, ...] = ()
    accepted: tuple[str, ...] = ()


def search_record(search_options: SearchAsked, study_plan: PlannedStudy) -> SearchRecord:
    """The question, frozen; PlanError with every reason why it cannot be asked of this plan."""
    wrong = [*_missing_options(search_options), *_wrong_metrics(search_options)]
    dataset, reasons = _dataset(search_options.runs, study_plan)
    wrong += reasons
    durable = search_options.durable or DURABLE_DEFAULT
    cuts, reasons = _cuts(study_plan) if durable == MEASURED else (None, [])
    wrong += reasons
    if wrong or dataset is None or search_options.best is None or search_options.budget_s is None:
        raise PlanError(*wrong)
    candidates, left_out = _sorted_out(study_plan, dataset, durable, cuts)
    if len(candidates) < 2:
        causes = dict.fromkeys(each.reason.sentence for each in left_out)
        raise PlanError(
            f"a search needs two cells, and {len(candidates)} of this plan's {len(study_plan.expansion.cells)} can be visited; "
            "`bedplate run` measures one",
            *causes,
        )
    fleet = study_plan.plan.fleet if study_plan.executor.fleet is not None else None
    first = study_plan.expansion.cells[0].cell.id
    if search_options.not_worse and all(planned.cell.id != first for planned, _ in candidates):
        words = next(each.reason for each in left_out if each.cell == first)
        raise PlanError(
            f"--not-worse compares with the plan's first cell, {first}, which is left out: {words}",
            "put a cell first that may be visited, or leave --not-worse out",
        )
    builds = {
        digest(levels): preparations()[levels.engine].seconds(levels)
        for levels in builds_to_make(study_plan.cells)
    }
    made = tuple(_candidate(study_plan, planned, load) for planned, load in candidates)
    return SearchRecord(
        version=SEARCH_VERSION,
        best=search_options.best,
        runs=search_options.runs,
        dataset=dataset,
        durable=durable,
        budget_s=search_options.budget_s,
        margin=MARGIN,
        candidates=made,
        left_out=tuple(left_out),
        baseline=first if any(each.cell == first for each in made) else None,
        not_worse=search_options.not_worse,
        builds={each.build: builds[each.build] for each in made if each.build in builds},
        cut_dataset=cuts,
        cut_seconds=0.0
        if cuts is None
        else _cut_seconds(study_plan, cuts, [planned for planned, _ in candidates]),
        at_once=len(fleet.nodes) if fleet is not None else 1,
        accepted=search_options.accepted,
    )


def asked_again(search_options: SearchAsked, record: SearchRecord) -> SearchRecord:
    """The search that is gone on with: only its budget may grow. PlanError names what was asked otherwise."""
    known = (
        ("--best", search_options.best, record.best),
        ("--run", search_options.runs or None, record.runs),
        ("--durable", search_options.durable, record.durable),
        ("--not-worse", search_options.not_worse or None, record.not_worse),
        ("--accept", search_options.accepted or None, record.accepted),
    )
    changed = [
        f"{name}: the study was begun with {_words(had)}, not {_words(now)}"
        for name, now, had in known
        if now is not None and now != had
    ]
    budget_s = record.budget_s if search_options.budget_s is None else search_options.budget_s
    if budget_s < record.budget_s:
        changed.append(
            f"--budget: the study was begun with {format_duration(record.budget_s)}, and a budget only grows"
        )
    if changed:
        raise PlanError(*changed, "leave these options out, or name another --study")
    return replace(record, budget_s=budget_s)


def _words(value: object) -> str:
    if isinstance(value, tuple):
        return " and ".join(map(_words, value)) or "none"
    return f"{value.metric}:{100 * value.share:g}%" if isinstance(value, NotWorse) else str(value)


def _missing_options(search_options: SearchAsked) -> Iterator[str]:
    for name, value, words in (
        ("--best METRIC", search_options.best, "the figure whose best cell is looked for"),
        ("--run RUN", search_options.runs, "the run that it is a figure of"),
        ("--budget TIME", search_options.budget_s, "how long the search may take, such as 4h"),
    ):
        if not value:
            yield f"a search needs {name}: {words}"
    if search_options.budget_s is not None and not 0 < search_options.budget_s < math.inf:
        yield f"--budget: expected a time above 0, found {search_options.budget_s:g} s"


def _wrong_metrics(search_options: SearchAsked) -> Iterator[str]:
    for name in (
        *((search_options.best,) if search_options.best else ()),
        *(each.metric for each in search_options.not_worse),
    ):
        metric = METRICS.get(name)
        if metric is None:
            yield unknown_metric(name)
        elif metric.scale is not Scale.RATIO or metric.better is Better.NEITHER:
            yield (
                f"{name} has no best: name a figure with a better direction that is compared as a ratio, such as tps or latency_ms_p99"
            )
    for each in search_options.not_worse:
        if not 0 < each.share < 1:
            yield f"--not-worse {each.metric}: expected a share between 0 and 100 %, found {each.share:.4g}"
        if each.metric == search_options.best:
            yield f"--not-worse {each.metric}: that is the figure whose best cell is looked for"


def _loads(study_plan: PlannedStudy) -> Iterator[Load]:
    return (load for planned in study_plan.expansion.cells for load in planned.loads)


def _dataset(runs: Sequence[str], study_plan: PlannedStudy) -> tuple[str | None, list[str]]:
    """The one dataset that has all the runs."""
    names = dict.fromkeys(run.name for load in _loads(study_plan) for run in load.runs)
    unknown = [unknown_run(name, names) for name in runs if name not in names]
    if unknown or not runs:
        return None, unknown
    having = {
        load.dataset: None for load in _loads(study_plan) if set(runs) <= {run.name for run in load.runs}
    }
    if len(having) == 1:
        return next(iter(having)).id, []
    if not having:
        return None, [
            f"no dataset of the plan has all of {', '.join(runs)}; a search is of runs on one dataset"
        ]
    words = ", ".join(dataset.words for dataset in having)
    return None, [
        f"{' and '.join(runs)}: {len(having)} datasets of the plan have such a run ({words}); a search is of one, so keep one in its plan"
    ]


def _cuts(study_plan: PlannedStudy) -> tuple[str | None, list[str]]:
    having = {load.dataset: None for load in _loads(study_plan) if model_of(load.dataset.workload).cuts_power}
    if len(having) == 1:
        return next(iter(having)).id, []
    if not having:
        return None, [
            '--durable measured cuts power: give the plan a [[workload]] of type = "power_cut", or ask for --durable volatile'
        ]
    return None, [
        f"--durable measured: the plan has {len(having)} datasets that cut power, and a search takes one"
    ]


def _sorted_out(
    study_plan: PlannedStudy, dataset: str, durable: str, cut_dataset: str | None
) -> tuple[list[tuple[PlannedCell, Load]], list[SearchLeftOut]]:
    candidates: list[tuple[PlannedCell, Load]] = []
    left_out: list[SearchLeftOut] = []
    for planned in study_plan.expansion.cells:
        loads = {load.dataset.id: load for load in planned.loads}
        reason = _never(planned.cell, durable)
        if dataset not in loads:
            reason = because("run-not-in-cell", "the run is not due in it")
        elif cut_dataset is not None and cut_dataset not in loads:
            reason = because("cut-not-in-cell", "the plan cuts no power in it")
        if reason is None:
            candidates.append((planned, loads[dataset]))
        else:
            left_out.append(SearchLeftOut(planned.cell.id, reason))
    return candidates, left_out


def _never(cell: Cell, durable: str) -> Reason | None:
    """Why a cell cannot be of the class, whatever its visits would count; None where it may."""
    if durable == ANY:
        return None
    best = _best_class(cell)
    own = best.protected_cache if durable == SURVIVING else best.volatile_cache
    if own in WANTED[durable] or own == UNKNOWN:
        return None
    # Nothing was counted yet: the options alone say this.
    told = [each.sentence for each in best.reasons if each.code not in OF_FLUSHES]
    if len(told) < len(best.reasons):
        told.insert(0, "without barriers no sync flushes a volatile cache")
    return because(NOT_ASKED, f"{own} after a power cut: {'; '.join(told)}", durability=own)


def _best_class(cell: Cell) -> Durability:
    """The class that a cell declares if every sync that its options leave is flushed; what its visits count can only lower it."""
    traits = TRAITS[cell.filesystem.type]
    flushes = 0 if cell.filesystem.barrier is False else 1
    features = cell.filesystem.features
    journals_data = features.get("data") == "journal"
    delayed = features.get("sync") == "disabled"
    promise = FilesystemPromise(
        tuple(FlushCount("data", pattern, 1, flushes) for pattern in ("appending", "logging", "overwriting")),
        journal_holds_data=traits.journal_holds_data or journals_data,
        journal_in_memory=cell.filesystem.journal_device == JOURNAL_IN_RAM,
        rolls_back_whole=traits.rolls_back_whole,
        flushes_when_delayed=cell.filesystem.barrier is not False if delayed else None,
        keeps_write_order=traits.rolls_back_whole or journals_data,
    )
    shown = {name: _setting_as_shown(value) for name, value in cell.cluster.settings.items()}
    return durability_of(cell).declare(cell.cluster.settings, shown, promise)


def _setting_as_shown(value: object) -> str:
    """A setting as a server shows it."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _candidate(study_plan: PlannedStudy, planned: PlannedCell, load: Load) -> SearchCandidate:
    executor = study_plan.choice.executor
    seconds = visit_seconds(study_plan.plan, planned.cell, load, executor=executor)
    if executor == QEMU:
        seconds += BOOT_S / study_plan.plan.guest.visits_per_boot
    build = planned.cell.build
    return SearchCandidate(planned.cell.id, seconds, digest(build) if build.is_built else "")


def _cut_seconds(study_plan: PlannedStudy, cut_dataset: str, planned_cells: Iterable[PlannedCell]) -> float:
    """What the longest visit that cuts power is reckoned to take."""
    return max(
        visit_seconds(study_plan.plan, planned.cell, load, executor=study_plan.choice.executor)
        for planned in planned_cells
        for load in planned.loads
        if load.dataset.id == cut_dataset
    )
