"""One's own database: an archive is restored where it can do no harm, and a visit copies it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.host.conftest import built

from bedplate.engines.postgresql.archive import read_archive
from bedplate.engines.postgresql.cluster import Cluster
from bedplate.engines.postgresql.foreign_data import ClusterLayout
from bedplate.engines.postgresql.restored import DatabaseSource, ensure_restored
from bedplate.errors import BedplateError, PlanError
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.durability import UNSAFE
from bedplate.model.levels import Levels
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome
from bedplate.visit.engine_server import ServerSite
from bedplate.workloads.pgbench.scripts import RunScript, levels_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bedplate.model.cell import RunSpec

pytestmark = pytest.mark.host

_SCHEMA = """
CREATE EXTENSION pg_trgm;
CREATE TABLE customer (id int PRIMARY KEY, name text);
INSERT INTO customer SELECT n, 'Müller ' || n FROM generate_series(1, 5000) n;
CREATE INDEX ON customer USING gin (name gin_trgm_ops);
CREATE UNLOGGED TABLE secret_sessions (id int, seen timestamptz);
CREATE ROLE somebody;
GRANT SELECT ON customer TO somebody;
"""


class _Nothing:
    def note(self, holding: object) -> None: ...

    def settled(self, holding: object) -> None: ...


@dataclass(frozen=True)
class Origin:
    """A database somewhere else, of which archives are made."""

    cluster: Cluster
    place: Path

    def execute(self, *statements: str) -> None:
        with self.cluster.session() as session:
            for statement in statements:
                session.execute(statement)

    def archive(self, name: str, *options: str) -> Path:
        target = self.place / name
        self.cluster.run(
            "pg_dump",
            *(options or ("--format=custom",)),
            f"--file={target}",
            *self.cluster.connection.options(),
            timeout_s=60,
        )
        return target


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    account, build = server_account(), built()
    place = Path(tempfile.mkdtemp(prefix="bedplate-test-origin-"))
    os.chown(place, account.uid, account.gid)
    commands = Commands()
    cluster = Cluster(
        ServerSite(build, place / "data", place, place / "server.log", account, commands, _Nothing())
    )
    levels = BuildLevels(block_size_bytes=build.block_size_bytes)
    try:
        cluster.initialise(
            Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("none"), levels, ClusterLevels())
        )
        cluster.start(options=("-c", "fsync=off", "-c", "shared_buffers=16MB"))
        cluster.create_database()
        found = Origin(cluster, place)
        found.execute(*_SCHEMA.strip().split(";\n"))
        yield found
    finally:
        cluster.kill()
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def cache() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="bedplate-test-cache-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def restored(cache: Path) -> Callable[..., Path]:
    """Restores an archive with the usual build."""

    def restore(archive: Path, **scripts: str) -> Path:
        source = DatabaseSource(archive.name, read_archive(archive).sha256, scripts)
        return ensure_restored(
            source,
            ClusterLayout(built(), None),
            archive=archive,
            cache_directory=cache,
            tell=lambda _: None,
        )

    return restore


def test_a_visit_runs_on_a_copy_and_its_study_names_no_row(
    bench: Any, make_run: Callable[..., RunSpec], origin: Origin, restored: Callable[..., Path]
) -> None:
    archive = origin.archive("mine.dump")
    prepare = "CREATE TABLE prepared (id int PRIMARY KEY);\nINSERT INTO prepared VALUES (1);\n"
    data = restored(archive, prepare=prepare, settle="DELETE FROM customer WHERE id > 4000;\n")
    # Somebody's data: nobody but who owns the cache reads them.
    assert {0o700} == {path.stat().st_mode & 0o777 for path in (data.parent, data)}
    assert (0, 0) == (data.stat().st_uid, (data / "PG_VERSION").stat().st_uid)
    fuzzy = "\\set id random(1, 4000)\nSELECT count(*) FROM customer WHERE name % ('Müller ' || :id);\n"
    runs = (
        make_run(
            "reads",
            rate_tps=None,
            **levels_of((RunScript("reads", fuzzy), RunScript("others", "SELECT id FROM prepared;")), {}),
        ),
        make_run(
            "sessions",
            script="custom",
            script_text="INSERT INTO secret_sessions VALUES (1, now());",
            clients=1,
        ),
        make_run("twice", script="custom", script_text="INSERT INTO prepared VALUES (1);", clients=1),
        make_run("wrong", script="custom", script_text="SELECT name::int FROM customer LIMIT 1;", clients=1),
    )
    request = bench.request(runs=runs)
    dataset = replace(
        request.dataset, levels=Levels(dump="mine.dump", source_sha256="0" * 64, source_bytes=1)
    )
    layout = ClusterLayout(built(), None)
    networks: set[str] = set()

    def look(_: str) -> None:
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes()
                if str(bench.base).encode() in words and b"log_min_messages=log" in words:
                    networks.add(str((folder / "ns" / "net").readlink()))

    record = bench.live(replace(request, dataset=dataset, inputs={layout.key: str(data)}), look)
    # A server with a network of its own, which has no way out.
    assert 1 == len(networks - {str(Path("/proc/self/ns/net").readlink())}) == len(networks)
    words = sentences(record.reasons)
    assert [] == [each for each in words if not each.startswith(("twice", "wrong"))]
    assert Outcome.FAILED is record.outcome
    # The unlogged table came with the archive; no script but the one that names it may tell.
    (reason,) = sentences(record.durability.by_runs)
    assert UNSAFE == record.durability.volatile_cache
    assert "public.secret_sessions" in reason
    kept = "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in bench.directory.rglob("*")
        if path.is_file()
    )
    assert "Müller 1" not in kept
    assert "(id)=(1)" not in kept
    assert [] == bench.left_behind()


def test_what_an_archive_says_starts_no_program_reads_no_file_and_changes_no_server(
    origin: Origin, restored: Callable[..., Path]
) -> None:
    witness = origin.place / "witness"
    tried = (
        f"COPY checked TO PROGRAM 'touch {witness}'",
        f"COPY checked TO '{witness}'",
        "PERFORM pg_read_file('/etc/hostname')",
        "CREATE FUNCTION public.own() RETURNS int AS 'libc.so.6', 'getpid' LANGUAGE c",
        "SET session_preload_libraries = 'auto_explain'",
        "SET ROLE nobody",
        "ALTER ROLE bedplate_client SUPERUSER",
    )
    body = "DECLARE said text := ''; BEGIN " + "".join(
        f"BEGIN {each}; said := said || 'done '; EXCEPTION WHEN OTHERS THEN said := said || sqlstate || ' '; END; "
        for each in tried
    )
    function = "CREATE OR REPLACE FUNCTION does(n int) RETURNS bool LANGUAGE plpgsql AS $$ {} $$"
    try:
        origin.execute(
            function.format("BEGIN RETURN true; END"),
            "CREATE TABLE checked (id int CHECK (does(id)))",
            "INSERT INTO checked VALUES (1)",
            function.format(body + "RAISE EXCEPTION 'tried: %', said; END"),
        )
        # The check runs as whoever restores: insufficient_privilege, each time.
        with pytest.raises(BedplateError, match="tried: " + "42501 " * len(tried)):
            restored(origin.archive("hostile.dump"))
    finally:
        origin.execute("DROP TABLE IF EXISTS checked", "DROP FUNCTION IF EXISTS does")
    assert not witness.exists()


def test_what_cannot_be_restored_is_refused_in_a_sentence_and_leaves_nothing(
    origin: Origin, restored: Callable[..., Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = origin.archive("mine.dump")
    cut = origin.place / "cut.dump"
    cut.write_bytes(archive.read_bytes()[:-3000])
    with pytest.raises(BedplateError, match=r"cut.dump cannot be restored: pg_restore: error: "):
        restored(cut)
    with pytest.raises(BedplateError, match=r"cannot be restored: .*no_such_table"):
        restored(archive, prepare="SELECT * FROM no_such_table;\n")
    monkeypatch.setattr(
        "bedplate.engines.postgresql.restored.needed_extensions",
        lambda *_: ("pg_trgm", "postgis", "uuid-ossp"),
    )
    with pytest.raises(PlanError, match=r"does not have: postgis, uuid-ossp; dump without"):
        restored(archive)
    assert [] == [path.name for path in (cache / "databases").iterdir() if not path.name.endswith(".lock")]


def test_a_directory_and_another_encoding_are_restored_too(
    origin: Origin, restored: Callable[..., Path]
) -> None:
    archive = origin.archive("parts", "--format=directory", "--encoding=LATIN1")
    data = restored(archive)
    assert (data / "PG_VERSION").is_file()
    # Asked for once more, it is found.
    before = (data.parent / "restored.json").stat().st_ino
    assert data == restored(archive)
    assert before == (data.parent / "restored.json").stat().st_ino


def test_a_restricted_process_writes_nowhere_else_and_has_no_network(tmp_path_factory: Any) -> None:
    own, other = (tmp_path_factory.mktemp(name) for name in ("own", "other"))
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from bedplate.host.restriction import restrict\n"
        "restrict((Path(sys.argv[1]),))\n"
        "for folder in sys.argv[1:]:\n"
        "    try:\n"
        "        Path(folder, 'file').touch()\n"
        "        print('wrote')\n"
        "    except OSError as error:\n"
        "        print(error.strerror)\n"
        "print(*sorted(line.split(':')[0].strip() for line in Path('/proc/net/dev').read_text().splitlines()[2:]))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, str(own), str(other), "/etc"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert ["wrote", "Read-only file system", "Read-only file system"] == told[:3]
    assert {"lo"} >= set(told[3].split()) - {
        "tunl0",
        "sit0",
        "ip6tnl0",
        "gre0",
        "gretap0",
        "erspan0",
        "ip_vti0",
        "ip6_vti0",
        "ip6gre0",
    }
