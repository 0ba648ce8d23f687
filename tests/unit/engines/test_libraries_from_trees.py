"""LMDB and SQLite from a commit: what it is called, which driver a cell gets, and what cannot be built."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.sources.histories import commit, git, repository

from bedplate.analysis.comparison import FOLLOWING
from bedplate.campaign.preparation import own_library_of
from bedplate.engines.lmdb import prepare as lmdb_library
from bedplate.engines.lmdb.oracle import POWER_CUT as LMDB_CUTS
from bedplate.engines.lmdb.visit import MICROBENCHMARK as LMDB_BENCH
from bedplate.engines.sqlite import prepare as sqlite_tree
from bedplate.engines.sqlite.prepare import OWN_LIBRARY as SQLITE_LIBRARY
from bedplate.engines.sqlite.visit import MICROBENCHMARK as SQLITE_BENCH
from bedplate.errors import BuildFailed, PlanError, RequirementMissing
from bedplate.host.git import GitRevisions
from bedplate.host.requirement import find_tool
from bedplate.model.levels import Levels
from bedplate.model.plan import Plan
from bedplate.plan.load import load_plan

pytestmark = pytest.mark.skipif(
    not all(map(find_tool, ("cc", "make", "git"))), reason="libraries are built with cc and make"
)

LMDB_LIBRARY = lmdb_library.OWN_LIBRARY
LMDB_FILES = {
    "mdb.c": '#include "lmdb.h"\n#include "midl.h"\nint one(void) { return MDB_VERSION_MAJOR; }\n',
    "midl.c": '#include "midl.h"\nint two;\n',
    "midl.h": "extern int two;\n",
    "lmdb.h": "#define MDB_VERSION_MAJOR 0\n#define MDB_VERSION_MINOR 9\n#define MDB_VERSION_PATCH 99\n",
}
SQLITE_FILES = {
    "VERSION": "3.99.0\n",
    "src/sqlite.h.in": '#define SQLITE_VERSION "--VERS--"\n',
    "autosetup/jimsh0.c": "int interpreter;\n",
    "configure": (
        '#!/bin/sh\nhere=$(dirname "$0")\n'
        "printf 'all:\\nsqlite3.c sqlite3.h:\\n\\tcp %s/src/made.c sqlite3.c\\n\\tcp %s/src/sqlite.h.in sqlite3.h\\n'"
        ' "$here" "$here" > Makefile\n'
    ),
    "src/made.c": '#include "sqlite3.h"\nconst char *version = SQLITE_VERSION;\n',
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    # How a build is shut in, host tests show.
    monkeypatch.setattr(lmdb_library, "builder_account", lambda **_: None)
    monkeypatch.setattr(sqlite_tree, "builder_account", lambda **_: None)
    return tmp_path / "cache"


@pytest.fixture
def lmdb(tmp_path: Path) -> Path:
    tree = repository(tmp_path / "lmdb")
    commit(tree, "Start", {f"libraries/liblmdb/{name}": text for name, text in LMDB_FILES.items()})
    return tree


@pytest.fixture
def sqlite(tmp_path: Path) -> Path:
    tree = repository(tmp_path / "sqlite")
    (tree / "configure").write_text("")
    (tree / "configure").chmod(0o755)
    commit(tree, "Start", SQLITE_FILES)
    return tree


def planned(directory: Path, engine: str, commits: str, more: str = "") -> Plan:
    text = (
        f'[[filesystem]]\ntype = "ext4"\n[{engine}]\nsource = {{ tree = "{engine}", commit = {commits} }}\n{more}'
        f'[[workload]]\ntype = "microbenchmark"\nengine = "{engine}"\n'
    )
    return load_plan(text, source="p.toml", directory=directory, revisions=GitRevisions())


def levels(plan: Plan) -> list[str]:
    return [str(cluster.settings["source"]) for cluster in plan.clusters]


def test_each_commit_of_a_library_is_a_cell_with_a_driver_of_its_own(lmdb: Path, tmp_path: Path) -> None:
    commit(lmdb, "Faster / better", {"libraries/liblmdb/midl.c": "int two = 2;\n"})
    plan = planned(tmp_path, "lmdb", '{ vary = ["master~1", "master"] }')
    old, new = levels(plan)
    digits = git(lmdb, "rev-parse", "--short=12", "master").strip()
    assert f"{digits} Faster / better" == new
    settings = Levels(source=new, sync="full")
    assert new == own_library_of("lmdb", settings)
    assert own_library_of("lmdb", Levels()) is None
    (driver,) = LMDB_BENCH.drivers
    assert f"microbenchmark_lmdb-{digits}" == driver.name_for(settings)
    # The driver opens what it is linked with, and is not told which that is.
    assert "source" not in LMDB_BENCH.opened(settings, Levels(), synchronous=None, fresh=True)
    assert "source" not in LMDB_CUTS.told(settings)
    assert ("tools",) == FOLLOWING["cluster.settings.source"]
    first, second = (LMDB_LIBRARY.ensure(each, None, plan.sources.trees[each]) for each in (old, new))
    assert first != second
    assert 2 == sum(word.endswith(".o") for word in second.linker_words)
    # From the cache, where the tree is gone.
    lmdb.rename(tmp_path / "moved")
    assert second == LMDB_LIBRARY.ensure(new, None, None)
    with pytest.raises(RequirementMissing, match="the plan does not say where commit"):
        LMDB_LIBRARY.ensure("0123456789ab Elsewhere", None, None)


def test_a_library_that_does_not_compile_fails_alone(lmdb: Path, tmp_path: Path, cache: Path) -> None:
    commit(lmdb, "Broken", {"libraries/liblmdb/midl.c": "int broken = nowhere;\n"})
    plan = planned(tmp_path, "lmdb", '"master"')
    (level,) = levels(plan)
    with pytest.raises(BuildFailed, match="nowhere"):
        LMDB_LIBRARY.ensure(level, None, plan.sources.trees[level])
    assert [] == [path for path in (cache / "engines").iterdir() if path.is_dir()]
    git(lmdb, "rm", "-q", "libraries/liblmdb/midl.h")
    commit(lmdb, "Half", {})
    half = planned(tmp_path, "lmdb", '"master"')
    (level,) = levels(half)
    with pytest.raises(BuildFailed, match=r"midl\.h cannot be read"):
        LMDB_LIBRARY.ensure(level, None, half.sources.trees[level])


def test_changes_that_are_not_committed_are_compiled(lmdb: Path, tmp_path: Path) -> None:
    (lmdb / "libraries/liblmdb/midl.c").write_text("int two = nowhere;\n")
    plan = planned(tmp_path, "lmdb", '"working tree"')
    (level,) = levels(plan)
    with pytest.raises(BuildFailed, match="nowhere"):
        LMDB_LIBRARY.ensure(level, None, plan.sources.trees[level])


def test_sqlites_amalgamation_is_generated_from_its_commit(sqlite: Path, tmp_path: Path) -> None:
    plan = planned(tmp_path, "sqlite", '"master"')
    (level,) = levels(plan)
    assert "3.99.0" == plan.sources.trees[level].facts["version"]
    assert "library" not in SQLITE_BENCH.opened(Levels(source=level), Levels(), synchronous=None, fresh=False)
    made = SQLITE_LIBRARY.ensure(level, None, plan.sources.trees[level])
    (include,) = made.header_words
    assert SQLITE_FILES["src/made.c"] == (Path(include.removeprefix("-I")) / "sqlite3.c").read_text()
    assert made == SQLITE_LIBRARY.ensure(level, None, None)


def test_a_sqlite_that_cannot_be_generated_says_what_is_missing(
    sqlite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(sqlite, "No configuration", {"configure": "#!/bin/sh\necho no luck >&2\nexit 1\n"})
    plan = planned(tmp_path, "sqlite", '"master"')
    (level,) = levels(plan)
    (tmp_path / "cache/engines").mkdir(parents=True)
    with pytest.raises(BuildFailed, match="cannot be generated by configure: no luck"):
        SQLITE_LIBRARY.ensure(level, None, plan.sources.trees[level])
    git(sqlite, "rm", "-q", "autosetup/jimsh0.c")
    commit(sqlite, "Older", {})
    monkeypatch.setattr(sqlite_tree, "find_tool", lambda _: None)
    older = planned(tmp_path, "sqlite", '"master"')
    (level,) = levels(older)
    with pytest.raises(BuildFailed, match=r"tclsh is not installed \(package tcl\)"):
        SQLITE_LIBRARY.ensure(level, None, older.sources.trees[level])


def test_what_is_no_source_of_the_library_is_refused_in_the_plan(
    lmdb: Path, sqlite: Path, tmp_path: Path
) -> None:
    other = repository(tmp_path / "other")
    commit(other, "Start", {"README": ""})
    for engine, said in (("lmdb", "it is no LMDB"), ("sqlite", "it is no SQLite")):
        (tmp_path / engine).rename(tmp_path / f"real {engine}")
        other.rename(tmp_path / engine)
        with pytest.raises(PlanError, match=said):
            planned(tmp_path, engine, '"master"')
        (tmp_path / engine).rename(other)
        (tmp_path / f"real {engine}").rename(tmp_path / engine)
    (tmp_path / "a").mkdir()
    (tmp_path / "a/sqlite3.c").write_text("")
    header = '#define SQLITE_VERSION "3.1.0"\n#define SQLITE_SOURCE_ID "2026-01-02 03:04:05 012345678900"\n'
    (tmp_path / "a/sqlite3.h").write_text(header)
    with pytest.raises(PlanError, match="amalgamation and source both say which library it is"):
        planned(tmp_path, "sqlite", '"master"', 'amalgamation = "a"\n')
