"""`power-cut try --audit` on programs that sync in each way that there is, and that fail to in each way that is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from ctypes.util import find_library
from pathlib import Path

import pytest
from click.testing import CliRunner

from bedplate.cli.app import program as command_line
from bedplate.engines.external.audit import Audit, audit_engine, audit_lines
from bedplate.errors import EXIT_CANNOT_TELL, EXIT_DONE, EXIT_SOME_RUNS_FAILED, BedplateError
from bedplate.host.scratch_device import MEMORY_DIRECTORY

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

SOURCES = Path(__file__).resolve().parents[2]

# What a case does in each commit, and what of it is right. `log` is open, and was synced with its folder before `begin`.
CLEAN = {
    "fdatasync": "write(log); os.fdatasync(log)",
    "another descriptor": "write(log); other = os.open('log', os.O_RDONLY); os.fsync(other); os.close(other)",
    "a copy of the descriptor": "other = os.dup(log); write(other); os.close(other); os.fdatasync(log)",
    "a child's writes": "in_child(lambda: write(log)); os.fdatasync(log)",
    "a child's sync": "write(log); in_child(lambda: os.fdatasync(log))",
    "another thread's sync": "write(log); in_thread(lambda: os.fdatasync(log))",
    "O_DSYNC": "waits = os.open('log', os.O_WRONLY | os.O_APPEND | os.O_DSYNC); write(waits); os.close(waits)",
    "O_SYNC by creation": "os.write(synced, b'x' * 100)",
    "RWF_DSYNC": "os.pwritev(log, [b'x' * 100], 0, os.RWF_DSYNC)",
    "writev": "os.writev(log, [b'a', b'b']); os.fdatasync(log)",
    "msync": "mapped[number % 4096] = 1; mapped.flush()",
    "syncfs": "write(log); libc.syncfs(log)",
    "sync": "write(log); os.sync()",
    "a copy within the kernel": "write(log); os.copy_file_range(log_to_read, copy, 10, 0, 0); os.fdatasync(log); os.fdatasync(copy)",
    "rename": "fresh('new', f'{number}'); os.rename('new', 'state'); sync_folder()",
    "a file without a name": (
        "file = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o600); write(file); os.fsync(file); "
        "libc.linkat(-100, f'/proc/self/fd/{file}'.encode(), -100, f'part-{number}'.encode(), 0x400); sync_folder(); os.close(file)"
    ),
    "a link": "fresh(f'a-{number}', 'x'); os.link(f'a-{number}', f'b-{number}'); sync_folder()",
    "a folder": "os.mkdir(f'd-{number}'); sync_folder(); fresh(f'd-{number}/file', 'x'); sync_folder(f'd-{number}')",
    "a journal that is removed": (
        "fresh('journal', 'old'); sync_folder(); os.pwrite(log, b'x' * 600, 0); os.fdatasync(log); os.unlink('journal'); sync_folder()"
    ),
    "segments removed behind the manifest": (
        "fresh(f'segment-{number}', 'x'); sync_folder(); fresh('new', f'segment-{number}'); os.rename('new', 'state'); sync_folder(); "
        "number > 1 and os.unlink(f'segment-{number - 1}')"
    ),
    "one sector in place": "os.pwrite(sector, b'%0512d' % number, 0); os.fdatasync(sector)",
    "a file to be locked": "fcntl.lockf(lock, fcntl.LOCK_EX); fcntl.lockf(lock, fcntl.LOCK_UN); write(log); os.fdatasync(log)",
    "memory that processes share": "shared[0] = 1; write(log); os.fdatasync(log)",
    "a log before its data": "write(log); os.fdatasync(log); os.pwrite(data, b'x' * 900, 0); number % 20 == 0 and os.fdatasync(data)",
    "a temporary file": "temporary = os.open('t', os.O_CREAT | os.O_RDWR); write(temporary); os.close(temporary); os.unlink('t'); write(log); os.fdatasync(log)",
}

FAULTS = {
    "never syncs": ("write(log)", "bytes-never", "log"),
    "another file's descriptor": ("write(log); os.fdatasync(sector)", "bytes-never", "log"),
    "the folder in place of the file": ("write(log); sync_folder()", "bytes-never", "log"),
    "sync_file_range": ("write(log); libc.sync_file_range(log, 0, 0, 7)", "bytes-never", "log"),
    "MS_ASYNC": ("mapped[number % 4096] = 1; libc.msync(address, 4096, 1)", "mapped-never", "mapped"),
    "after the acknowledgement": ("number > 1 and os.fdatasync(log); write(log)", "bytes-late", "log"),
    "every tenth": ("write(log); number % 10 == 0 and os.fdatasync(log)", "bytes-late", "log"),
    "a plain write behind one that waits": (
        "os.pwritev(log, [b'x'], 0, os.RWF_DSYNC); write(log)",
        "bytes-never",
        "log",
    ),
    "another shard": ("write(log if number % 2 else copy); os.fdatasync(log)", "bytes-never", "copy"),
    "a truncation": ("os.ftruncate(log, number)", "bytes-never", "log"),
    "a merged file": (
        "fresh(f'm-{number}', 'x', sync=False); sync_folder(); write(log); os.fdatasync(log)",
        "bytes-never",
        "m-1",
    ),
    "no name": (
        "fresh(f's-{number}', 'x', sync=False); os.sync() if not number else None; os.link('log', f'l-{number}')",
        "name-never",
        "l-1",
    ),
    "a rename": ("fresh('new', f'{number}'); os.rename('new', 'state')", "name-never", "state"),
    "a rename and fdatasync of the file": (
        "fresh('new', f'{number}'); os.rename('new', 'state'); other = os.open('state', os.O_RDONLY); os.fdatasync(other); os.close(other)",
        "name-never",
        "state",
    ),
    "a marker": (
        "os.close(os.open(f'done-{number}', os.O_CREAT)); write(log); os.fdatasync(log)",
        "name-never",
        "done-1",
    ),
    "a folder's name": ("os.mkdir(f'd-{number}')", "name-never", "d-1"),
    "the folder before the name": (
        "fresh('new', f'{number}'); sync_folder(); os.rename('new', 'state')",
        "name-late",
        "state",
    ),
    "rename first": (
        "fresh('new', f'{number}', sync=False); os.rename('new', 'state'); sync_folder()",
        "bytes-never",
        "state",
    ),
    "rename, then sync": (
        (
            "fresh('new', f'{number}', sync=False); os.rename('new', 'state'); other = os.open('state', os.O_RDONLY); os.fsync(other); "
            "os.close(other); sync_folder()"
        ),
        "rename-first",
        "state",
    ),
    "unlink, then link": (
        "fresh('new', f'{number}'); os.unlink('state'); os.link('new', 'state'); os.unlink('new'); sync_folder()",
        "away",
        "state",
    ),
    "unlink, then write": ("os.unlink('state'); fresh('state', f'{number}'); sync_folder()", "away", "state"),
    "delete before the manifest": (
        (
            "fresh(f'segment-{number}', 'x'); sync_folder(); number > 1 and os.unlink(f'segment-{number - 1}'); "
            "fresh('new', f'segment-{number}'); os.rename('new', 'state'); sync_folder()"
        ),
        "removed",
        "segment-1",
    ),
    "punch before the manifest": (
        "libc.fallocate(log, 3, 0, 4096); fresh('new', f'{number}'); os.rename('new', 'state'); sync_folder(); os.fsync(log)",
        "punched",
        "log",
    ),
    "truncate before the manifest": (
        "os.truncate('log', number); fresh('new', f'{number}'); os.rename('new', 'state'); sync_folder(); write(log); os.fsync(log)",
        "truncated",
        "log",
    ),
    "emptied in place": ("fresh('state', f'{number}')", "in-place", "state"),
    "written over in place": (
        "os.pwrite(state, b'x' * (600 + number), 0); os.fsync(state)",
        "in-place",
        "state",
    ),
    "written over and cut": (
        "os.pwrite(state, b'x' * (600 - number), 0); os.ftruncate(state, 600 - number); os.fsync(state)",
        "in-place",
        "state",
    ),
    "committed by a removal": (
        "fresh('journal', 'old'); sync_folder(); os.pwrite(log, b'x' * 600, 0); os.fdatasync(log); os.unlink('journal')",
        "removal",
        "journal",
    ),
}

UNSEEN = {"io_uring": "libc.syscall(425, 8, bytes(120)); write(log); os.fdatasync(log)"}
_NO_IO_URING = Path("/proc/sys/kernel/io_uring_disabled")

WRITER = """#!/usr/bin/env -S python3 -IS
import ctypes, fcntl, mmap, os, sys, threading

given = dict(word[2:].split("=", 1) for word in sys.argv[2:])
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
libc.sync_file_range.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_uint]
libc.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

def write(file):
    os.write(file, b"x" * 100)

def sync_folder(name="."):
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
    os.close(folder)

def fresh(name, text, sync=True):
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(file, text.encode())
    if sync:
        os.fsync(file)
    os.close(file)

def in_child(work):
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    os.waitpid(child, 0)

def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

def opened(name, content, flags=0):
    file = os.open(name, os.O_RDWR | os.O_CREAT | flags, 0o600)
    if content:
        os.write(file, content)
    os.fsync(file)
    return file

log, log_to_read = opened("log", b"x" * 5000), os.open("log", os.O_RDONLY)
sector, copy, data = opened("sector", b"0" * 512), opened("copy", b"y" * 5000), opened("data", b"y" * 5000)
synced, state = opened("synced", b"z", os.O_SYNC), opened("state", b"x" * 600)
lock = os.open("lock", os.O_RDWR | os.O_CREAT, 0o600)
if "PLACE" in ("msync", "MS_ASYNC"):
    file = opened("mapped", None)
    os.ftruncate(file, 4096)
    os.fsync(file)
    mapped = mmap.mmap(file, 4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapped)) if "PLACE" == "MS_ASYNC" else None
if "PLACE" == "memory that processes share":
    file = os.open("shared", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(file, bytes(4096))
    fcntl.lockf(file, fcntl.LOCK_SH)
    shared = mmap.mmap(file, 4096)
sync_folder()
os.write(1, b"begin\\n")
for number in range(1, 31):
    for client in range(int(given["clients"])):
        if not client:
            COMMIT
        else:
            write(log)
            os.fsync(log)
        os.write(1, b"ack %d %d\\n" % (client, number))
"""


@pytest.fixture
def audit_of(tmp_path: Path) -> Iterator[Callable[..., Audit]]:
    """The audit of a writer in Python; nothing of it is left in memory."""
    before = set(MEMORY_DIRECTORY.iterdir())

    def run(program: str, promise: str = 'class = "durable"', duration_s: int = 5) -> Audit:
        folder = tmp_path / "engine"
        folder.mkdir(exist_ok=True)
        (folder / "engine.toml").write_text(f'name = "planted"\n[[promise]]\n{promise}\nsource = "a test"\n')
        (folder / "writer").write_text(program)
        (folder / "writer").chmod(0o755)
        (audit,) = audit_engine(folder, {}, duration_s=duration_s)
        return audit

    yield run
    left = {
        path for path in set(MEMORY_DIRECTORY.iterdir()) - before if path.name.startswith("bedplate-audit-")
    }
    assert not left


def program(name: str, commit: str) -> str:
    # As one client: with a second one, whose commits are whole, another sync stands between all that is planted.
    return WRITER.replace("PLACE", name).replace("COMMIT", commit)


@pytest.mark.parametrize("case", CLEAN)
def test_what_was_synced_in_any_way_is_clean(audit_of: Callable[..., Audit], case: str) -> None:
    audit = audit_of(program(case, CLEAN[case]))
    assert audit.findings == (), audit.findings
    assert audit.exit_code == EXIT_DONE
    assert audit.commits == {1: 30, 2: 60}


@pytest.mark.parametrize("case", FAULTS)
def test_what_was_not_is_named(audit_of: Callable[..., Audit], case: str) -> None:
    commit, code, name = FAULTS[case]
    audit = audit_of(program(case, commit))
    assert (code, name) in [(finding.code, finding.names[0]) for finding in audit.findings], audit
    assert audit.exit_code == EXIT_SOME_RUNS_FAILED


@pytest.mark.skipif(
    _NO_IO_URING.exists() and _NO_IO_URING.read_text().strip() != "0", reason="this kernel refuses io_uring"
)
def test_what_cannot_be_seen_is_said_and_nothing_is_called_clean(audit_of: Callable[..., Audit]) -> None:
    audit = audit_of(program("io_uring", UNSEEN["io_uring"]))
    assert (audit.findings, audit.unseen, audit.exit_code) == ((), ("io_uring",), EXIT_CANNOT_TELL)
    assert "Clean" not in "\n".join(audit_lines(audit, 80))


def test_a_bounded_loss_may_wait_as_long_as_it_says(audit_of: Callable[..., Audit]) -> None:
    commit = FAULTS["every tenth"][0]
    promise = 'class = "bounded loss"\ntransactions = {}'
    assert audit_of(program("every tenth", commit), promise.format(10)).exit_code == EXIT_DONE
    audit = audit_of(program("every tenth", commit), promise.format(8))
    assert audit.exit_code == EXIT_SOME_RUNS_FAILED
    assert "up to 9 commits later" in audit.findings[0].sentence
    unsafe = audit_of(program("never syncs", "write(log)"), 'class = "unsafe"')
    assert (unsafe.exit_code, len(unsafe.findings)) == (EXIT_DONE, 1)


_UNDER_WAY = """#!/usr/bin/env -S python3 -IS
import os, sys, threading

clients = int(sys.argv[2].split("=")[1])
files = [os.open(f"log-{client}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) for client in range(clients)]
for file in files:
    os.fsync(file)
folder = os.open(".", os.O_RDONLY)
os.fsync(folder)
os.write(1, b"begin\\n")
barrier = threading.Barrier(clients)

def work(client):
    for number in range(1, 31):
        os.write(files[client], b"x" * 50)
        barrier.wait()
        # One is acknowledged while the others wait for their own sync.
        for turn in range(clients):
            if turn == client:
                os.fdatasync(files[client])
                os.write(1, b"ack %d %d\\n" % (client, number))
            barrier.wait()

threads = [threading.Thread(target=work, args=(client,)) for client in range(clients)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

_SHARED_SYNC = _UNDER_WAY.replace("turn == client", "turn == client == 0").replace(
    'os.write(1, b"ack %d %d\\n" % (client, number))\n            barrier.wait()',
    '[os.fdatasync(file) for file in files]\n            barrier.wait()\n        os.write(1, b"ack %d %d\\n" % (client, number))',
)


@pytest.mark.parametrize("text", [_UNDER_WAY, _SHARED_SYNC], ids=["own sync", "shared sync"])
def test_a_transaction_of_another_client_that_is_under_way_is_no_finding(
    audit_of: Callable[..., Audit], text: str
) -> None:
    assert "os.fdatasync" in text
    audit = audit_of(text)
    assert (audit.findings, audit.doubts, audit.exit_code) == ((), (), EXIT_DONE)


def test_a_sync_that_clients_share_and_that_leaves_one_out_is_a_doubt(
    audit_of: Callable[..., Audit],
) -> None:
    audit = audit_of(_SHARED_SYNC.replace("for file in files]", "for file in files[:1]]"))
    assert [(finding.code, finding.names, finding.clients) for finding in audit.doubts] == [
        ("bytes-never", ("log-1",), 2)
    ]


def test_the_toy_the_templates_and_sqlite_are_clean_and_three_faults_of_the_toy_are_named() -> None:
    engines = SOURCES / "examples" / "engines"
    for name, settings in (
        ("toy", {}),
        ("templates/python", {}),
        (
            "sqlite",
            {"journal_mode": ["delete", "truncate", "persist", "wal"], "synchronous": ["full", "extra"]},
        ),
    ):
        for audit in audit_engine(engines / name, settings, duration_s=1):
            assert (audit.findings, audit.doubts, audit.unseen) == ((), (), ()), audit
    words = ["power-cut", "try", str(engines / "toy"), "--audit", "--duration", "1", "--json", "--set"]
    faults = ["directory-never-synced", "rename-before-fsync", "commit-record-first"]
    done = CliRunner().invoke(command_line, [*words, f"fault={','.join(faults)}"], standalone_mode=False)
    assert done.return_value == EXIT_SOME_RUNS_FAILED, done.output
    audits = json.loads(done.stdout)["audits"]
    codes = [[(finding["code"], finding["names"][0]) for finding in audit["findings"]] for audit in audits]
    assert codes == [
        [("name-never", "MANIFEST")],
        [("bytes-never", "MANIFEST")],
        [("bytes-late", "segment-000000")],
    ]


# MDB_WRITEMAP is 0x80000, MDB_NOSYNC 0x10000 (lmdb.h).
_LMDB = """#!/usr/bin/env -S python3 -IS
import ctypes, os, sys

clients = int(sys.argv[2].split("=")[1])
lmdb = ctypes.CDLL("liblmdb.so.0")

class Value(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_char_p)]

def check(status):
    if status:
        sys.exit(f"LMDB says {status}")

environment, transaction, table = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
check(lmdb.mdb_env_create(ctypes.byref(environment)))
check(lmdb.mdb_env_set_mapsize(environment, ctypes.c_size_t(1 << 24)))
check(lmdb.mdb_env_open(environment, b".", FLAGS, 0o600))
os.write(1, b"begin\\n")
for number in range(1, 31):
    for client in range(clients):
        check(lmdb.mdb_txn_begin(environment, None, 0, ctypes.byref(transaction)))
        check(lmdb.mdb_dbi_open(transaction, None, 0, ctypes.byref(table)))
        text = b"%d %d" % (client, number)
        value = Value(len(text), text)
        check(lmdb.mdb_put(transaction, table, ctypes.byref(value), ctypes.byref(value), 0))
        check(lmdb.mdb_txn_commit(transaction))
        os.write(1, b"ack %d %d\\n" % (client, number))
"""


@pytest.mark.skipif(find_library("lmdb") is None, reason="the library of LMDB is not installed")
def test_lmdb_is_clean_and_said_not_to_be_without_its_sync(audit_of: Callable[..., Audit]) -> None:
    for flags in ("0", "0x80000"):
        audit = audit_of(_LMDB.replace("FLAGS", flags))
        assert (audit.findings, audit.doubts, audit.exit_code) == ((), (), EXIT_DONE)
        assert "no fsync of DIRECTORY/ covers the name `data.mdb`" in audit.remarks[0]
    for flags, code in (("0x10000", "bytes-never"), ("0x90000", "mapped-never")):
        audit = audit_of(_LMDB.replace("FLAGS", flags))
        assert (code, ("data.mdb",)) in [(finding.code, finding.names) for finding in audit.findings]


_SHELVE = """#!/usr/bin/env -S python3 -IS
import dbm.dumb, os, shelve, sys

clients = int(sys.argv[2].split("=")[1])
store = shelve.Shelf(dbm.dumb.open("store", "c"))
store["0"] = 0
store.sync()
os.sync()
os.write(1, b"begin\\n")
for number in range(1, 31):
    for client in range(clients):
        store[f"{client} {number % 10}"] = number
        store.sync()
        os.write(1, b"ack %d %d\\n" % (client, number))
"""


def test_shelve_syncs_nothing(audit_of: Callable[..., Audit]) -> None:
    audit = audit_of(_SHELVE)
    assert {"store.dat", "store.dir"} <= {name for finding in audit.findings for name in finding.names}
    assert audit.exit_code == EXIT_SOME_RUNS_FAILED


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#!/bin/sh\necho begin\n", "acknowledged nothing in 1 s"),
        ("#!/bin/sh\necho begin\necho broken >&2\nexit 3\n", "ended with status 3: broken"),
        ("#!/bin/sh\nkill -SEGV $$\n", "was ended by SIGSEGV"),
    ],
)
def test_a_writer_that_fails_is_an_error_with_its_words(
    audit_of: Callable[..., Audit], text: str, words: str
) -> None:
    with pytest.raises(BedplateError, match=words):
        audit_of(text, duration_s=1)
