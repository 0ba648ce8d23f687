#!/bin/sh
# Overwrites pages of 8 KiB on a new Btrfs beside two writers that fdatasync, and shows by the kernel's own trace which pages left in
# halves, why, and which of them a commit found torn. Needs root, btrfs-progs, util-linux, Python 3; no bedplate.
#
#     btrfs-torn-pages.sh FOLDER [SIZE] [SECONDS]
#
# FOLDER is new, and takes an image of SIZE (512M). The trace is an instance of its own, and goes at the end.
set -eu
[ "${OWN_MOUNTS:-}" ] || OWN_MOUNTS=yes exec unshare --mount --propagation private "$0" "$@"
mkdir "$1"
cd "$1"
truncate -s "${2:-512M}" image
mkfs.btrfs -q image
mkdir mounted trace
device= instance=trace/instances/torn-pages-$$
finish() {
    ! mountpoint -q mounted || umount mounted
    [ ! "$device" ] || losetup --detach "$device"
    [ ! -d "$instance" ] || rmdir "$instance"
    ! mountpoint -q trace || umount trace
}
trap finish EXIT
device=$(losetup --find --show image)
mount -t tracefs tracefs trace
mkdir "$instance"
mount "$device" mounted
uname -r
python3 - "$instance" "${3:-12}" <<'PYTHON'
import ctypes, os, random, sys, time
from pathlib import Path

PAGE, PAGES, FLUSH_EVERY = 8192, 5000, 32
instance, seconds = Path(sys.argv[1]), float(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
pages = os.open("mounted/pages", os.O_RDWR | os.O_CREAT, 0o600)
for number in range(PAGES):
    os.pwrite(pages, bytes(PAGE), number * PAGE)
os.fsync(pages)


def commits(name):
    log = os.open(f"mounted/{name}", os.O_WRONLY | os.O_CREAT, 0o600)
    at = 0
    while time.monotonic() < until:
        os.pwrite(log, os.urandom(4096), at)
        at += 4096
        os.fdatasync(log)


(instance / "trace_clock").write_text("mono")
(instance / "buffer_size_kb").write_text("65536")
until = time.monotonic() + seconds
for name in ("log1", "log2"):
    if os.fork() == 0:
        commits(name)
        os._exit(0)
for event in ("ordered_extent_add", "reserve_ticket", "transaction_commit"):
    (instance / f"events/btrfs/btrfs_{event}/enable").write_text("1")
for edge in ("enter", "exit"):
    (instance / f"events/syscalls/sys_{edge}_pwrite64/filter").write_text(f"common_pid == {os.getpid()}")
    (instance / f"events/syscalls/sys_{edge}_pwrite64/enable").write_text("1")
draw, written = random.Random(7), 0
while time.monotonic() < until:
    os.pwrite(pages, os.urandom(PAGE), draw.randrange(PAGES) * PAGE)
    written += 1
    if written % FLUSH_EVERY == 0:
        # SYNC_FILE_RANGE_WRITE, as PostgreSQL's *_flush_after.
        libc.sync_file_range(pages, ctypes.c_int64(0), ctypes.c_int64(0), 2)
for _ in range(2):
    os.wait()
(instance / "tracing_on").write_text("0")
Path("facts").write_text(f"{os.getpid()} {os.fstat(pages).st_ino} {written}")
PYTHON
cat "$instance/trace" > trace.txt
python3 - <<'PYTHON'
import re
from pathlib import Path

PAGE = 8192
writer, inode, written = map(int, Path("facts").read_text().split())
line_of = re.compile(r"^ *(.*)-(\d+) +\[\d+\] \S+ +([\d.]+): (\w+)(.*)$")
begun = page = None
calls, tickets, pieces, commits = [], [], [], []
for line in Path("trace.txt").read_text().splitlines():
    found = line_of.match(line)
    if found is None:
        continue
    comm, pid, at, event, rest = found[1], int(found[2]), float(found[3]), found[4], found[5]
    if event == "sys_pwrite64" and "->" in rest and begun is not None:
        calls.append((begun, at, page))
        begun = None
    elif event == "sys_pwrite64":
        begun, page = at, int(re.search(r"pos: (?:0x)?([0-9a-f]+)", rest)[1], 16)
    elif event == "btrfs_reserve_ticket":
        start = int(re.search(r"start_ns=(\d+)", rest)[1]) / 1e9
        tickets.append((pid, start, at))
    elif event == "btrfs_transaction_commit":
        commits.append((at, comm, re.search(r"gen=(\d+)", rest)[1]))
    elif event == "btrfs_ordered_extent_add" and f"ino={inode} " in rest:
        first = int(re.search(r"file_offset=(\d+)", rest)[1])
        pieces.append((at, comm, first, first + int(re.search(r" len=(\d+)", rest)[1])))
print(f"{written} pages written, {len(tickets)} waits for room for metadata, {len(commits)} commits")
halves = [piece for piece in pieces if piece[3] % PAGE]
waited = committed = during = 0
for at, comm, _, end in halves:
    page = end // PAGE * PAGE
    call = next((c for c in calls if c[2] == page and c[0] <= at <= c[1]), None)
    # What the page's second half is written out by, and the commits before.
    second = next((p[0] for p in pieces if p[0] > at and p[2] <= end < p[3]), float("inf"))
    between = [c for c in commits if at < c[0] < second]
    during += call is not None
    waited += call is not None and any(p == writer and call[0] <= s <= call[1] for p, s, _ in tickets)
    committed += bool(between)
    for when, who, number in between:
        print(f"page {page // PAGE}: first half by {comm}; {1e3 * (when - at):.1f} ms later commit {number} by {who}; second half {1e3 * (second - when):.1f} ms behind it")
print(f"{len(halves)} times a first half left alone: {during} during the pwrite of that very page, {waited} while that waited for room; {committed} met a commit before the second half")
PYTHON
