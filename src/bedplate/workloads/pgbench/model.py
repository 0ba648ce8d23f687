"""What records say of pgbench's datasets and runs."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeVar

from bedplate.model.engines import POSTGRESQL
from bedplate.model.levels import LevelMismatch, Levels, Scalar
from bedplate.model.plan import RecordWords, WorkloadModel

if TYPE_CHECKING:
    from pydantic import ValidationInfo

READ_ONLY = "read-only"
READ_WRITE = "read-write"

# What stands for the script of a run of several.
SEVERAL = "several"

# The phase of the figures that a run has of each of several scripts.
PHASE = "scripts"

_VARIABLE_LEVEL = "variable_"


@dataclass(frozen=True)
class BuiltIn:
    """A script of pgbench's own: what pgbench calls it, and whether it writes."""

    option: str
    writes: bool


BUILT_IN: Mapping[str, BuiltIn] = {
    READ_ONLY: BuiltIn("select-only", writes=False),
    READ_WRITE: BuiltIn("tpcb-like", writes=True),
    "simple-update": BuiltIn("simple-update", writes=True),
}


@dataclass(frozen=True)
class RunScript:
    """A script of a run; `text` is None of a built-in one."""

    name: str
    text: str | None = None
    weight: int = 1

    @property
    def writes(self) -> bool | None:
        """Of a built-in one; None of one's own, whose functions may hide anything."""
        built_in = BUILT_IN.get(self.name) if self.text is None else None
        return None if built_in is None else built_in.writes


def levels_of(scripts: Sequence[RunScript], variables: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
    """As a run's levels hold them; one script has no number and no weight, as in studies from before there were several."""
    found: dict[str, Scalar] = {f"{_VARIABLE_LEVEL}{name}": value for name, value in variables.items()}
    if len(scripts) == 1:
        (only,) = scripts
        found["script"] = only.name
        if only.text is not None:
            found["script_text"] = only.text
        return found
    found["script"] = SEVERAL
    for number, script in enumerate(scripts, start=1):
        found |= {f"script_{number}": script.name, f"script_{number}_weight": script.weight}
        if script.text is not None:
            found[f"script_{number}_text"] = script.text
    return found


def scripts_of(levels: Levels) -> tuple[RunScript, ...]:
    """The scripts of a run in the order of pgbench's numbers (`script_no` of its log)."""
    return tuple(_scripts(levels))


def _scripts(levels: Levels) -> Iterator[RunScript]:
    name = levels.text("script") or READ_WRITE
    if name != SEVERAL or levels.text("script_text") is not None:
        yield RunScript(name, levels.text("script_text"))
        return
    number = 1
    while (each := levels.text(f"script_{number}")) is not None:
        weight = levels.integer(f"script_{number}_weight")
        if weight is None:
            raise LevelMismatch(f"level 'script_{number}' has no weight")
        yield RunScript(each, levels.text(f"script_{number}_text"), weight)
        number += 1


def variables_of(levels: Levels) -> Mapping[str, Scalar]:
    """What the scripts find set, by its name."""
    return {
        name.removeprefix(_VARIABLE_LEVEL): value
        for name, value in levels.items()
        if name.startswith(_VARIABLE_LEVEL)
    }


def writes(scripts: Sequence[RunScript]) -> bool | None:
    """Whether any script writes, None where that is for what the run did to tell."""
    known = [script.writes for script in scripts]
    if True in known:
        return True
    return None if None in known else False


# Levels of a dataset: what it is made of, and which state of that.
DUMP, COPY = "dump", "copy"

SHA256, SIZE = "source_sha256", "source_bytes"

_DETAILS = re.compile(r"(DETAIL|HINT|CONTEXT|QUERY|STATEMENT|LINE \d+|LOCATION):")
_QUOTED, _PARAMETER = re.compile(r'"[^"]*"'), re.compile(r'"\$[0-9]{1,4}"')
_NAME_CHARACTERS_MAX = 4000

_Noted = TypeVar("_Noted")


@dataclass(frozen=True)
class NamedSource:
    """A path in a plan: what it leads to, where a study notes that, and the plan's files and places that it adds to."""

    path: Path
    directory: Path
    note: str
    files: dict[str, str]
    archives: dict[str, str]

    def noted(self, kind: type[_Noted]) -> _Noted | None:
        """What a study has of it; None beside a plan that is no study's."""
        try:
            return kind(**json.loads((self.directory / self.note).read_text(encoding="utf-8")))
        except OSError:
            return None
        except (ValueError, TypeError):
            raise ValueError(f"the study's note of it ({self.note}) is damaged") from None

    def keep(self, note: Any, sha256: str) -> None:
        """Note it, and where it lies."""
        self.files[self.note] = json.dumps(asdict(note), indent=1) + "\n"
        self.archives[sha256] = str(self.path)


def named_source(value: Any, info: ValidationInfo, subject: str) -> NamedSource:
    """What a path leads to, from the plan's directory or absolute; ValueError in a sentence."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= _NAME_CHARACTERS_MAX:
        raise ValueError(f"allowed is the path of {subject}")
    context = info.context or {}
    directory = Path(context["directory"])
    try:
        path = (directory / value).resolve()
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    except RuntimeError:
        raise ValueError("it cannot be read: a link leads to itself") from None
    note = f"dumps/{hashlib.sha256(value.encode()).hexdigest()[:16]}.json"
    return NamedSource(path, directory, note, context["files"], context["archives"])


def is_own(levels: Levels) -> bool:
    """Whether a dataset is somebody's own database, and not pgbench's tables."""
    return DUMP in levels or COPY in levels


def _blank(quoted: re.Match[str]) -> str:
    # A parameter's number is nobody's data, and says why a statement was refused.
    return quoted[0] if _PARAMETER.fullmatch(quoted[0]) else '"…"'


def without_data(text: str) -> str:
    """What pgbench printed, without values and names of one's own database: a study keeps it.

    A server's error quotes names and values, and its details stand on lines behind it.
    """
    kept = []
    in_details = False
    for line in text.splitlines():
        in_details = bool(_DETAILS.match(line)) or (in_details and not line.startswith("pgbench"))
        if not in_details:
            kept.append(_QUOTED.sub(_blank, line))
    return "\n".join(kept) + ("\n" if kept else "")


_FIXED = "fixed"


class PgbenchModel(WorkloadModel):
    """A warm-up is a time, or until the run is steady, and then its time is a limit."""

    def restores(self, dataset: Levels) -> bool:
        """Pgbench's own tables; one's own database is copied from the cache, or from where it lies, as it is."""
        return not is_own(dataset)

    def in_a_plan(self, levels: Levels) -> Mapping[str, Scalar]:
        """`run.warmup` and `run.scripts` as the plan has them, and each variable."""
        found = dict(super().in_a_plan(levels))
        if found.get("run.script") == SEVERAL:
            del found["run.script"]
            found["run.scripts"] = ", ".join(f"{each.name}@{each.weight}" for each in scripts_of(levels))
        found |= {f"run.variables.{name}": value for name, value in variables_of(levels).items()}
        if levels.get("warmup", _FIXED) != _FIXED:
            found |= {"run.warmup": levels["warmup"], "run.warmup_limit": found["run.warmup"]}
        return found


MODEL = PgbenchModel(
    POSTGRESQL,
    plan_keys={
        "scale": "scale",
        "dump": "dump",
        "copy": "copy",
        "database": "database",
        "script": "run.script",
        "clients": "run.clients",
        "jobs": "run.jobs",
        "warmup_s": "run.warmup",
        "duration_s": "run.duration",
        "rate_tps": "run.rate",
        "protocol": "run.protocol",
    },
    words=RecordWords(
        dataset="`scale`. Of one's own database `dump` (the name of its file), `source_sha256`, `source_bytes`, `source_compression` (absent: "
        "gzip), `prepare_text` and `settle_text` (what ran behind its restore). Of a data directory `copy` (its name), `database`, "
        "`source_sha256` (of its control file), `source_bytes`, and `…_fixed`: what its files are, whatever a plan asks for",
        run="`script`, `clients`, `jobs`, `duration_s`, …; of several scripts `script` is `several`, and `script_1`, `script_1_weight`, "
        "`script_1_text` are the first; `variable_…` is what scripts find set",
        phases="`warmup`, `measure`; figures of each of several scripts have the phase `scripts` and its name as item",
        facts="`clients`, `jobs`, `writing_transactions` and how they were counted (`writing_transactions_by`: `ids`, `WAL`), "
        "`wal_syncs`, `session_…` (settings of a new session after the run), `role_settings`, `unlogged_tables_written`, "
        "`script_sets_synchronous_commit_off`, `script_has_temporary_tables`, …",
        files="`warmup.bin`, `measure.bin`: the transaction logs, condensed; deleted once `run.json` is complete",
    ),
)


class SteadyDetector:
    """Steady when three windows in a row agree, in transactions and in device reads.

    `window_s` seconds make a window; the three means of transactions may differ by `tolerance` of
    their mean, and device reads may not have fallen by more than twice that (they scatter more).
    Fewer than one device read a second counts as none.
    """

    WINDOWS = 3

    def __init__(self, *, window_s: int = 10, tolerance: float = 0.05) -> None:
        self._window_s = window_s
        self._tolerance = tolerance
        self._transactions: list[float] = []
        self._reads: list[float] = []

    def add_second(self, transactions: float) -> None:
        """The transactions of one more second, in order."""
        self._transactions.append(transactions)

    def add_reads(self, reads: float) -> None:
        """The device reads of one more second, in order."""
        self._reads.append(reads)

    @property
    def steady(self) -> bool:
        """Whether the last three windows agree."""
        transactions = self._windows(self._transactions)
        if transactions is None:
            return False
        middle = fmean(transactions)
        if middle <= 0 or max(transactions) - min(transactions) > self._tolerance * middle:
            return False
        reads = self._windows(self._reads)
        if reads is None:
            return False
        return reads[0] < 1 or (reads[0] - reads[-1]) <= 2 * self._tolerance * reads[0]

    def _windows(self, seconds: list[float]) -> list[float] | None:
        needed = self.WINDOWS * self._window_s
        if len(seconds) < needed:
            return None
        last = seconds[-needed:]
        means = [fmean(last[i : i + self._window_s]) for i in range(0, needed, self._window_s)]
        return means if all(math.isfinite(mean) for mean in means) else None
