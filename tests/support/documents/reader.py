"""A reader of the documents, who has what the pages speak of: studies, plans, trees, an engine, a server's folder."""

from __future__ import annotations

import re
import shlex
import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.documents.command_lines import CommandLine
from tests.support.guests.own_kernels import guest_configuration, kernel_with, packed_image
from tests.support.sources.histories import commit, git, repository
from tests.support.sources.toy_postgresql import SERVER, server, toy_postgresql
from tests.support.studies.made_once import made_once
from tests.support.studies.published_sources import pg_fs_benchmark, postgresbench
from tests.support.studies.synthetic_microbenchmark import synthetic_microbenchmark
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import synthetic_tpch_study
from tests.support.tools.command_line import Done, call_here
from tests.unit.plan.conftest import MACHINE

from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]
_BLOCK_OF_TOML = re.compile(r"^ *```toml\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_IMAGE = "/home/me/linux/arch/x86/boot/bzImage"
# What a page leaves to its reader, and where it stands in the reader's folder.
WORDS = {
    "STUDY": "first",
    "S": "first",
    "N": "5",
    "PLAN": "quick",
    "FILE": "mine.toml",
    "OUTPUT": "results.xlsx",
    "DIRECTORY": "imported",
    "SOURCE": "PostgresBench",
    "RUN": "ext4-pg8k-barrier",
    "METRIC": "tps",
    "TIME": "4h",
    "POINT": "17",
    "DIR": "folder",
    "FOLDER": "folder",
    "DATADIR": "var/lib/postgresql/18/main",
    "COMMAND": "show",
    "DEVICE": "/dev/disk/by-id/nvme-EXAMPLE",
    "ext4": "ext4-pg8k-barrier",
    "/srv/www/bedplate/index.html": "index.html",
    "/shared/studies/first": "first",
    "/my-engine": "my-engine",
    "~/pair-$commit": "pair",
    "~/pair-$commit.toml": "pair.toml",
    "kernel=$image": f"kernel={_IMAGE}",
}


@dataclass(frozen=True)
class Reader:
    """A folder in which the files of a page are made when a command names them."""

    folder: Path

    def words(self, line: CommandLine) -> list[str]:
        """The words of a command as this reader types them, its files made."""
        _, *words = shlex.split(line.text)
        named = line.place.removesuffix(" --help")
        words = [self._word(word, within=[*words[:index]]) for index, word in enumerate(words)]
        for word in words:
            self._provide(word, named, words)
        return words

    def call(self, line: CommandLine, *more: str, words: list[str] | None = None) -> Done:
        """The command, in this folder, with a home, a cache and a state directory of its own."""
        return call_here(
            *(self.words(line) if words is None else words),
            *more,
            cwd=self.folder,
            HOME=str(self.folder),
            COLUMNS="120",
            BEDPLATE_CACHE=str(self.folder / "cache"),
            BEDPLATE_STATE=str(self.folder / "state"),
        )

    def _word(self, word: str, *, within: list[str]) -> str:
        """A placeholder's; a file system is one for `--on`, and a part of a run's path where a run is named."""
        if word == "ext4" and "power-cut" not in within:
            return word
        if word.startswith("/var/lib/"):
            return word[1:]
        word = WORDS.get(word, word).replace("/home/me", str(self.folder))
        return str(self.folder / word[2:]) if word.startswith("~/") else word

    def _provide(self, word: str, page: str, words: list[str]) -> None:
        place = self.folder / word
        if place.exists() or (Path(word).is_absolute() and not place.is_relative_to(self.folder)):
            return
        name = place.relative_to(self.folder).as_posix()
        if word.endswith(".toml") and "-o" not in words:
            self._write_plan(place, name, page)
        elif _names_a_study(words) and word in _studies_named(words):
            _STUDIES.get(_kind_of_study(words, name), _of_speeds)(place)
        elif name in _OTHERS:
            _OTHERS[name](place)

    def _write_plan(self, place: Path, name: str, page: str) -> None:
        """The plan that the page shows, or the quick one in its place; a ready plan is where it is in a checkout."""
        if name.startswith("plans/"):
            (self.folder / "plans").symlink_to(ROOT / "plans")
            return
        if (name == "mine.toml" and page == "CLAIMS.md") or page == "show --claims":
            shutil.copy(next((ROOT / "claims").glob("*.toml")), place)
            return
        source = next((path for path in (ROOT / page, *ROOT.glob(f"docs/**/{page}")) if path.is_file()), None)
        blocks = [] if source is None else _BLOCK_OF_TOML.findall(source.read_text(encoding="utf-8"))
        plans = [textwrap.dedent(block) for block in blocks if "filesystem" in block]
        text = plans[0] if plans else (ROOT / "plans" / "quick.toml").read_text(encoding="utf-8")
        place.write_text(text.replace("/home/me", str(self.folder)), encoding="utf-8")
        _image(self.folder / _IMAGE.removeprefix("/home/me/"))
        for script in ("order.sql", "look.sql", "stock.sql"):
            (self.folder / script).write_text("SELECT 1;\n", encoding="utf-8")
        for dump in ("mine.dump", "shop.dump"):
            shutil.copy(ROOT / "plans" / "own-database" / "shop.dump", self.folder / dump)


# Commands whose words may be a study's folder.
_READ_A_STUDY = ("show", "compare", "report", "export", "release", "power-cut")
_SMALL = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), course_s=2)


def _names_a_study(words: list[str]) -> bool:
    return words[0] in _READ_A_STUDY or (words[0] == "run" and bool({"--repetitions", "--add"} & {*words}))


def _studies_named(words: list[str]) -> list[str]:
    """Words that may be studies: those in front of the first option."""
    first = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
    return words[1:first]


def _kind_of_study(words: list[str], name: str) -> str:
    """By its name, or by what is asked of it."""
    asked = " ".join(words)
    kinds = {
        "cluster_name": "aa",
        "custom-r100": "known-effect",
        " test_": "tests",
        "power-cut": "cuts",
    }
    return next((kind for sign, kind in kinds.items() if sign in asked), name)


def _of_speeds(place: Path) -> Path:
    return made_once(write_study)(place, _SMALL)


def _of_plan(text: str, folder: Path) -> Callable[[Path], Path]:
    """A maker of a study that has the cells of a plan."""

    def make(place: Path) -> Path:
        plan = load_plan(text, source="a page", directory=folder)
        cells = tuple(planned.cell for planned in expand(plan, MACHINE).cells)
        return write_study(place, Recipe(cells=cells, course_s=2))

    return make


def _of_ready_plan(name: str) -> Callable[[Path], Path]:
    path = ROOT / "plans" / f"{name}.toml"
    return _of_plan(path.read_text(encoding="utf-8"), path.parent)


def _of_two_kernels(place: Path) -> Path:
    page = (ROOT / "docs/how-to/change.md").read_text(encoding="utf-8")
    text = textwrap.dedent(_BLOCK_OF_TOML.findall(page)[0]).replace("/home/me", str(place.parent))
    _image(place.parent / _IMAGE.removeprefix("/home/me/"))
    return _of_plan(text, place.parent)(place)


def _imported(place: Path) -> Path:
    pg_fs_benchmark(place.parent / "pg-fs-benchmark")
    call_here("import", "pg-fs-benchmark/i5", "--study", place.name, cwd=place.parent)
    return place


def _folder_of_studies(place: Path) -> Path:
    _of_speeds(place / "first")
    return power_cut_study(place / "cuts")


# What a page calls a study, by what it speaks of there; any other name is of one with speeds.
_STUDIES: dict[str, Callable[[Path], Path]] = {
    **dict.fromkeys(("cuts", "cuts/study", "cuts-in-guests", "pi"), power_cut_study),
    **dict.fromkeys(("tpch", "warehouse"), synthetic_tpch_study),
    "tests": synthetic_microbenchmark,
    "aa": _of_ready_plan("aa"),
    "known-effect": _of_ready_plan("known-effect"),
    "pair": _of_two_kernels,
    "i5": _imported,
    "studies": _folder_of_studies,
}


def _image(place: Path) -> None:
    """The beginning of a kernel's image, beside the configuration that it was built with."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(packed_image("6.12.1", kernel_with(guest_configuration())))


def _cluster(place: Path) -> None:
    for folder in ("pg_tblspc", "pg_wal"):
        (place / folder).mkdir(parents=True)
    (place / "PG_VERSION").write_text("18\n")
    (place / "postgresql.conf").write_text("")


def _mariadb(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "aria_log_control").touch()
    (place / "ibdata1").write_bytes(bytes(24) + (8).to_bytes(2) + bytes(28) + (0x13).to_bytes(4))


def _postgres(place: Path) -> None:
    """A tree with the commits, and beside the reader's other files the patch, that the pages name."""
    tree = toy_postgresql(place)
    git(tree, "tag", "REL_18_0")
    commit(tree, "Next", {SERVER: server("19devel", more="/* next */\n")})
    file = tree / SERVER
    before = file.read_text()
    file.write_text(f"{before}/* foo */\n")
    (place.parents[1] / "v3-0001-foo.patch").write_text(git(tree, "diff"))
    file.write_text(before)


def _linux(place: Path) -> None:
    tree = repository(place)
    for number, tag in enumerate(("v7.0", "v7.1")):
        commit(tree, tag, {"Makefile": f"VERSION = 7\nPATCHLEVEL = {number}\nSUBLEVEL = 0\n"})
        git(tree, "tag", tag)


def _published(place: Path) -> None:
    pg_fs_benchmark(place.parent)


def _engine(place: Path) -> None:
    shutil.copytree(ROOT / "examples/engines/templates/python", place)


_OTHERS: dict[str, Callable[[Path], object]] = {
    "var/lib/postgresql/18/main": _cluster,
    "var/lib/mysql": _mariadb,
    "src/postgres": _postgres,
    "src/linux": _linux,
    "linux/arch/x86/boot/bzImage": _image,
    "PostgresBench": postgresbench,
    "pg-fs-benchmark/i5": _published,
    "my-engine": _engine,
    "./my-engine": _engine,
    "examples/engines/toy": lambda place: shutil.copytree(ROOT / "examples/engines/toy", place),
}
