#!/bin/sh
# The first write to new blocks fails once; the same pages are written again, fsync succeeds, and a new mount reads zeros.
#
#     ext4-failed-first-write.sh FILESYSTEM appended|unwritten|written [MOUNT-OPTIONS]
#
# FILESYSTEM is ext4 or xfs. `appended`: the file is empty. `unwritten`: it is made by fallocate(1). `written`: with zeros, for comparison.
# Writes fail as the tmpfs below the loop device is full for a moment. Needs root, e2fsprogs or xfsprogs, util-linux, Python 3 and 500 MB of memory; no bedplate.
set -eu
case ${1-}-${2-} in
    ext4-appended | ext4-unwritten | ext4-written | xfs-appended | xfs-unwritten | xfs-written) ;;
    *) sed -n 4p "$0" >&2; exit 2 ;;
esac
[ "${OWN_MOUNTS:-}" ] || OWN_MOUNTS=yes exec unshare --mount --propagation private sh "$0" "$@"
work=$(mktemp -d) disk=
trap '! mountpoint -q "$work/mounted" || umount "$work/mounted"; [ ! "$disk" ] || losetup --detach "$disk"; ! mountpoint -q "$work" || umount "$work"; rmdir "$work"' EXIT
mount -t tmpfs -o size=500M tmpfs "$work"
mkdir "$work/mounted"
dd if=/dev/zero of="$work/image" bs=1M count=400 status=none
disk=$(losetup --find --show "$work/image")
case $1 in
    ext4) mkfs.ext4 -q -b 4096 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$disk" ;;
    xfs) mkfs.xfs -q -K "$disk" ;;
esac
mount -o "${3:-defaults}" "$disk" "$work/mounted"
file=$work/mounted/file
uname -r
case $2 in
    appended) true > "$file" ;;
    unwritten) fallocate --length 1M "$file" ;;
    written) dd if=/dev/zero of="$file" bs=1M count=1 status=none ;;
esac
sync
# Of the image below, the blocks that the file has or will have are given back, and all other room is taken.
if [ "$2" = appended ]; then
    fstrim "$work/mounted"
else
    start=$(filefrag -e -b512 "$file" | awk '$1 == "0:" { gsub(/[.:]/, " "); print $4 }')
    fallocate --punch-hole --offset $((start * 512)) --length 1048576 "$work/image"
fi
for size in 1M 4k; do dd if=/dev/zero of="$work/full-$size" bs=$size status=none 2> /dev/null || true; done
put() {
    python3 -c '
import os, sys
try:
    file = os.open(sys.argv[1], os.O_RDWR)
    os.pwrite(file, sys.argv[2].encode() * 524288, 0)
except OSError as error:
    sys.exit(f"{sys.argv[2]} refused: {error.strerror}")
try:
    os.fsync(file)
    print(sys.argv[2], "written: fsync succeeds")
except OSError as error:
    print(sys.argv[2], "written: fsync fails,", error.strerror)' "$file" "$1"
}
put A
rm "$work"/full-*
put B
filefrag -v "$file" | grep ' 0:  '
umount "$work/mounted"
mount "$disk" "$work/mounted"
printf 'mounted anew, the file begins with%s\n' "$(head -c 1 "$file" | od -An -c)"
