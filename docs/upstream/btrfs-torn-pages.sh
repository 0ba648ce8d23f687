#!/bin/sh
# Overwrites pages of 8 KiB on a new Btrfs beside two writers that fsync, and shows by the kernel's own trace and trees which
# pages left in halves, why, and which of them a commit held torn. Needs root, btrfs-progs, util-linux, Python 3; no bedplate.
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
device=$(losetup --find --show image)
mount -t tracefs tracefs trace
instance=trace/instances/torn-pages-$$
mkdir "$instance"
trap 'umount mounted 2> unmounted || true; losetup --detach "$device"; rmdir "$instance"; umount trace' EXIT
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
umount mounted
btrfs inspect-internal dump-tree -t 5 "$device" > tree.txt
python3 - <<'PYTHON'
import re
from pathlib import Path

PAGE = 8192
writer, inode, written = map(int, Path("facts").read_text().split())
line_of = re.compile(r"^ *(.*)-(\d+) +\[\d+\] \S+ +([\d.]+): (\w+)(.*)$")
begun = page = None
calls, tickets, halves, commits = [], [], [], []
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
        commits.append((at, comm))
    elif event == "btrfs_ordered_extent_add" and f"ino={inode} " in rest:
        first = int(re.search(r"file_offset=(\d+)", rest)[1])
        length = int(re.search(r" len=(\d+)", rest)[1])
        # A border within a page: the piece ends with a first half.
        if (first + length) % PAGE:
            halves.append((at, comm, (first + length) // PAGE * PAGE))
during = [(h, c) for h in halves for c in calls if c[2] == h[2] and c[0] <= h[0] <= c[1]]
waited = [(h, c) for h, c in during if any(p == writer and c[0] <= s <= c[1] for p, s, _ in tickets)]
print(f"{written} pages written, {len(tickets)} waits for room for metadata, {len(commits)} commits")
print(f"{len(halves)} times a first half left alone; {len(during)} of them during the pwrite of that very page, {len(waited)} of these while it waited for room")
who = {}
for h, _ in during:
    name = re.sub(r"kworker/\S*?-", "kworker ", h[1])
    who[name] = who.get(name, 0) + 1
print("written out by:", ", ".join(f"{name} ({count})" for name, count in sorted(who.items(), key=lambda each: -each[1])) or "nobody")

# Each half's generation is the commit that first holds it; of a page written last in two commits the earlier one held it torn.
items = re.compile(rf"key \({inode} EXTENT_DATA (\d+)\).*\n\s+generation (\d+) .*\n(?:.*\n)?.*\n\s+extent data offset \d+ nr (\d+)")
generation = {}
for offset, number, length in items.findall(Path("tree.txt").read_text()):
    for at in range(int(offset), int(offset) + int(length), 4096):
        generation[at] = int(number)
torn = [at for at in generation if at % PAGE == 0 and generation[at] != generation.get(at + 4096, generation[at])]
print(f"{len(torn)} pages of the last state whose halves are of different commits: the earlier commit held each of them torn")
for at in torn[:5]:
    print(f"    page {at // PAGE}: first half of commit {generation[at]}, second of {generation[at + 4096]}")
PYTHON
