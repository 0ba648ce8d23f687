"""The studies of which all that is said is kept, and the commands that say it.

Each is packed as it was measured or made up; of runs that others published it is these that are packed, and they are imported first.

`known-effects`, `fleet` and the searches are of `synthetic_study`, the sources of imported studies of `published_sources`; all others were measured, in short
runs and beside other programs, which is why nearly every run of theirs is in doubt. Recordings of power cuts are left out.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bedplate.study.checksums import write_checksums

_REPOSITORY = Path(__file__).parents[3]
_GOLDEN = _REPOSITORY / "tests" / "golden"
OUTPUTS = _GOLDEN / "outputs"
_PACKED_IN = (OUTPUTS, _GOLDEN / "former_studies")

# What every study is asked, in a folder that holds it as `study`; `out` is for what is written, and `claims.toml` holds some claims.
OF_EVERY_STUDY = (
    "show study --status",
    "show study --status --json",
    "show study --status --verify",
    "show study --status --verify --json",
    "show study",
    "show study --json",
    "COLUMNS=200 show study",
    "show study --effects",
    "show study --effects --json",
    "show study --effects --across-durability",
    "show study --advice",
    "show study --advice --json",
    "show study --advice --cache protected",
    "show study --advice --durability durable",
    "show study --claims",
    "show study --claims --json",
    "show study --mail",
    "show study --mail --markdown",
    "export study -o out/tables",
    "export study -o out/all.json",
    "export study -o out/figures.csv",
    "export study -o out/figures.parquet",
    "export study -o out/book.xlsx",
    "report study -o out/page.html",
    "index . -o out/index.html",
    "power-cut points study",
)


@dataclass(frozen=True)
class GoldenStudy:
    """A packed study, what it is asked besides, and what makes it where runs that others published are packed."""

    name: str
    more: tuple[str, ...] = ()
    first: tuple[str, ...] = ()

    @property
    def kept(self) -> Path:
        """Where what is said of it is kept."""
        return OUTPUTS / f"{self.name}.txt.xz"

    @property
    def commands(self) -> tuple[str, ...]:
        """What it is asked, in order."""
        return (*self.first, *OF_EVERY_STUDY, *self.more)

    def lay_out(self, place: Path) -> None:
        """Make the study in `place`, which is made, as `study`."""
        packed = next(path for folder in _PACKED_IN if (path := folder / f"{self.name}.tar.xz").exists())
        with tarfile.open(packed) as archive:
            # Python 3.11.2, which Debian 12 has, knows no filters, and 3.14 asks for one.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(place)  # noqa: S202 -- packed by ourselves
        shutil.copy(_REPOSITORY / "claims" / "vondra-2011.toml", place / "claims.toml")


# What is in doubt of runs that are short, or had not the machine to themselves.
_DOUBTS = "--accept 'other programs used' --accept checkpoint --accept scheduler"


def pack(study: Path, name: str) -> Path:
    """Pack a study without what it weighs most by and no reading command looks into: the recordings of power cuts."""
    packed = OUTPUTS / f"{name}.tar.xz"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "study"
        shutil.copytree(study, copy, ignore=shutil.ignore_patterns("scratch", ".lock", "*log.xz"))
        for visit in copy.glob("visits/*/*/*"):
            if (visit / "checksums.json").exists():
                write_checksums(visit)
        with tarfile.open(packed, "w:xz", preset=9) as archive:
            archive.add(copy, "study", filter=_of_nobody)
    return packed


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def _compared(sides: str, *options: str) -> tuple[str, ...]:
    return tuple(f"compare study {sides}{option}" for option in ("", " --json", *options))


STUDIES = (
    GoldenStudy(
        "quickstart",
        (
            *_compared(
                "--baseline 'type=ext4 barrier=yes' --contender type=xfs",
                " --margin 20% --fail-if 'slower 20%'",
                " --accept checkpoint --workload read-write",
            ),
            *_compared("--baseline barrier=yes --contender barrier=no", " --across-durability --metric p99"),
            "compare study --baseline study=study --contender study=study --factor kernel --cells type=xfs",
            "show study --workload read-write --metric p99",
            "show study --sort tps --top 2 --cells class=durable",
            "show study --all",
            "show study --effects --workload read-write --metric p99 --accept checkpoint --cells type=ext4,xfs",
            "show study --advice --workload read-write --accept checkpoint --cells type=ext4,xfs",
            "show study --advice --durability 'bounded loss' --cache volatile",
            "show study --advice --durability unsafe --cache volatile-4k",
            "show study --advice --not-worse p99:10%",
            "show study --advice --durability unknown --cache volatile-512",
            "show study --claims --accept checkpoint --file claims.toml",
            "show study --mail --cells class=durable",
            "report study --cells class=durable --claims claims.toml -o out/page.html",
            "export study --cells class=durable --metric tps --table runs --table figures --format csv -o out/tables",
            "FORCE_COLOR=1 TERM=xterm-256color show study",
            "show study study",
            "show missing",
        ),
    ),
    GoldenStudy(
        "power-cut-quick",
        (
            *_compared("--baseline type=ext4 --contender type=xfs"),
            "power-cut points study --json",
            "power-cut points study xfs-pg8k-nobarrier",
            "power-cut points study xfs-pg8k-nobarrier --json",
            "power-cut points study sync-nosync --all",
            "power-cut points study ext4",
        ),
    ),
    # On a machine that others used: what is said of runs in doubt, and with them what is said of trusted ones.
    GoldenStudy(
        "pgbench",
        (
            *_compared("--baseline type=ext4 --contender type=xfs", f" {_DOUBTS}"),
            f"show study --effects {_DOUBTS}",
            f"show study --effects --json {_DOUBTS}",
            f"show study --advice {_DOUBTS}",
            f"show study --advice --json {_DOUBTS}",
            f"show study --claims {_DOUBTS}",
            "show study --metric wal_kib_per_transaction",
        ),
    ),
    GoldenStudy(
        "tpch",
        (
            *_compared("--baseline type=ext4 --contender type=xfs", f" {_DOUBTS}"),
            f"show study --effects {_DOUBTS}",
            f"show study --advice {_DOUBTS}",
            "show study --workload cold",
            "show study --workload throughput --json",
            "export study --table plans --format json -o out/plans",
        ),
    ),
    GoldenStudy(
        "microbenchmark",
        (
            *_compared("--baseline journal_mode=delete --contender journal_mode=wal", f" {_DOUBTS}"),
            *_compared("--baseline engine=sqlite --contender engine=lmdb", f" --across-durability {_DOUBTS}"),
            f"show study --effects {_DOUBTS}",
            f"show study --advice {_DOUBTS}",
            "show study --workload write --sort test_operations_per_s",
        ),
    ),
    GoldenStudy(
        "own-engine",
        (
            *_compared("--baseline type=ext4 --contender type=xfs", f" {_DOUBTS}"),
            f"show study --effects {_DOUBTS}",
            f"show study --advice {_DOUBTS}",
            "power-cut points study delete-name-sqlite-77f0937f/power-cut-clients-2-duration-s-2.0-engine-own-engine-image-b-387e2f2d/2.1 --all",
        ),
    ),
    GoldenStudy(
        "power-cut",
        (
            *_compared("--baseline barrier=yes --contender barrier=no", " --across-durability"),
            "power-cut points study sqlite-journal-mode-delete-nobarrier",
            "power-cut points study pg8k --all",
            "power-cut points study sync-nosync-barrier --all",
        ),
    ),
    GoldenStudy(
        "sysbench",
        (
            *_compared("--baseline engine=mariadb --contender engine=postgresql", f" {_DOUBTS}"),
            f"show study --effects {_DOUBTS}",
            f"show study --advice {_DOUBTS}",
            "show study --workload oltp_read_write --metric p99",
        ),
    ),
    GoldenStudy(
        "faulty-disk",
        (*_compared("--baseline type=ext4 --contender type=btrfs"),),
    ),
    GoldenStudy(
        "known-effects",
        (
            *_compared(
                "--baseline type=ext4 --contender type=xfs",
                " --fail-if 'slower 5%'",
                " --fail-if 'faster 5%'",
            ),
            *_compared("--baseline db=2k --contender db=8k", " --margin 40%"),
            *_compared("--baseline barrier=yes --contender barrier=no", " --across-durability"),
            "show study --claims --file claims.toml",
            "show study --sort tps",
            "show study --effects --across-durability --json",
        ),
    ),
    GoldenStudy(
        "files",
        (
            *_compared("--baseline type=ext4 --contender type=xfs", f" {_DOUBTS}"),
            f"show study --effects {_DOUBTS}",
            f"show study --advice {_DOUBTS}",
            f"show study --claims {_DOUBTS}",
            "show study --workload wal-append",
        ),
    ),
    GoldenStudy("pg-test-fsync", ("show study --workload pg_test_fsync",)),
    GoldenStudy(
        "guests",
        (
            *_compared("--baseline kernel=6.1 --contender kernel=6.18", f" {_DOUBTS}"),
            f"show study --effects {_DOUBTS}",
        ),
    ),
    GoldenStudy(
        "pairs",
        (
            *_compared(
                "--baseline sync=full --contender sync=nometasync",
                f" --across-durability --metric tests_s --workload write {_DOUBTS}",
            ),
        ),
    ),
    GoldenStudy(
        "search",
        (
            *_compared("--baseline type=ext4 --contender type=xfs"),
            "show study --effects --workload read-write",
            "show study --advice --workload read-write",
        ),
    ),
    GoldenStudy("search-under-way"),
    GoldenStudy("fleet", _compared("--baseline type=ext4 --contender type=xfs")),
    *(
        GoldenStudy(f"imported-{form}", more, (f"import source --study study{option}",))
        for form, option, more in (
            ("kernel-bench", "", _compared("--baseline kernel=2.6.39 --contender kernel=4.6.0")),
            ("pg-fs-benchmark", "", _compared("--baseline type=ext4 --contender type=xfs")),
            ("postgresbench", " --format postgresbench", ()),
        )
    ),
)
# Commands that read no study, or do more than read: what they say depends on the machine, and other tests hold it.
NOT_READING = {
    "ask filesystem": "measures",
    "ask safe": "measures",
    "ab": "measures",
    "bisect": "measures",
    "doctor": "looks at this machine",
    "doctor --install": "installs",
    "doctor --measure": "measures",
    "plan": "reads a plan, for this machine",
    "run": "measures",
    "search": "measures",
    "power-cut blame": "needs a recording, and root or a guest",
    "power-cut bundle": "the same",
    "power-cut try": "measures",
    "power-cut replay": "needs a recording, and root or a guest",
    "release": "gives back what this machine has",
    "completion": "knows no study",
}
