"""TPC-H's data: made once for each scale factor, and unused when nobody has asked for them for a month."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from bedplate.campaign.preparation import DatasetInputs, MadeAnyway
from bedplate.errors import RequirementMissing, VerifyFailed
from bedplate.host.cache import Unused, days_since, make_once, put_in_place, unused_folders
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory, open_to_all, require_traversable
from bedplate.host.native_driver import watched
from bedplate.host.requirement import find_tool
from bedplate.model.cell import Dataset
from bedplate.units import format_size
from bedplate.workloads.tpch.model import WORKLOAD, tpch_data_bytes
from bedplate.workloads.tpch.queries import ORDERS, TABLES, SchemaTable, exact_scale_factor, row_count

RECORD = "data.json"

_PACKAGE = "tpchgen-cli"
_READ_BYTES = 1 << 20
_TELL_BYTES = 64 * _READ_BYTES

# An order has 1 to 7 lines (clause 4.2.5.2).
_LINES_PER_ORDER_MAX = 7

# 4.7 s at scale factor 1 on two idle cores, most of it the disk's: this is a hundred times slower.
_GENERATE_LIMIT_S_PER_SCALE = 600.0

_GENERATE_LIMIT_S = 300.0


@dataclass(frozen=True)
class Generator:
    """The program that makes the data; another version's are other data until they are compared."""

    program: Path
    version: str

    @property
    def name(self) -> str:
        """`tpchgen-cli 4.0.0`, as records name it."""
        return f"{_PACKAGE} {self.version}"


@dataclass(frozen=True)
class TpchData:
    """Whole data in the cache. `bytes` is the size of the eight files.

    `digest` is the SHA-256 of what `sha256sum` prints for the eight files, in the order of the schema.
    """

    directory: Path
    scale_factor: float
    generator: str
    bytes: int
    digest: str


@dataclass(frozen=True)
class TpchProgress:
    """How far it is: `step` is `wait` (for another start that makes them), `generate` or `check`.

    `done` and `total` are bytes; `total` is an estimate until they are checked.
    """

    step: str
    done: int
    total: int


def packaged_generator() -> Generator | None:
    """The generator that the locked requirements put beside this Python; None where it is missing."""
    program = Path(sys.executable).with_name(_PACKAGE)
    try:
        version = importlib.metadata.version(_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None
    return Generator(program, version) if program.is_file() else None


def data_directory(cache_directory: Path) -> Path:
    """Where the data of all scale factors lie in a cache."""
    return cache_directory / "tpch"


def read_tpch_data(folder: Path) -> TpchData | None:
    """The data of a folder by its record; None unless record and files are whole.

    Files are held to their recorded sizes. Their bytes were checked when they were made.
    """
    try:
        fields = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        data = TpchData(
            directory=folder,
            scale_factor=float(fields["scale_factor"]),
            generator=str(fields["generator"]),
            bytes=int(fields["bytes"]),
            digest=str(fields["digest"]),
        )
        sizes = {name: int(size) for name, size in fields["files"].items()}
        whole = all(_file(folder, name).stat().st_size == sizes[name] for name in TABLES)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return data if whole else None


def ensure_tpch_data(
    scale_factor: float,
    *,
    cache_directory: Path,
    commands: Commands,
    progress: Callable[[TpchProgress], None] | None = None,
    generator: Generator | None = None,
) -> TpchData:
    """The data of a scale factor, made now if the cache lacks them.

    `progress` is called from another thread while the generator runs. Raises `RequirementMissing` without
    the generator or room for its files, `CommandFailed` when it fails, `VerifyFailed` when a table has
    another header or number of rows than it must have, ValueError unless the scale factor is positive.
    """
    chosen = generator or packaged_generator()
    if chosen is None:
        raise RequirementMissing(
            f"{_PACKAGE}, which makes TPC-H's data, is not in the environment of {sys.executable}; start bedplate "
            "by its launcher, which installs what requirements/runtime.txt names"
        )
    folder = _folder(scale_factor, cache_directory, chosen)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        # Only root's clients run as somebody else.
        require_traversable(folder.parent, base=cache_directory)
    tell = progress or _untold
    data = make_once(
        folder,
        lambda: read_tpch_data(folder),
        lambda place: _make(folder, place, scale_factor, chosen, commands=commands, progress=tell),
        on_wait=lambda: tell(TpchProgress("wait", 0, tpch_data_bytes(scale_factor))),
    )
    # Another account's cache cannot be written, and is not ours to clear either.
    with suppress(OSError):
        os.utime(folder / RECORD)
    return data


def _folder(scale_factor: float, cache_directory: Path, generator: Generator) -> Path:
    name = f"sf{_decimal_text(scale_factor)}-{_PACKAGE}-{generator.version}"
    return data_directory(cache_directory) / name


def _decimal_text(scale_factor: float) -> str:
    """One way to write each scale factor: 1 for 1.0, 0.00001 for 1e-5."""
    return format(exact_scale_factor(scale_factor).normalize(), "f")


def _make(
    folder: Path,
    place: Path,
    scale_factor: float,
    generator: Generator,
    *,
    commands: Commands,
    progress: Callable[[TpchProgress], None],
) -> TpchData:
    """Generate, check, record, and rename into place."""
    _demand_space(scale_factor, folder.parent)
    # A name of its own: a generator that outlived a killed start finds its folder gone, and not this one.
    fresh = Path(tempfile.mkdtemp(dir=place))
    _generate(fresh, scale_factor, generator, commands, progress)
    data, sizes = _checked(folder, fresh, scale_factor, generator, progress)
    record = {**asdict(data), "files": sizes}
    del record["directory"]
    (fresh / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    open_to_all(fresh)
    put_in_place(fresh, folder)
    return data


def _demand_space(scale_factor: float, directory: Path) -> None:
    wanted, free = tpch_data_bytes(scale_factor), shutil.disk_usage(directory).free
    if free < wanted:
        raise RequirementMissing(
            f"TPC-H's data at scale factor {_decimal_text(scale_factor)} take {format_size(wanted)} in {directory}, "
            f"which has {format_size(free)} free; make room (`bedplate release --cache` tells what can go), set "
            "BEDPLATE_CACHE to a larger disk, or choose a smaller scale_factor"
        )


def _generate(
    work: Path,
    scale_factor: float,
    generator: Generator,
    commands: Commands,
    progress: Callable[[TpchProgress], None],
) -> None:
    total = tpch_data_bytes(scale_factor)
    # The generator dies with bedplate, even where that is killed.
    argv = ["setpriv", "--pdeathsig", "KILL"] if find_tool("setpriv") else []
    argv += [str(generator.program), "csv", "-s", _decimal_text(scale_factor), "-o", str(work), "--quiet"]
    progress(TpchProgress("generate", 0, total))
    with watched(
        lambda: _bytes_in(work), lambda done: progress(TpchProgress("generate", min(done, total), total))
    ):
        commands.run(argv, timeout_s=_GENERATE_LIMIT_S + float(scale_factor) * _GENERATE_LIMIT_S_PER_SCALE)


def _bytes_in(folder: Path) -> int:
    """What is there so far; the generator writes `part.csv.inprogress` and renames it when it is whole."""
    size = 0
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


def _checked(
    folder: Path,
    work: Path,
    scale_factor: float,
    generator: Generator,
    progress: Callable[[TpchProgress], None],
) -> tuple[TpchData, dict[str, int]]:
    """What the files hold, read once; VerifyFailed with all that is wrong with any of them."""
    absent = [f"{_PACKAGE} made no {name}.csv" for name in TABLES if not _file(work, name).is_file()]
    if absent:
        raise VerifyFailed(*absent)
    sizes = {name: _file(work, name).stat().st_size for name in TABLES}
    total, before = sum(sizes.values()), 0
    lines, reasons, contents = [], [], {}
    for name, table in TABLES.items():

        def tell(current: int, start_bytes: int = before) -> None:
            progress(TpchProgress("check", start_bytes + current, total))

        contents[name] = found = _read(_file(work, name), tell)
        before += sizes[name]
        lines.append(f"{found.digest}  {name}.csv\n")
        reasons += _header_reasons(table, found.header)
    for name, table in TABLES.items():
        reasons += _row_reasons(table, contents[name], contents[ORDERS.name].rows, scale_factor)
    if reasons:
        raise VerifyFailed(
            *reasons,
            f"{generator.program} ({generator.name}) made them; the version that requirements/runtime.txt names "
            "makes the right ones",
        )
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    return TpchData(folder, float(scale_factor), generator.name, total, digest), sizes


class _Content(NamedTuple):
    """What one file holds; `rows` are whole ones, `rest` is what follows the last of them."""

    digest: str
    header: str
    rows: int
    rest: bool


def _read(path: Path, tell: Callable[[int], None]) -> _Content:
    digest, lines, done, last = hashlib.sha256(), 0, 0, b"\n"
    with path.open("rb") as file:
        header = file.readline()
        file.seek(0)
        while part := file.read(_READ_BYTES):
            digest.update(part)
            lines += part.count(b"\n")
            done, last = done + len(part), part[-1:]
            if done % _TELL_BYTES == 0:
                tell(done)
    tell(done)
    text = header.decode("utf-8", errors="replace").rstrip("\n")
    return _Content(digest.hexdigest(), text, max(0, lines - 1), last != b"\n")


def _header_reasons(schema_table: SchemaTable, header: str) -> list[str]:
    wanted = ",".join(schema_table.columns)
    return (
        []
        if header == wanted
        else [f"{schema_table.name}.csv begins with {header[:200]!r}, not with {wanted!r}"]
    )


def _row_reasons(schema_table: SchemaTable, content: _Content, orders: int, scale_factor: float) -> list[str]:
    """Rows of no known number are those of the order lines alone."""
    wanted = row_count(schema_table, scale_factor)
    if content.rest:
        return [f"{schema_table.name}.csv ends within its row {content.rows + 1}"]
    if wanted is not None and content.rows != wanted:
        return [f"{schema_table.name}.csv has {content.rows} rows, not {wanted}"]
    if wanted is None and not orders <= content.rows <= _LINES_PER_ORDER_MAX * orders:
        return [
            f"{schema_table.name}.csv has {content.rows} rows for {orders} orders, which is not 1 to 7 for each"
        ]
    return []


def _file(folder: Path, table: str) -> Path:
    return folder / f"{table}.csv"


def _untold(progress: TpchProgress) -> None:
    """Nobody asked."""


class TpchInputs(DatasetInputs):
    """The CSV files of a scale factor, which any account makes, where nodes find them too."""

    def make(
        self,
        dataset: Dataset,
        resources: MadeAnyway,  # noqa: ARG002 -- of others' role
        tell: Callable[[str, int, int], None],
    ) -> Mapping[str, str]:
        """The folder of the files."""
        scale_factor = dataset.levels.number("scale_factor")
        if scale_factor is None:
            return {}
        name = f"TPC-H data, scale factor {scale_factor:g}"
        found = ensure_tpch_data(
            scale_factor,
            cache_directory=cache_directory(),
            commands=Commands(),
            progress=lambda progress: tell(f"{name}: {progress.step}", progress.done, progress.total),
        )
        return {WORKLOAD: str(found.directory)}

    def unused(self, cache_directory: Path, days: float) -> Iterator[Unused]:
        """Data that are not whole, that another generator made, or that nobody has asked for."""
        return unused_folders(data_directory(cache_directory), RECORD, lambda path: _why_unused(path, days))


def _why_unused(path: Path, at_most_days: float) -> str | None:
    generator = packaged_generator()
    if not path.name.startswith("sf"):
        return None
    found = read_tpch_data(path)
    if found is None:
        return "not whole data"
    if generator is not None and found.generator != generator.name:
        return f"{generator.name} would be used now; they are by {found.generator}"
    days = days_since(path / RECORD)
    return f"nobody has asked for them for {days:.0f} days" if days > at_most_days else None


INPUTS: DatasetInputs = TpchInputs()
