"""SQLite's source as a factor: what it is called, what is refused, and which driver a cell gets."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from bedplate.analysis.comparison import FOLLOWING
from bedplate.engines.sqlite.model import FILES, read_amalgamation
from bedplate.engines.sqlite.oracle import POWER_CUT
from bedplate.engines.sqlite.prepare import OWN_LIBRARY
from bedplate.engines.sqlite.visit import MICROBENCHMARK
from bedplate.errors import PlanError, RequirementMissing
from bedplate.model.levels import Levels
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan

HEADER = '#define SQLITE_VERSION        "3.{minor}.0"\n#define SQLITE_SOURCE_ID      "2026-01-02 03:04:05 {check_in}89"\n'
PLAN = """[[filesystem]]
type = "ext4"
[sqlite]
amalgamation = {levels}
[[workload]]
type = "microbenchmark"
engine = "sqlite"
"""


def source(folder: Path, *, minor: int = 50, code: str = "int one;\n", check_in: str = "0123456789") -> Path:
    folder.mkdir()
    (folder / FILES[0]).write_text(code)
    (folder / FILES[1]).write_text(HEADER.format(minor=minor, check_in=check_in))
    return folder


def level(path: Path) -> str:
    return read_amalgamation(path)[0]


def test_a_level_is_version_check_in_and_what_the_files_are(tmp_path: Path) -> None:
    first = level(source(tmp_path / "a"))
    assert first.startswith("3.50.0-0123456789-")
    changed = level(source(tmp_path / "b", code="int two;\n"))
    assert first.rpartition("-")[0] == changed.rpartition("-")[0]
    assert first != changed


def test_a_zip_is_what_it_holds_whatever_its_folder_is_called(tmp_path: Path) -> None:
    folder = source(tmp_path / "a")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in FILES:
            archive.write(folder / name, f"sqlite-amalgamation-3500000/{name}")
    assert level(folder) == level(tmp_path / "a.zip")


def test_each_source_is_a_cell_beside_the_distributions(tmp_path: Path) -> None:
    source(tmp_path / "old", minor=40)
    found = level(source(tmp_path / "new"))
    text = PLAN.format(levels='{ vary = ["system", "old", "new"] }')
    plan = load_plan(text, source="p.toml", directory=tmp_path)
    cells = [planned.cell for planned in expand(plan, None).cells]
    asked = [cell.cluster.settings.text("amalgamation") for cell in cells]
    assert [None, level(tmp_path / "old"), found] == asked
    assert str(tmp_path / "new") == plan.archives[found]
    assert ("tools",) == FOLLOWING["cluster.settings.amalgamation"]
    # A study keeps what decides its cells, and needs the source no more.
    kept = tmp_path / "kept"
    for name, content in plan.files.items():
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        (kept / name).write_text(content)
    assert plan.digest == load_plan(text, source="p.toml", directory=kept).digest


def test_a_driver_is_told_what_its_library_has_to_answer(tmp_path: Path) -> None:
    settings = Levels(amalgamation=level(source(tmp_path / "a")), synchronous="full")
    told = MICROBENCHMARK.opened(settings, Levels(), synchronous=None, fresh=False)
    assert {"library": "3.50.0-0123456789"} == dict(told)
    assert "3.50.0-0123456789" == POWER_CUT.told(settings)["library"]
    (driver,) = MICROBENCHMARK.drivers
    assert f"microbenchmark_sqlite-{settings['amalgamation']}" == driver.name_for(settings)
    assert "microbenchmark_sqlite" == driver.name_for(Levels())


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ('"nowhere"', "cannot be read: No such file or directory"),
        ('"empty"', "has no sqlite3.c and no sqlite3.h"),
        ('"text"', "is neither a folder nor a whole zip"),
        ('"other"', "says no SQLITE_VERSION and SQLITE_SOURCE_ID"),
        ("3", 'allowed is "system", or the path'),
    ],
)
def test_what_is_no_amalgamation_is_refused_in_the_plan(tmp_path: Path, levels: str, said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no zip")
    source(tmp_path / "other", check_in="no check-in")
    with pytest.raises(PlanError, match=said):
        load_plan(PLAN.format(levels=levels), source="p.toml", directory=tmp_path)


def test_a_source_that_changed_since_the_plan_was_read_is_not_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    folder = source(tmp_path / "a")
    before = level(folder)
    (folder / FILES[0]).write_text("int changed;\n")
    with pytest.raises(RequirementMissing, match="and the plan was read with"):
        OWN_LIBRARY.ensure(before, str(folder))
    with pytest.raises(RequirementMissing, match="is not in the cache, and the plan names no path"):
        OWN_LIBRARY.ensure(before, None)
    library = OWN_LIBRARY.ensure(level(folder), str(folder))
    (compiled,) = (tmp_path / "cache/engines").glob("sqlite-*")
    assert (f"-I{compiled}", str(compiled / "sqlite3.o"), "-lm", "-ldl") == library.linker_words
    # From the cache, where the source is gone.
    assert library == OWN_LIBRARY.ensure(level(folder), None)
