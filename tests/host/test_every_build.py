"""Whatever is compiled, for whichever part of bedplate: a source that tries everything gets nothing, each kind of build alike."""

from __future__ import annotations

import io
import os
import re
import socket
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.sources.histories import commit, repository
from tests.support.sources.toy_kernel import toy_kernel
from tests.support.sources.toy_postgresql import toy_postgresql
from tests.support.tools.processes import processes_naming

from bedplate.engines.lmdb.prepare import OWN_LIBRARY as LMDB
from bedplate.engines.lmdb.visit import LIBLMDB
from bedplate.engines.postgresql.builds import BuildSpec, ensure_build
from bedplate.engines.sqlite.prepare import OWN_LIBRARY as SQLITE
from bedplate.errors import BedplateError, CommandFailed
from bedplate.executors.qemu import kernels as kernel_module
from bedplate.executors.qemu.kernels import ensure_built
from bedplate.executors.qemu.zfs import KernelHeaders, ZfsSource, ZfsWork, compile_modules
from bedplate.host.apt import PackageTree
from bedplate.host.command import Commands
from bedplate.host.git import GitRevisions, resolve
from bedplate.host.native_driver import compiled_library, ensure_driver, library_version
from bedplate.host.process import wait_until
from bedplate.host.shut_in import builder_account
from bedplate.model.cell import KernelSource, SourceTree
from bedplate.plan.load import load_plan

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

_SECRET, _OPEN = "root-reads-this-alone", "all-may-read-this-elsewhere"
_SLEEP = "54327"
_LMDB = {
    "mdb.c": '#include "lmdb.h"\n#include "midl.h"\nint one(void) { return MDB_VERSION_MAJOR; }\n',
    "midl.c": '#include "midl.h"\nint two;\n',
    "midl.h": "extern int two;\n",
    "lmdb.h": "#define MDB_VERSION_MAJOR 0\n#define MDB_VERSION_MINOR 9\n#define MDB_VERSION_PATCH 99\n",
}


@dataclass(frozen=True)
class Place:
    """Where a test works: two files that a build has no business with, two listeners, and a folder that every account may write to."""

    top: Path
    port: int
    unix: Path
    reached: list[object]

    @property
    def outside(self) -> Path:
        """Every account could write to it."""
        return self.top / "outside"

    @property
    def cache(self) -> Path:
        """bedplate's."""
        return self.top / "cache"

    @property
    def tries(self) -> str:
        """What a shell script does to find out, in one line of standard error; it fails, and leaves a process."""
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect('{self.unix}')"
        attempts = {
            "secret": f"cat {self.top}/secret",
            "open": f"cat {self.top}/open",
            "data": "sh -c 'for f in /root/* /home/* /srv/* /mnt/* /var/lib/* /var/log/*; do test ! -e $f || exit 0; done; false'",
            "network": f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{self.port}'",
            "socket": f'/usr/bin/python3 -c "{connect}"',
            "outside": f"touch {self.outside}/planted",
            "cache": f"touch {self.cache}/planted",
            "processes": f"kill -0 {os.getpid()}",
        }
        lines = [
            f'if {command} >/dev/null 2>&1; then said="$said {name}"; fi'
            for name, command in attempts.items()
        ]
        return "\n".join(
            (
                'said="tried by $(id -u):"',
                *lines,
                f"setsid sleep {_SLEEP} >/dev/null 2>&1 &",
                'echo "$said." >&2',
                "exit 1\n",
            )
        )


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    with (
        tempfile.TemporaryDirectory(prefix="bedplate-test-builds-") as folder,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        top = Path(folder)
        top.chmod(0o755)
        (top / "secret").write_text(f"{_SECRET}\n")
        (top / "secret").chmod(0o600)
        (top / "open").write_text(f"{_OPEN}\n")
        (top / "outside").mkdir()
        (top / "outside").chmod(0o777)
        (top / "cache").mkdir()
        (top / "cache/engines").mkdir()
        # Not below what every build has hidden: a socket of the machine's.
        path = Path("/run") / f"{top.name}.sock"
        unix.bind(str(path))
        unix.listen()
        path.chmod(0o777)
        monkeypatch.setenv("BEDPLATE_CACHE", str(top / "cache"))
        listener, reached = socket.create_server(("127.0.0.1", 0)), list[object]()

        def accept(server: socket.socket) -> None:
            try:
                reached.append(server.accept())
            except OSError:
                return

        for server in (listener, unix):
            threading.Thread(target=accept, args=(server,), daemon=True).start()
        try:
            yield Place(top, listener.getsockname()[1], path, reached)
        finally:
            path.unlink()
            for server in (listener, unix):
                server.shutdown(socket.SHUT_RDWR)
            listener.close()


def _log(place: Place) -> str:
    return "\n".join(path.read_text() for path in place.cache.glob("*/failed-*.log"))


def _evil(place: Place, rest: str = "") -> str:
    return f"#!/bin/sh\n{place.tries}{rest}"


def _postgresql_commit(place: Place) -> None:
    tree = toy_postgresql(place.top / "src")
    commit(tree, "Evil", {"configure": _evil(place)})
    text = f'[[filesystem]]\ntype = "ext4"\n[postgresql]\nsource = {{ tree = "{tree}", commit = "master" }}\n'
    plan = load_plan(text, source="p", directory=place.top, revisions=GitRevisions())
    ensure_build(
        BuildSpec.of(plan.builds[0]),
        cache_directory=place.cache,
        commands=Commands(),
        progress=lambda _: None,
        sources=plan.sources,
    )


def _postgresql_tarball(place: Place) -> None:
    tarball = place.top / "given.tar.gz"
    with tarfile.open(tarball, "w:gz") as archive:
        content = _evil(place).encode()
        member = tarfile.TarInfo("postgresql-18.99/configure")
        member.mode, member.size = 0o755, len(content)
        archive.addfile(member, io.BytesIO(content))
    ensure_build(
        BuildSpec("18", tarball=tarball),
        cache_directory=place.cache,
        commands=Commands(),
        progress=lambda _: None,
    )


def _sqlite_commit(place: Place) -> None:
    tree = repository(place.top / "sqlite")
    (tree / "configure").write_text("")
    (tree / "configure").chmod(0o755)
    files = {
        "VERSION": "3.99.0\n",
        "src/sqlite.h.in": '#define SQLITE_VERSION "--VERS--"\n',
        "autosetup/jimsh0.c": "int interpreter;\n",
        "configure": _evil(place),
    }
    commit(tree, "Evil", files)
    text = (
        '[[filesystem]]\ntype = "ext4"\n[sqlite]\nsource = { tree = "sqlite", commit = "master" }\n'
        '[[workload]]\ntype = "microbenchmark"\nengine = "sqlite"\n'
    )
    plan = load_plan(text, source="p", directory=place.top, revisions=GitRevisions())
    level = str(plan.clusters[0].settings["source"])
    SQLITE.ensure(level, None, plan.sources.trees[level])


def _kernel(place: Place) -> None:
    tree = repository(place.top / "linux")
    files = toy_kernel(python=Path("/usr/bin/python3"))
    evil = "allnoconfig: evil\nevil:\n\t@sh ./evil.sh\n"
    commit(tree, "Evil", {**files, "Makefile": files["Makefile"] + evil, "evil.sh": _evil(place)})
    source = KernelSource(SourceTree(str(tree), str(tree), "master", resolve(tree, "master")))
    ensure_built(source, cache_directory=place.cache, commands=Commands(), progress=lambda _: None)


def _zfs(place: Place) -> None:
    source, objects, work = place.top / "zfs", place.top / "objects", place.cache / "work"
    for folder in (source, objects, work):
        folder.mkdir()
    (source / "configure").write_text(_evil(place))
    (source / "configure").chmod(0o755)
    compile_modules(
        ZfsWork(
            "6.12.1",
            ZfsSource("2.3.2", None, source, PackageTree(source, {}, {})),
            KernelHeaders(objects, objects),
            work,
            work / "modules",
            Commands(),
            lambda _: None,
            builder_account(),
        )
    )


@pytest.mark.parametrize("build", [_postgresql_commit, _postgresql_tarball, _sqlite_commit, _kernel, _zfs])
def test_what_a_build_runs_reaches_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch, build: Callable[[Place], None]
) -> None:
    monkeypatch.setattr(kernel_module, "missing_requirements", tuple)
    with pytest.raises(BedplateError) as refused:
        build(place)
    output = refused.value.output if isinstance(refused.value, CommandFailed) else ""
    said = f"{_log(place)}\n{output}\n{refused.value}"
    account = builder_account()
    assert account is not None
    # As that account, and not one of the attempts stands behind it.
    assert {(str(account.uid), "")} == set(re.findall(r"tried by (\d+):(.*)\.$", said, re.MULTILINE)), said
    assert [] == place.reached
    assert [] == list(place.outside.iterdir())
    assert not (place.cache / "planted").exists()
    assert wait_until(lambda: not processes_naming(f"sleep {_SLEEP}"), deadline_s=60)


def _lmdb(place: Place, files: Mapping[str, str | Path]) -> None:
    tree = repository(place.top / "lmdb")
    for name, source in files.items():
        if isinstance(source, Path):
            (tree / name).symlink_to(source)
    commit(tree, "Evil", {name: source for name, source in files.items() if isinstance(source, str)})
    text = (
        '[[filesystem]]\ntype = "ext4"\n[lmdb]\nsource = { tree = "lmdb", commit = "master" }\n'
        '[[workload]]\ntype = "microbenchmark"\nengine = "lmdb"\n'
    )
    plan = load_plan(text, source="p", directory=place.top, revisions=GitRevisions())
    level = str(plan.clusters[0].settings["source"])
    LMDB.ensure(level, None, plan.sources.trees[level])


def _amalgamation(place: Place, source: str | Path) -> None:
    folder = place.top / "amalgamation"
    folder.mkdir()
    header = '#define SQLITE_VERSION "3.99.0"\n#define SQLITE_SOURCE_ID "2026-01-02 03:04:05 012345678900"\n'
    (folder / "sqlite3.h").write_text(header)
    if isinstance(source, Path):
        (folder / "sqlite3.c").symlink_to(source)
    else:
        (folder / "sqlite3.c").write_text(source)
    text = (
        '[[filesystem]]\ntype = "ext4"\n[sqlite]\namalgamation = "amalgamation"\n'
        '[[workload]]\ntype = "microbenchmark"\nengine = "sqlite"\n'
    )
    plan = load_plan(text, source="p", directory=place.top, revisions=GitRevisions())
    SQLITE.ensure(str(plan.clusters[0].settings["amalgamation"]), str(folder))


def _driver(place: Place, header: str) -> None:
    """A header of somebody's own is compiled into a driver too."""
    library = compiled_library(
        LIBLMDB,
        name="lmdb-0123",
        read_files=lambda: {
            name: text.encode() for name, text in {**_LMDB, "lmdb.h": _LMDB["lmdb.h"] + header}.items()
        },
        linker_words=(),
        cache_directory=place.cache / "engines",
        commands=Commands(),
    )
    assert library_version(library, commands=Commands()) == "0.9.99"
    (place.top / "driver.c").write_text('#define DRIVER 1\n#include "lmdb.h"\nint main(void) { return 0; }\n')
    ensure_driver(
        "driver",
        source=place.top / "driver.c",
        cache_directory=place.cache / "drivers",
        commands=Commands(),
        libraries=(library,),
    )


_COMPILED: Mapping[str, Callable[[Place, str | Path], None]] = {
    "lmdb": lambda place, source: _lmdb(place, {**_LMDB, "midl.c": source}),
    "amalgamation": _amalgamation,
    "driver": lambda place, source: _driver(place, f"#ifdef DRIVER\n{source}#endif\n"),
}


@pytest.mark.parametrize("file", ["secret", "open"])
@pytest.mark.parametrize(
    ("kind", "way"), [(kind, way) for kind in _COMPILED for way in ("incbin", "include", "link")][:-1]
)
def test_what_is_compiled_has_no_file_of_the_machine_in_it(
    place: Place, kind: str, way: str, file: str
) -> None:
    path = place.top / file
    ways: Mapping[str, str | Path] = {
        "incbin": f'asm(".incbin \\"{path}\\"");\n',
        "include": f'#include "{path}"\n',
        "link": path,
    }
    with pytest.raises(BedplateError) as refused:
        _COMPILED[kind](place, ways[way])
    everything = [str(refused.value), *_contents(place.cache)]
    assert not [text for text in everything if _SECRET in text or _OPEN in text]


def _contents(top: Path) -> list[str]:
    return [path.read_bytes().decode(errors="replace") for path in top.rglob("*") if path.is_file()]


def test_what_was_compiled_is_roots(place: Place) -> None:
    _lmdb(place, _LMDB)
    _driver(place, "")
    made = [path for path in place.cache.rglob("*") if path.suffix != ".lock"]
    assert {0} == {path.lstat().st_uid for path in made}
    assert not [path for path in made if path.is_symlink() or path.lstat().st_mode & 0o6022]
