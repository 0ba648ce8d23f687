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
from tests.support.tools.processes import processes_naming

from bedplate.engines.postgresql.own_data import CATALOGUES, ClusterLayout, read_archive, read_control_file
from bedplate.engines.postgresql.prepare import DatabaseSource, ensure_restored
from bedplate.engines.postgresql.visit import CLIENT, DATABASE, Cluster, Session
from bedplate.errors import BedplateError, PlanError
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.durability import BOUNDED_LOSS, UNSAFE
from bedplate.model.levels import Levels
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome
from bedplate.visit.server import ServerSite
from bedplate.workloads.pgbench.model import RunScript, levels_of

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

    def execute(self, *statements: str, database: str = DATABASE) -> None:
        with Session(replace(self.cluster.connection, database=database)) as session:
            for statement in statements:
                session.execute(statement)

    def base_backup(self, name: str) -> Path:
        """As pg_basebackup takes it from the server that runs (documentation, "Making a Base Backup Using the Low Level API")."""
        target = self.place / name
        with self.cluster.session() as session:
            session.execute("SELECT pg_backup_start('test', true)")
            shutil.copytree(self.place / "data", target, ignore=shutil.ignore_patterns("postmaster.*"))
            label = session.rows("SELECT labelfile FROM pg_backup_stop(false)")
        # The segment with the end of the backup is there only now.
        shutil.copytree(self.place / "data/pg_wal", target / "pg_wal", dirs_exist_ok=True)
        (target / "backup_label").write_text("\n".join(str(line[0]) for line in label) + "\n")
        for path in (target, *target.rglob("*")):
            os.chown(path, self.cluster.account.uid, self.cluster.account.gid)
        return target

    def archive(self, name: str, *options: str, database: str = DATABASE) -> Path:
        target = self.place / name
        connection = replace(self.cluster.connection, database=database)
        argv = [
            str(connection.program("pg_dump")),
            *(options or ("--format=custom",)),
            f"--file={target}",
            *connection.options(),
        ]
        Commands().run(argv, account=connection.account)
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
        for process in processes_naming(str(bench.base)):
            if "log_min_messages=log" in process.line:
                with contextlib.suppress(OSError):
                    networks.add(str((process.folder / "ns/net").readlink()))

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
        origin.execute(function.format("BEGIN RAISE EXCEPTION '%', repeat('x', 50000000); END"))
        with pytest.raises(
            BedplateError, match=r"cannot be restored: \S*/pg_restore printed more than 16777216 bytes"
        ):
            restored(origin.archive("talks.dump"))
    finally:
        origin.execute("DROP TABLE IF EXISTS checked", "DROP FUNCTION IF EXISTS does")
    assert not witness.exists()


# What a session of bedplate's calls; the owner of a database may make functions, and say where they are looked for.
_SHADOWS = """
CREATE SCHEMA evil;
CREATE FUNCTION evil.rises() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  ALTER ROLE bedplate_client SUPERUSER;
  EXCEPTION WHEN insufficient_privilege THEN NULL;
END $$;
CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN PERFORM evil.rises(); RETURN pg_catalog.current_setting($1); END $$;
CREATE FUNCTION evil.pg_current_wal_insert_lsn() RETURNS pg_lsn LANGUAGE plpgsql AS $$
BEGIN PERFORM evil.rises(); RETURN pg_catalog.pg_current_wal_insert_lsn(); END $$;
"""


def test_no_function_of_a_dump_is_called_by_a_superuser_of_ours(
    bench: Any, make_run: Callable[..., RunSpec], origin: Origin, restored: Callable[..., Path]
) -> None:
    origin.execute(_SHADOWS)
    try:
        archive = origin.archive("shadows.dump")
    finally:
        origin.execute("DROP SCHEMA evil CASCADE")
    data = restored(
        archive, prepare=f"ALTER DATABASE {DATABASE} SET search_path = evil, pg_catalog, public;\n"
    )
    rises_not = "SELECT 1 / (NOT rolsuper)::int FROM pg_catalog.pg_roles WHERE rolname = current_user;"
    runs = (
        make_run("first", script="custom", script_text=rises_not),
        make_run("second", script="custom", script_text=rises_not),
    )
    request = bench.request(runs=runs)
    levels = Levels(dump="shadows.dump", source_sha256="0" * 64, source_bytes=1)
    inputs = {ClusterLayout(built(), None).key: str(data)}
    record = bench.live(replace(request, dataset=replace(request.dataset, levels=levels), inputs=inputs))
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)


def test_what_cannot_be_restored_is_refused_in_a_sentence_and_leaves_nothing(
    origin: Origin, restored: Callable[..., Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = origin.archive("mine.dump")
    assert ("pg_trgm",) == read_archive(archive).extensions
    cut = origin.place / "cut.dump"
    cut.write_bytes(archive.read_bytes()[:-3000])
    with pytest.raises(BedplateError, match=r"cut.dump cannot be restored: pg_restore: error: "):
        restored(cut)
    with pytest.raises(BedplateError, match=r"cannot be restored: .*no_such_table"):
        restored(archive, prepare="SELECT * FROM no_such_table;\n")
    monkeypatch.setattr(
        "bedplate.engines.postgresql.prepare.needed_extensions",
        lambda *_: ("pg_trgm", "postgis", "uuid-ossp"),
    )
    with pytest.raises(PlanError, match=r"does not have: postgis; dump without"):
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


# By a path, by the root of whatever process of the same account is to be seen, and by a name without a path. A program that does not
# read what COPY gives it fails, whatever it did.
_REACH = """
import glob, socket, sys
sys.stdin.read()
for path in ("{socket}", *(root + "{socket}" for root in glob.glob("/proc/[0-9]*/root")), chr(0) + "{name}"):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        sys.exit(0)
    except OSError:
        pass
sys.exit(1)
"""
_REACHES = """
CREATE FUNCTION reaches() RETURNS bool LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  COPY (SELECT 1) TO PROGRAM '{python} {program}';
  RETURN true;
  EXCEPTION WHEN OTHERS THEN RETURN false;
END $$
"""
_HARM = """
CREATE FUNCTION harm() RETURNS bool LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  BEGIN COPY stock TO PROGRAM 'touch {witness}'; RETURN true; EXCEPTION WHEN OTHERS THEN NULL; END;
  BEGIN COPY stock TO '{witness}'; RETURN true; EXCEPTION WHEN OTHERS THEN NULL; END;
  RETURN false;
END $$
"""
# In the server that it was made in nothing happens; elsewhere a superuser's session begins with it, that which prepares the copy too.
_AT_LOGIN = """
CREATE FUNCTION at_login() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF current_setting('data_directory') <> '{data}' THEN
    BEGIN COPY (SELECT 1) TO PROGRAM 'cat > {witness}'; EXCEPTION WHEN OTHERS THEN NULL; END;
  END IF;
END $$;
CREATE EVENT TRIGGER at_login ON login EXECUTE FUNCTION at_login();
ALTER EVENT TRIGGER at_login ENABLE ALWAYS
"""
# No setuid program gives it rights, its system calls are filtered, in shared memory is what it made itself, and it has no environment.
_IS_HELD = """
CREATE FUNCTION is_held() RETURNS bool LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE secrets int;
BEGIN
  CREATE TEMPORARY TABLE counted (secrets int) ON COMMIT DROP;
  COPY counted FROM PROGRAM 'env | grep -c SECRET || true';
  SELECT counted.secrets INTO secrets FROM counted;
  RETURN secrets = 0 AND pg_read_file('/proc/self/status') ~ 'NoNewPrivs:\\s+1\\n(.*\\n)*Seccomp:\\s+2\\n'
    AND NOT EXISTS (SELECT FROM pg_ls_dir('/dev/shm') AS name WHERE name NOT LIKE 'PostgreSQL.%');
END $$
"""
# Each ends in a division by zero where what it asks for is not so.
_HELD = """
SELECT 1 / (NOT rolsuper)::int FROM pg_roles WHERE rolname = current_user;
SELECT 1 / (current_setting('archive_mode') = 'off' AND current_setting('restore_command') = '')::int;
SELECT 1 / (current_setting('shared_preload_libraries') = '' AND NOT pg_is_in_recovery())::int;
SELECT 1 / (count(*) = 0)::int FROM pg_replication_slots;
SELECT 1 / (NOT harm())::int;
SELECT 1 / (NOT reaches())::int;
SELECT 1 / is_held()::int;
SELECT 1 / (count(*) = 7)::int FROM stock;
SELECT 1 / (current_setting('work_mem') <> '77MB')::int;
SELECT 1 / (current_setting('search_path') = 'app, public')::int;
"""
_SELLS = "BEGIN;\nUPDATE stock SET left_over = left_over - 1 WHERE id = 1 + :client_id;\nCOMMIT;\n"


@pytest.fixture
def hostile(origin: Origin, listening: list[str]) -> Iterator[Path]:
    """A base backup of a cluster whose owner left everything in it that could do harm."""
    witness = origin.place / "witness"
    name, in_run, *_ = listening
    # Where the copy's server can read it.
    program = Path("/opt") / Path(in_run).parent.name / "reach.py"
    program.parent.mkdir()
    program.write_text(_REACH.format(socket=in_run, name=name.removeprefix("@")))
    # Nothing holds this process.
    subprocess.run([sys.executable, program], stdin=subprocess.DEVNULL, check=True)
    origin.execute("CREATE DATABASE shop", f"ALTER ROLE {CLIENT} SUPERUSER")
    for database in ("shop", "template1"):
        origin.execute(_AT_LOGIN.format(data=origin.place / "data", witness=witness), database=database)
    origin.execute(
        "CREATE TABLE stock (id int PRIMARY KEY, left_over int)",
        "INSERT INTO stock SELECT n, 1000 FROM generate_series(1, 7) n",
        _HARM.format(witness=witness),
        _REACHES.format(python=shutil.which("python3", path="/usr/bin:/bin"), program=program),
        _IS_HELD,
        "SELECT pg_create_physical_replication_slot('kept', true)",
        "ALTER DATABASE shop SET synchronous_commit = off",
        "ALTER DATABASE shop SET search_path = app, public",
        "ALTER DATABASE shop SET work_mem = '77MB'",
        "ALTER DATABASE shop SET log_min_error_statement = error",
        "ALTER DATABASE shop SET session_preload_libraries = 'there_is_none'",
        "ALTER ROLE ALL SET log_min_duration_statement = 0",
        database="shop",
    )
    backup = origin.base_backup("hostile")
    for name in ("standby.signal", "recovery.signal"):
        (backup / name).touch()
    (backup / "pg_hba.conf").write_text("local all all reject\n")
    (backup / "postgresql.auto.conf").write_text(
        f"archive_mode = on\narchive_command = 'touch {witness}'\nrestore_command = 'touch {witness}'\n"
        "shared_preload_libraries = 'there_is_none'\nlisten_addresses = '*'\n"
    )
    yield backup
    assert not witness.exists()
    shutil.rmtree(backup)
    shutil.rmtree(program.parent)
    origin.execute("DROP EVENT TRIGGER at_login", "DROP FUNCTION at_login", database="template1")
    origin.execute(
        "ALTER ROLE ALL RESET ALL",
        f"ALTER ROLE {CLIENT} NOSUPERUSER",
        "SELECT pg_drop_replication_slot('kept')",
        "DROP DATABASE shop",
    )


def test_a_copied_cluster_runs_its_scripts_and_nothing_that_its_owner_left(
    bench: Any, make_run: Callable[..., RunSpec], hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_A_JOB", "it")
    control, before = read_control_file(hostile), sorted(map(str, hostile.rglob("*")))
    assert CATALOGUES[control.major] == control.catalogue
    scripts = (RunScript("held", _HELD), RunScript("sells", _SELLS, 3))
    runs = (make_run("both", rate_tps=None, clients=2, **levels_of(scripts, {})),)
    levels = Levels(copy="hostile", database="shop", source_sha256=control.digest, source_bytes=1)
    request = bench.request(runs=runs)
    request = replace(request, dataset=replace(request.dataset, levels=levels), inputs={"copy": str(hostile)})
    record = bench.live(request)
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    # Its database's setting holds for the scripts, and is told without names.
    (reason,) = sentences(record.durability.by_runs)
    assert BOUNDED_LOSS == record.durability.volatile_cache
    assert "a role or a database: synchronous_commit=off" in reason
    logs = [path for path in bench.base.rglob("*") if path.is_file() and "log" in path.name]
    assert logs
    assert not any(b"UPDATE stock" in path.read_bytes() for path in logs)
    assert before == sorted(map(str, hostile.rglob("*")))
    assert control == read_control_file(hostile)
    assert [] == bench.left_behind()
    missing = bench.live(
        replace(request, dataset=replace(request.dataset, levels=levels.updated(database="none")))
    )
    assert "load" == missing.failed_step
    assert 'database "none" does not exist' in " ".join(sentences(missing.reasons))
    assert [] == bench.left_behind()


def test_the_archive_of_the_ready_plan_is_of_its_schema_and_is_restored(
    origin: Origin, restored: Callable[..., Path]
) -> None:
    folder = Path(__file__).parents[2] / "plans/own-database"
    statements = [
        each
        for each in (folder / "shop.sql").read_text().split(";\n")
        if "CREATE" in each or "INSERT" in each
    ]
    origin.execute("CREATE DATABASE sample")
    try:
        origin.execute(*statements, database="sample")
        fresh = origin.archive("sample.dump", database="sample")
    finally:
        origin.execute("DROP DATABASE sample")
    listed = [_listed(origin, each) for each in (fresh, folder / "shop.dump")]
    assert listed[0] == listed[1]
    assert (
        restored(folder / "shop.dump", prepare="SELECT 1 / (count(*) = 100)::int FROM customer;\n")
    ).is_dir()


def _listed(origin: Origin, archive: Path) -> list[str]:
    """What is in an archive, without numbers and owners."""
    own = origin.place / "listed.dump"
    shutil.copy(archive, own)
    own.chmod(0o644)
    told = origin.cluster.run("pg_restore", "--list", str(own), timeout_s=60, readable=(own,)).stdout
    lines = (line.split(";", 1)[1].split() for line in told.splitlines() if not line.startswith(";"))
    return sorted(" ".join(words[2:-1]) for words in lines)
