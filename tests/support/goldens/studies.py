"""The studies of which all that is said is kept, and the commands that say it.

Each is packed as it was measured; of runs that others published it is these that are packed, and they are imported first.
"""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.tools.command_line import call_here

_REPOSITORY = Path(__file__).parents[3]
_GOLDEN = _REPOSITORY / "tests" / "golden"
OUTPUTS = _GOLDEN / "outputs"
_PACKED_IN = (OUTPUTS, _GOLDEN / "former_studies")

# What every study is asked, in a folder that holds it as `study`; `out` is for what is written, and `claims.toml` holds some claims.
OF_EVERY_STUDY = (
    "status study",
    "status study --json",
    "status study --verify",
    "status study --verify --json",
    "show study",
    "show study --json",
    "COLUMNS=200 show study",
    "effects study",
    "effects study --json",
    "effects study --across-durability",
    "advise study",
    "advise study --json",
    "advise study --cache protected",
    "advise study --durability durable",
    "claims study",
    "claims study --json",
    "summary study",
    "summary study --markdown",
    "export study -o out/tables",
    "export study -o out/all.json",
    "export study -o out/figures.csv",
    "export study -o out/figures.parquet",
    "export study -o out/book.ods",
    "export study -o out/book.xlsx",
    "report study -o out/page.html",
    "index . -o out/index.html",
    "power-cut points study",
)


@dataclass(frozen=True)
class GoldenStudy:
    """A packed study, and what it is asked besides."""

    name: str
    more: tuple[str, ...] = ()

    @property
    def kept(self) -> Path:
        """Where what is said of it is kept."""
        return OUTPUTS / f"{self.name}.txt.xz"

    @property
    def commands(self) -> tuple[str, ...]:
        """What it is asked, in order."""
        return (*OF_EVERY_STUDY, *self.more)

    def lay_out(self, place: Path) -> None:
        """Make the study in `place`, which is made, as `study`."""
        packed = next(path for folder in _PACKED_IN if (path := folder / f"{self.name}.tar.xz").exists())
        with tarfile.open(packed) as archive:
            # Python 3.11.2, which Debian 12 has, knows no filters, and 3.14 asks for one.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(place)  # noqa: S202 -- packed by ourselves
        shutil.copy(_REPOSITORY / "claims" / "vondra-2011.toml", place / "claims.toml")
        source = place / "source"
        if source.exists():
            done = call_here("import", "source", "--study", "study", cwd=place)
            assert done.returncode == 0, done.stderr
            shutil.rmtree(source)


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
            "effects study --workload read-write --metric p99 --accept checkpoint --cells type=ext4,xfs",
            "advise study --workload read-write --accept checkpoint --cells type=ext4,xfs",
            "advise study --durability 'bounded loss' --cache volatile",
            "advise study --durability unsafe --cache volatile-4k",
            "advise study --durability unknown --cache volatile-512",
            "claims study --accept checkpoint --claims claims.toml",
            "summary study --cells class=durable",
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
            "power-cut points study xfs-pg8k-nobarrier",
            "power-cut points study sync-nosync --all",
            "power-cut points study ext4",
        ),
    ),
)
# Commands that read no study, or do more than read: what they say depends on the machine, and other tests hold it.
NOT_READING = {
    "quickstart": "measures",
    "ask filesystem": "measures",
    "ask kernel": "measures",
    "ask safe": "measures",
    "ab": "measures",
    "bisect": "measures",
    "inspect": "looks at a server of this machine",
    "device measure": "measures",
    "setup": "installs",
    "doctor": "looks at this machine",
    "plan": "reads a plan, for this machine",
    "run": "measures",
    "search": "measures",
    "extend": "measures",
    "cancel": "ends jobs",
    "import": "writes a study; what is then said of it is kept here",
    "power-cut blame": "needs a recording, and root or a guest",
    "power-cut bundle": "the same",
    "power-cut try": "measures",
    "power-cut replay": "needs a recording, and root or a guest",
    "release": "gives back what this machine has",
    "completion": "knows no study",
}
