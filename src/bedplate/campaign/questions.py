"""Questions as plans: what a person wants to know, to the text of a plan that answers it.

The plans are short, as a plan's own defaults suit the machine; what a question adds stands in them. A file system that
the running kernel lacks is asked about in a guest.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.errors import PlanError
from bedplate.model.engine import engine_model
from bedplate.model.filesystem import TRAITS, feature_levels
from bedplate.model.power_cut import POINTS_DEFAULT
from bedplate.plan.platforms import LOCAL, QEMU
from bedplate.plan.workload_estimate import estimate_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from bedplate.campaign.engine_preparation import OwnPrograms
    from bedplate.campaign.inspection import Inspected
    from bedplate.filesystem.standing import MountedPlace
    from bedplate.model.data_directory import DataDirectory
    from bedplate.model.machine import Machine

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
    machine: Machine, types: Sequence[str], *, repetitions: int | None = None, scale: str | None = None
) -> Question:
    """Which file system suits PostgreSQL, here."""
    chosen = _types(types, machine)
    load = "" if scale is None else f"{_workload()}scale = {_scale(scale, machine)}\n"
    return Question(
        _name("ask-filesystem", types),
        f"Which file system for PostgreSQL: {', '.join(chosen)}",
        chosen,
        _lacking(chosen, machine),
        f"repetitions = {repetitions or _REPETITIONS}\n{_filesystems(chosen)}{load}",
    )


def kernel_question(
    kernels: Sequence[str], types: Sequence[str], *, repetitions: int | None = None
) -> Question:
    """Did a kernel make PostgreSQL slower: guests with each of them, as short as gives an answer."""
    if len(set(kernels)) < 2:
        raise PlanError("name two kernels to compare: bedplate ask kernel 6.1 6.12")
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
) -> Question:
    """What is left after a power cut, with settings beside their opposites.

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
        _lacking(chosen, machine),
        f"repetitions = 1\n{_filesystems(chosen)}{_settings(levels)}"
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
    duration_s: int = _TRIED_S,
) -> Question:
    """What power cuts leave of an engine of somebody's own, in a folder; `recut` of them in recovery, else a quarter more."""
    (kind,) = registry.engines_with("own_programs")
    programs: OwnPrograms = registry.engine_part(kind, "own_programs")
    engine = programs.named(folder, settings)
    chosen = _types(types, machine)
    recordings = len(chosen) * prod(len(values) for values in settings.values())
    number = points or next((each for most, each in _POINTS if recordings <= most), _POINTS_OF_MANY)
    of_engine = _OF_AN_ENGINE.format(kind=_quoted(kind), recut=number // 4 if recut is None else recut)
    return Question(
        _name("try", (engine.name, *chain(*settings.values()), *types)),
        f"After a power cut: {engine.name} on {', '.join(chosen)}",
        chosen,
        _lacking(chosen, machine),
        f"repetitions = 1\n{_filesystems(chosen)}{engine.table}"
        f"{cuts(number, of_engine, duration=f'{duration_s} s')}",
    )


def own_question(
    machine: Machine, found: Inspected, *, beside: bool = False, points: int | None = None
) -> Question | None:
    """What a server has now: is it safe, or `beside` the usual file systems, how fast. None where no plan can make that.

    PlanError where it is asked whether a server is safe of which not all can be read, or whose places stand on several file systems.
    """
    standing, directory = found.standing, found.directory
    if standing.type not in TRAITS or not standing.layers or (directory and not directory.settings):
        return None
    own = _own_filesystem(standing)
    usual = tuple(kind for kind in USUAL if beside and not _lacking((kind,), machine))
    types = tuple(dict.fromkeys((standing.type, *usual)))
    engine = next(iter(registry.ENGINES)) if directory is None else directory.engine
    server = "" if directory is None else _server(found, directory)
    if beside:
        # Its type is asked about as it comes, too, where it is mounted in another way than that.
        others = types[1:] if own == _filesystems(types[:1]) else types
        load = _workload_of(directory) if directory else ""
        body = f"repetitions = {_REPETITIONS}\n{own}{_filesystems(others) if others else ''}{server}{load}"
        title = "As fast as its neighbours"
    else:
        _refuse_part(found)
        body = f"repetitions = 1\n{own}{server}{cuts(points or POINTS_DEFAULT, _named_engine(engine))}"
        title = "Safe after a power cut"
    return Question(
        _name("ask-own", (standing.type, Path(found.path).name)),
        f"{title}: the {standing.type} that is in use",
        types,
        _lacking(types, machine),
        body,
    )


def _refuse_part(found: Inspected) -> None:
    """PlanError where the plan would have a part of the server alone: its answer would be taken for that of the whole."""
    own = found.standing
    problems = [f"not all of it can be read: {sentence}" for sentence in found.unknown]
    problems += [
        f"{what} is not where the data is: it is {_place_words(place)}, and the data {_place_words(own)}"
        for what, place in found.places.items()
        if _identity(place) != _identity(own)
    ]
    if problems:
        types = dict.fromkeys(place.type for place in found.places.values() if place.type in TRAITS)
        raise PlanError(
            *problems,
            "ask about its file systems and settings by name, as in: "
            f"bedplate ask safe full_page_writes=off --on {','.join(types)}"
            if found.directory is None or found.directory.engine == next(iter(registry.ENGINES))
            else "write a plan of its file systems and settings: docs/PLANS.md",
        )


def _identity(standing: MountedPlace) -> tuple[object, ...]:
    return standing.type, standing.options, tuple(layer.name for layer in standing.layers)


def _place_words(standing: MountedPlace) -> str:
    device = standing.layers[0].name if standing.layers else "no device"
    return f"{standing.type} of {device} with {','.join(standing.options)}"


def _server(found: Inspected, directory: DataDirectory) -> str:
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
        for sentence in _left_out(found, directory)
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


def _left_out(found: Inspected, directory: DataDirectory) -> Iterator[str]:
    """Sentences about what was read of a server, and what was not, that the plan does not say."""
    own = found.standing
    options = [word for word in own.shown if word.partition("=")[0] not in _KEPT_OPTIONS | _NO_OPTIONS]
    if options:
        yield f"mount options {','.join(options)}: write those that matter into mount_options"
    for what, place in found.places.items():
        if _identity(place) != _identity(own):
            yield f"{what} on a file system of its own, {_place_words(place)}; a plan has one for all"
    yield from (f"{sentence} (not known, and so as it comes)" for sentence in found.unknown)
    yield from directory.left_out


def _workload_of(directory: DataDirectory) -> str:
    """The workload that measures its engine; empty where a plan needs none for that."""
    if not directory.measured_by:
        return ""
    return f'\n[[workload]]\ntype = "{directory.measured_by}"\n{_named_engine(directory.engine)}'


def _named_engine(engine: str) -> str:
    """The key of a workload of several engines; empty of the engine that it has where a plan names none."""
    return "" if engine == next(iter(registry.ENGINES)) else f"engine = {_quoted(engine)}\n"


def _own_filesystem(standing: MountedPlace) -> str:
    """The table of the file system as it is mounted, as far as a plan has words for it."""
    traits = TRAITS[standing.type]
    lines = [f"type = {_quoted(standing.type)}"]
    options = [word for word in standing.shown if word.partition("=")[0] in _KEPT_OPTIONS]
    if options:
        lines.append(f"mount_options = [{', '.join(map(_quoted, options))}]")
    size = standing.block_bytes
    if size in traits.block_sizes and size != _USUAL_BLOCK and standing.type != "zfs":
        lines.append(f'block_size = "{size} B"')
    if standing.flushes is False and traits.barrier_by is not None:
        lines.append("barrier = false")
    if standing.data in traits.features.get("data", ()) and standing.data != traits.usual.get("data"):
        lines.append(f"data = {_quoted(str(standing.data))}")
    if "nodatacow" in traits.features and "nodatacow" in standing.options:
        lines.append("nodatacow = true")
    if standing.journal == "none" and "none" in traits.journals:
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


def cuts(points: int, more: str = "", *, duration: str = _RECORDED) -> str:
    """The workload of power cuts as TOML; `more` are further keys of it."""
    return f"""
[[workload]]
type = "power_cut"
# A quarter of them in order, as a cache does that power cannot take; the others are those of a volatile cache.
points = {points}
duration = "{duration}"
{more}
[canary]
# Nothing here is timed.
enabled = false
"""


def _types(types: Sequence[str], machine: Machine) -> tuple[str, ...]:
    """Those that are named, else the usual ones that this kernel has."""
    if types:
        return tuple(dict.fromkeys(types))
    return tuple(kind for kind in USUAL if not _lacking((kind,), machine)) or USUAL


def _lacking(types: Iterable[str], machine: Machine) -> tuple[str, ...]:
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
