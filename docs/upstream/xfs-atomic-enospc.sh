#!/bin/sh
# Overwrites 8 kB pages of a file at random with RWF_ATOMIC and direct I/O on a new XFS of 1 GiB, and counts those that are refused.
# Each refused page is written plainly at once. Needs root, xfsprogs, e2fsprogs (filefrag),
# util-linux, Python 3 and Linux 6.16 or later; no bedplate.
#
#     xfs-atomic-enospc.sh FOLDER [COWEXTSIZE]
#
# FOLDER is new, and takes an image of 1 GiB. COWEXTSIZE (8k) is set on the file system's root before the file is made.
set -eu
mkdir "$1"
cd "$1"
truncate -s 1G image
mkfs.xfs -q image
mkdir mounted
device=
trap '! mountpoint -q mounted || umount mounted; [ ! "$device" ] || losetup --detach "$device"' EXIT
device=$(losetup --find --show --direct-io=on image)
mount "$device" mounted
[ $# -lt 2 ] || xfs_io -c "cowextsize $2" mounted
uname -r
python3 - <<'PYTHON'
import collections, errno, mmap, os, random

PAGE, PAGES, WRITES, RWF_ATOMIC = 8192, 16384, 60000, 0x40
draw = random.Random(7)
page = mmap.mmap(-1, PAGE)
page.write(os.urandom(PAGE))
file = os.open("mounted/file", os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
chunk = mmap.mmap(-1, 1 << 20)
for at in range(0, PAGES * PAGE, len(chunk)):
    os.pwritev(file, [chunk], at)
os.fsync(file)
refused, plainly_failed, first = collections.Counter(), 0, None
for number in range(1, WRITES + 1):
    at = draw.randrange(PAGES) * PAGE
    try:
        os.pwritev(file, [page], at, RWF_ATOMIC)
    except OSError as error:
        refused[errno.errorcode[error.errno]] += 1
        first = first or number
        try:
            os.pwritev(file, [page], at)
        except OSError:
            plainly_failed += 1
os.fsync(file)
space = os.statvfs("mounted")
print(f"{WRITES} atomic writes, refused: {dict(refused)}, the first: {first}; plain writes that failed: {plainly_failed}")
print(f"free blocks: {space.f_bfree} of {space.f_blocks}")
PYTHON
filefrag mounted/file
umount mounted
xfs_db -r -c "freesp -s" "$device"
