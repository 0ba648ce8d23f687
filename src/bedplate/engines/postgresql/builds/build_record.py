"""What a build is made of, what makes two builds the same, and the stamp that says one is finished."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.version import DEFAULT_VERSION, parse_version
from bedplate.errors import PlanError
from bedplate.model.visit import EngineBuild
from bedplate.units import KIB, format_size

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.cell import BuildLevels

BLOCK_SIZES_BYTES = tuple(KIB << power for power in range(6))
WAL_BLOCK_SIZES_BYTES = tuple(KIB << power for power in range(7))
STAMP = "build.json"
_STAMP_FORMAT = 1


@dataclass(frozen=True)
class BuildSpec:
    """What is asked for. `version` may leave the minor open ("18"); `tarball` is an own source.

    `source_commit` is the level of a commit, whose version `version` is then; `patches` are levels of patches, in order.

    `PlanError` names every size that PostgreSQL cannot be compiled with. The segment size stays
    PostgreSQL's 1 GiB.
    """

    version: str = DEFAULT_VERSION
    block_size_bytes: int = 8 * KIB
    wal_block_size_bytes: int = 8 * KIB
    tarball: Path | None = None
    source_commit: str | None = None
    patches: tuple[str, ...] = ()

    @classmethod
    def of(cls, levels: BuildLevels, tarball: Path | None = None) -> BuildSpec:
        """What a cell asks for."""
        return cls(
            version=levels.version,
            block_size_bytes=levels.block_size_bytes,
            wal_block_size_bytes=levels.wal_block_size_bytes,
            tarball=tarball,
            source_commit=levels.source_commit,
            patches=levels.patches,
        )

    @property
    def is_own(self) -> bool:
        """Whether somebody's own source is built, in part or whole."""
        return self.source_commit is not None or bool(self.patches)

    @property
    def words(self) -> str:
        """`PostgreSQL 19devel, commit 0123456789ab Faster, with v3-0001-x.patch 89abcdef0123`."""
        commit = [] if self.source_commit is None else [f"commit {self.source_commit}"]
        patches = [f"with {' and '.join(self.patches)}"] if self.patches else []
        return ", ".join([f"PostgreSQL {self.version}", *commit, *patches])

    def __post_init__(self) -> None:
        reasons: list[str] = []
        try:
            if self.source_commit is None:
                parse_version(self.version)
        except PlanError as error:
            reasons += error.reasons
        for name, size_bytes, allowed in (
            ("block size", self.block_size_bytes, BLOCK_SIZES_BYTES),
            ("WAL block size", self.wal_block_size_bytes, WAL_BLOCK_SIZES_BYTES),
        ):
            if size_bytes not in allowed:
                reasons.append(
                    f"a {name} of {size_bytes} bytes cannot be compiled into PostgreSQL; allowed are "
                    + ", ".join(format_size(item) for item in allowed)
                )
        if reasons:
            raise PlanError(*reasons)


@dataclass(frozen=True)
class BuildIdentity:
    """Everything that decides what comes out of the compiler; its digest is the key of the cache."""

    version: str
    block_size_bytes: int
    wal_block_size_bytes: int
    tarball_sha256: str
    compiler: str
    machine: str
    configure_options: tuple[str, ...]
    recipe_version: int
    commit_digits: str = ""
    patch_digits: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 over all fields, as hexadecimal; the place of the build is no part of it."""
        # Of a release it is what it was before there were commits.
        own = (
            {}
            if self.commit_digits or self.patch_digits
            else dict.fromkeys(("commit_digits", "patch_digits"))
        )
        text = json.dumps(
            {name: value for name, value in asdict(self).items() if name not in own}, sort_keys=True
        )
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def folder_name(self) -> str:
        """`postgresql-18.6-block8k-wal8k-0123456789ab`.

        The name holds "postgres" on purpose: where the prefix does not, PostgreSQL's configure
        appends another folder to share, lib and include.
        """
        block, wal = self.block_size_bytes // KIB, self.wal_block_size_bytes // KIB
        commit = f"-{self.commit_digits}" if self.commit_digits else ""
        return f"postgresql-{self.version}{commit}-block{block}k-wal{wal}k-{self.digest[:12]}"


@dataclass(frozen=True)
class Build:
    """A finished build: programs in `prefix`/bin, readable by every account.

    `compiler` is the first line of `cc --version`; `build_seconds` is wall time of configure,
    compile and install, `build_cpu_seconds` the CPU time of their processes. `commit` is the full hash of one that was built, and
    `patches` are the levels of what was applied.
    """

    prefix: Path
    version: str
    block_size_bytes: int
    wal_block_size_bytes: int
    tarball_sha256: str
    source_origin: str
    compiler: str
    machine: str
    configure_options: tuple[str, ...]
    digest: str
    build_seconds: float
    build_cpu_seconds: float
    commit: str | None = None
    commit_digits: str = ""
    patches: tuple[str, ...] = ()

    def program(self, name: str) -> Path:
        """The path of `postgres`, `initdb`, `pgbench` and the others."""
        return self.prefix / "bin" / name

    @property
    def for_visit(self) -> EngineBuild:
        """The part of it that a visit is handed."""
        return EngineBuild(
            prefix=str(self.prefix),
            version=self.version,
            block_size_bytes=self.block_size_bytes,
            wal_block_size_bytes=self.wal_block_size_bytes,
            source_sha256=self.tarball_sha256,
            source_origin=self.source_origin,
            compiler=self.compiler,
            configure_options=self.configure_options,
            digest=self.digest,
            commit=self.commit,
            patches=self.patches,
        )


def stamp_text(build: Build) -> str:
    """The text of the stamp of a finished build."""
    fields = {"format": _STAMP_FORMAT, **asdict(build), "prefix": str(build.prefix)}
    return json.dumps(fields, indent=1) + "\n"


def read_build(prefix: Path) -> Build | None:
    """The finished build at `prefix`; None when there is none, or one that is not whole.

    A build that was moved is not finished either: its libraries are found by absolute paths.
    """
    try:
        fields = json.loads((prefix / STAMP).read_text(encoding="utf-8"))
        if fields.pop("format") != _STAMP_FORMAT or fields["prefix"] != str(prefix):
            return None
        lists = {name: tuple(fields[name]) for name in ("configure_options", "patches") if name in fields}
        build = Build(**{**fields, "prefix": prefix, **lists})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return build if build.program("postgres").is_file() else None
