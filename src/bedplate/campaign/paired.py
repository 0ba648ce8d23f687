"""A change measured in pairs: the plan of it, and blocks until it can be told."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bedplate import registry
from bedplate.campaign.display import LineDisplay
from bedplate.campaign.planning import PlannedStudy, kept_plan, plan_path, planned_text, read_plan
from bedplate.campaign.running import extend, run
from bedplate.errors import PlanError, StudyError
from bedplate.near_names import did_you_mean
from bedplate.plan.rules import QEMU
from bedplate.plan.toml import toml_text
from bedplate.study.layout import StudyLayout, is_study
from bedplate.study.records import (
    PAIRED_VERSION,
    PairedCells,
    PairedRecord,
    PairedStep,
    read_paired,
    read_schedule,
)
from bedplate.study.store import StudyStore
from bedplate.units import format_duration

if TYPE_CHECKING:
    from bedplate.campaign.running import Consent, StudyOutcome, Watch
    from bedplate.plan.table import PlanTable


class PairedCourse(Protocol):
    """What a study of pairs does next, worked out from its records alone. It ends after `first_blocks` of them, or where a side lacks what is asked for."""

    @property
    def first_blocks(self) -> int:
        """Blocks that run before the first look; after one of them it is asked whether the others are worth their time."""

    def next(self, study: Path) -> PairedStep:
        """The next step of a study that stands on disk, whose due visits have ended."""


@dataclass(frozen=True)
class PairedOutcome:
    """What a start came to; `has_ended` where nothing more would follow."""

    last: StudyOutcome
    has_ended: bool


def refuse_too_short(plan: PairedPlan, record: PairedRecord) -> None:
    """PlanError where not even the first look fits into the budget."""
    needed = plan.found.estimate.seconds
    if needed > record.budget_s:
        blocks = plan.found.plan.repetitions
        raise PlanError(
            f"the first look comes after {blocks} block{'s' * (blocks > 1)}, about {format_duration(needed)}, and the budget is "
            f"{format_duration(record.budget_s)}; give a longer one (--budget), or a plan with shorter visits or fewer cells"
        )


def measure_pairs(
    plan: Path,
    study: Path,
    paired_record: PairedRecord,
    course: PairedCourse,
    *,
    consent: Consent,
    watch: Watch = LineDisplay,
) -> PairedOutcome:
    """Begin a study of pairs, or go on with it, until it tells or its time is gone.

    StudyError where the study asks something else. A block whose visit fails or is suspect is no pair, and the next one takes its place.
    """
    lines = LineDisplay()
    if is_study(study):
        _go_on(study, paired_record)
        last = extend(study, repetitions=kept_plan(study).plan.repetitions, consent=consent, watch=watch)
    else:
        # What is doubtful of the plan was told with it.
        last = run(plan, study, consent=consent, watch=watch, paired=paired_record, doubts=False)
    while True:
        start = last.start
        if start is not None and (start.needs_kernel is not None or start.not_built):
            return PairedOutcome(last, has_ended=False)
        step = course.next(study)
        lines.note(step.words)
        if step.is_last or (start is not None and start.left_behind):
            return PairedOutcome(last, has_ended=step.is_last)
        blocks = max(last.plan.repetitions + 1, course.first_blocks)
        last = extend(study, repetitions=blocks, consent=consent, watch=watch)
        if last.start is None or not last.start.completed + last.start.failed:
            # A block that ran nothing would be followed by another such one.
            return PairedOutcome(last, has_ended=False)


def _go_on(study: Path, paired_record: PairedRecord) -> None:
    """The question is the one that the study was begun with; its budget may be larger now, and more doubts may be accepted."""
    # A block that a killed start was about to add is whole from here on, before the plan is asked how many there are.
    with StudyStore.open(study) as store:
        layout = StudyLayout(study)
        record = read_paired(layout, read_schedule(layout))
        if record is None:
            raise StudyError(f"{study} does not measure pairs until they tell; name another --directory")
        if replace(record, budget_s=paired_record.budget_s, accepted=paired_record.accepted) != paired_record:
            raise StudyError(
                f"{study} was begun with another question: {record.contender} beside {record.baseline}, within {record.margin:g}, "
                f"{record.condition or 'without a condition'}; name another --directory"
            )
        if missing := [word for word in record.accepted if word not in paired_record.accepted]:
            raise StudyError(
                f"{study} was begun with {' '.join(f'--accept {word!r}' for word in missing)}; what was accepted stays so. Give it again, or name "
                "another --directory"
            )
        changes = []
        if paired_record.budget_s > record.budget_s:
            changes.append(
                f"the budget was raised from {format_duration(record.budget_s)} to {format_duration(paired_record.budget_s)}"
            )
        if more := [word for word in paired_record.accepted if word not in record.accepted]:
            changes.append(f"from here on a doubt counts that has {' or '.join(map(repr, more))}")
        if changes:
            store.pair_on(
                replace(paired_record, budget_s=max(paired_record.budget_s, record.budget_s)),
                change="; ".join(changes),
            )


# The chance that any interval misses at any look.
WRONG = 0.05

_BEGIN = """\
# Written by bedplate: the two sides of a change. docs/PLANS.md has every key. It erases nothing: the scratch device is an image
# file.
"""

_OPTIONS = re.compile(r"_options$")
_KERNEL = ("machine", "kernel")
_UNFIT = re.compile(r"[^A-Za-z0-9._]+")
_NAME_CHARACTERS = 100
_TITLE_CHARACTERS = 120


@dataclass(frozen=True)
class Change:
    """A key of a plan by its path, the two values that it has, and what the sides are called, baseline first.

    `beside` are keys that both sides have: the tree that commits are of. `without` are keys of the plan that these take the place of.
    `executor` takes the place of the plan's.
    """

    key: tuple[str, ...]
    values: tuple[Any, Any]
    names: tuple[str, str]
    beside: Mapping[tuple[str, ...], Any] = field(default_factory=dict)
    without: tuple[tuple[str, str], ...] = ()
    executor: str | None = None


@dataclass(frozen=True)
class PairedPlan:
    """A plan whose cells are pairs, and what it comes to here. `name` is fit for a directory."""

    name: str
    text: str
    found: PlannedStudy
    pairs: tuple[PairedCells, ...]
    names: tuple[str, str]

    @property
    def lines(self) -> tuple[str, ...]:
        """The plan without what stands above it."""
        return tuple(self.text.removeprefix(_BEGIN).splitlines())

    def record(
        self,
        *,
        budget_s: float,
        margin: float,
        workload: str | None = None,
        metrics: tuple[str, ...] = (),
        accepted: tuple[str, ...] = (),
        condition: str | None = None,
    ) -> PairedRecord:
        """What a study of it asks."""
        return PairedRecord(
            version=PAIRED_VERSION,
            baseline=self.names[0],
            contender=self.names[1],
            pairs=self.pairs,
            budget_s=budget_s,
            margin=margin,
            wrong=WRONG,
            workload=workload,
            metrics=metrics,
            accepted=accepted,
            condition=condition,
        )


def varied_key(text: str) -> Change:
    """`barrier=true,false`, `postgresql.settings.wal_compression=off,lz4`, `filesystem.mount_options=["discard"],[]`."""
    name, equals, values = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise PlanError(
            f"--vary {text!r:.200} is not understood; write a key of a plan and two values: barrier=true,false"
        )
    found = _two_values(name, values)
    key = _path_of(name)
    if key == _KERNEL and not any(isinstance(each, dict) for each in found):
        # A version is text: the numbers 6.1 and 6.10 are one.
        one, other = (each.strip(" \"'") for each in values.split(","))
        return kernels_beside(one, other)
    if _OPTIONS.search(key[-1]):
        found = (_listed(found[0]), _listed(found[1]))
    if found[0] == found[1]:
        raise PlanError(f"--vary {text!r:.200} has the same value twice; a change has two sides")
    words = (_words(found[0]), _words(found[1]))
    return Change(key, found, (f"{key[-1]}={words[0]}", f"{key[-1]}={words[1]}"))


def kernels_beside(baseline: str, contender: str) -> Change:
    """Two kernels, by version or path, in guests."""
    values = (_kernel(baseline), _kernel(contender))
    if values[0] == values[1]:
        raise PlanError(f"{baseline!r:.200} is named twice; a change has two sides")
    return Change(_KERNEL, values, (baseline, contender), executor=QEMU)


def commits_beside(tree: str, baseline: str, contender: str) -> Change:
    """Two commits of a source tree, or a commit and the same with a patch of this file upon it."""
    section = _first_engine()
    folder = _absolute(tree)
    beside: dict[tuple[str, ...], Any] = {(section, "source", "tree"): folder}
    if is_patch_file(baseline):
        raise PlanError(
            f"{baseline!r:.200} is a patch; the first side is the commit that it is for: ab --postgres TREE master {baseline}"
        )
    if is_patch_file(contender):
        beside[section, "source", "commit"] = baseline
        name = f"{baseline} with {Path(contender).name}"
        values: tuple[Any, Any] = ([], [_absolute(contender)])
        return Change((section, "patches"), values, (baseline, name), beside, ((section, "version"),))
    if baseline == contender:
        raise PlanError(f"{baseline!r:.200} is named twice; a change has two sides")
    names = (baseline, contender)
    return Change((section, "source", "commit"), names, names, beside, ((section, "version"),))


def commits_of(tree: str, good: str, commit: str, *, is_kernel: bool) -> Change:
    """A commit of a source tree beside the good one, both by their hashes."""
    section = ("machine", "kernel") if is_kernel else (_first_engine(), "source")
    return Change(
        (*section, "commit"),
        (good, commit),
        (f"good {good[:12]}", commit[:12]),
        {(*section, "tree"): _absolute(tree)},
        () if is_kernel else ((section[0], "version"),),
        QEMU if is_kernel else None,
    )


def is_patch_file(word: str) -> bool:
    """Whether a side is a patch in a file, and no commit."""
    return word.endswith((".patch", ".diff")) or (os.sep in word and Path(word).expanduser().is_file())


def paired_plan(
    change: Change,
    *,
    plan: Path | None = None,
    types: Sequence[str] = (),
    executor: str | None = None,
    repetitions: int,
    title: str | None = None,
) -> PairedPlan:
    """The plan of a change on that of a workload; PlanError where the change names nothing of it, or changes nothing.

    Without `plan` it is a short one of bedplate's own, on `types`. The first `repetitions` blocks are in it.
    """
    if plan is not None and types:
        raise PlanError(
            "--plan names its file systems itself; leave out --on, or write them into a copy of the plan"
        )
    data = _own_plan(types, in_guest=change.executor == QEMU) if plan is None else _read_plan_data(plan)
    for table, key in change.without:
        data.get(table, {}).pop(key, None)
    for path, value in change.beside.items():
        _write_key(data, path, value)
    if found := executor or change.executor:
        data["executor"] = found
    data["title"] = (title or f"{change.names[1]} beside {change.names[0]}")[:_TITLE_CHARACTERS]
    data["repetitions"] = repetitions
    # Each block holds both sides: what drifts takes no side.
    data["canary"] = {"enabled": False}
    data = {"title": data.pop("title"), "repetitions": data.pop("repetitions"), **data}
    sides = []
    for value in change.values:
        side = deepcopy(data)
        _write_key(side, change.key, value)
        sides.append(_BEGIN + toml_text(side))
    both = deepcopy(data)
    _write_key(both, change.key, {"vary": list(change.values)})
    text = _BEGIN + toml_text(both)
    source = f"the plan of {change.names[1]} beside {change.names[0]}"
    directory = None if plan is None else plan_path(plan).absolute().parent
    found_both = planned_text(text, source=source, directory=directory)
    pairs = _pairs(found_both, [planned_text(each, source=source, directory=directory) for each in sides])
    return PairedPlan(_name(("ab", *change.names)), text, found_both, pairs, change.names)


def _pairs(study_plan: PlannedStudy, side_plans: Sequence[PlannedStudy]) -> tuple[PairedCells, ...]:
    """The cells that differ in the change alone, of those that can run here."""
    kept = {planned.cell.id for planned in study_plan.expansion.cells}
    first, second = (
        [side.choice.platform.settled(cell).id for cell in side.plan.cells()] for side in side_plans
    )
    if len(first) != len(second):
        raise PlanError(f"one side has {len(first)} cells and the other {len(second)}; they cannot be paired")
    pairs = tuple(
        PairedCells(one, other)
        for one, other in dict.fromkeys(zip(first, second, strict=True))
        if one != other and one in kept and other in kept
    )
    if not pairs:
        causes = dict.fromkeys(
            str(reason) for pruned in study_plan.expansion.pruned for reason in pruned.reasons
        )
        if not causes:
            raise PlanError(
                "the change changes no cell of the plan: name one of a workload that is about it (--plan)"
            )
        raise PlanError("no pair of this change can run here", *causes)
    return pairs


def _read_plan_data(plan: Path) -> dict[str, Any]:
    data = tomllib.loads(_text_of(plan.absolute() if plan.exists() else plan))
    if data.get("journal_device", {}).get("device") or data.get("scratch_device", {}).get("device"):
        raise PlanError(
            f"{plan} erases a device; `bedplate ab` runs on an image file. Take [scratch_device] device out of a copy of the plan"
        )
    return data


@lru_cache
def _text_of(plan: Path) -> str:
    """Read once: after its first start a bisection may no longer see the mount that the plan is on."""
    return read_plan(plan).text


def _own_plan(types: Sequence[str], *, in_guest: bool) -> dict[str, Any]:
    """A read-write run that holds one whole checkpoint, as short as that can be."""
    kinds = list(types) or ["ext4"]
    workload = {
        "type": registry.first_workload(),
        # In a guest 60 MB, as an emulated processor loads a unit in some 5 s; else 300 MB.
        "scale": 4 if in_guest else 20,
        "run": [
            {
                "script": "read-write",
                "clients": 2 if in_guest else 4,
                "warmup": "5 s",
                "duration": "40 s",
            }
        ],
    }
    data: dict[str, Any] = {"machine": {"memory": "1 GB"}} if in_guest else {}
    data["filesystem"] = [{"type": kinds[0] if len(kinds) == 1 else {"vary": kinds}}]
    data[_first_engine()] = {
        "settings": {
            "checkpoint_timeout": "30s",
            "checkpoint_completion_target": 0.3,
            "max_wal_size": "1GB" if in_guest else "2GB",
        }
    }
    data["workload"] = [workload]
    return data


def _first_engine() -> str:
    from bedplate.plan.table import section_of  # noqa: PLC0415

    return section_of(next(iter(registry.ENGINES)))


def _write_key(data: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    """Set a key of a plan, in each of its tables of that name."""
    head, rest = path[0], path[1:]
    if not rest:
        data[head] = value
        return
    if head in ("filesystem", "workload") and head not in data:
        raise PlanError(f"the plan has no [[{head}]] to write {'.'.join(path)} into; write one")
    inner = data.setdefault(head, {})
    for table in inner if isinstance(inner, list) else (inner,):
        if not isinstance(table, dict):
            raise PlanError(f"{head} of the plan is no table; {'.'.join(path)} cannot be written into it")
        _write_key(table, rest, value)


# Of PostgreSQL's 348 settings none is so like a key of a file system, a device or a machine: `barier` is, `fsync` and `sync` are not.
_SURELY_MISTYPED = 0.9


def _path_of(name: str) -> tuple[str, ...]:
    """The path of a key by its name, or by its end where that is one key; PlanError where it may be several."""
    from bedplate.plan.load import WHOLE, FilesystemTable, MachineTable, ScratchDeviceTable  # noqa: PLC0415
    from bedplate.plan.table import (  # noqa: PLC0415
        engine_tables,
        keys_of,
    )

    path = tuple(name.split("."))
    if len(path) > 1:
        if path[0] not in keys_of(WHOLE):
            hint = did_you_mean(path[0], keys_of(WHOLE), otherwise="docs/PLANS.md has every key")
            raise PlanError(f"--vary {name!r:.200}: a plan has no table {path[0]!r:.100}; {hint}")
        return path
    tables: dict[str, type[PlanTable]] = {
        "filesystem": FilesystemTable,
        "scratch_device": ScratchDeviceTable,
        "machine": MachineTable,
        **engine_tables(),
    }
    having = [table for table, kind in tables.items() if name in keys_of(kind)]
    if len(having) > 1:
        meant = " or ".join(f"{table}.{name}" for table in having)
        raise PlanError(f"--vary {name!r:.200} may mean several keys; write {meant}")
    if having:
        return having[0], name
    of_machine = [
        key for kind in (FilesystemTable, ScratchDeviceTable, MachineTable) for key in keys_of(kind)
    ]
    if near := get_close_matches(name, of_machine, n=1, cutoff=_SURELY_MISTYPED):
        raise PlanError(
            f"--vary {name!r:.200} is no key of a plan; did you mean {near[0]}? A setting of that very name is {_first_engine()}.settings.{name}"
        )
    return _first_engine(), "settings", name


def _two_values(name: str, text: str) -> tuple[Any, Any]:
    try:
        found = tomllib.loads(f"v = [{text}]")["v"]
    except tomllib.TOMLDecodeError:
        found = [each.strip() for each in text.split(",")]
    if len(found) != 2 or "" in found:
        raise PlanError(
            f"--vary {name}: two values are compared, {text!r:.200} has {len(found)}; write {name}=ONE,OTHER"
        )
    return found[0], found[1]


def _listed(value: object) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _words(value: object) -> str:
    if isinstance(value, list):
        return "+".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return "+".join(f"{key}={_words(each)}" for key, each in value.items()) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kernel(word: str) -> str:
    """A version as it is, a path whole: the plan stands elsewhere."""
    return _absolute(word) if Path(word).expanduser().exists() or os.sep in word else word


def _absolute(path: str) -> str:
    return os.path.normpath(Path(path).expanduser().absolute())


def _name(words: Sequence[str]) -> str:
    short = [Path(word).name if os.sep in word else word for word in words]
    return _UNFIT.sub("-", "-".join(short))[:_NAME_CHARACTERS].strip("-.")
