#!/bin/sh
# Without page images a write-back that fails once takes acknowledged rows: PostgreSQL stops, recovers, and the pages never reach the disk.
#
#     postgresql-eio.sh PGBIN FOLDER FILESYSTEM FULL_PAGE_WRITES
#
# PGBIN is the folder of PostgreSQL's programs, FOLDER is new, takes an image of 1 GB, and every account can reach it. FILESYSTEM is ext4 or
# xfs. Needs root, e2fsprogs (filefrag), dmsetup and the kernel's device mapper, and nothing of bedplate. For one CHECKPOINT all writes to the table's blocks fail.
set -eu
[ "${OWN_MOUNTS:-}" ] || OWN_MOUNTS=yes exec unshare --mount --propagation private sh "$0" "$@"
PATH=$1:$PATH folder=$2 filesystem=$3 images=$4 name=eio$$
dm() { dmsetup --noudevsync --noudevrules "$@"; }
command -v dmsetup > /dev/null || { echo "dmsetup is missing: install it" >&2; exit 1; }
dm targets > /dev/null || { echo "the kernel has no device mapper here" >&2; exit 1; }
mkdir -m 755 "$folder"
cd "$folder"
disk= as='setpriv --reuid=nobody --regid=nogroup --clear-groups'
finish() {
    $as pg_ctl -D mounted/db -m immediate stop > stopped 2>&1 || true
    ! mountpoint -q mounted || umount mounted
    [ ! -b "/dev/mapper/$name" ] || dm remove "$name"
    [ ! "$disk" ] || losetup --detach "$disk"
    cd / && rm -r "$folder"
}
trap finish EXIT
mkdir -m 755 mounted
mkdir -m 777 socket
truncate -s 1G image
disk=$(losetup --find --show image)
sectors=$(blockdev --getsz "$disk")
# Neither the file system nor what waits is written first: the next write-back is the one that is to fail.
become() { dm load "$name" "$1" && dm suspend --nolockfs --noflush "$name" && dm resume "$name"; }
echo "0 $sectors linear $disk 0" > whole
dm create "$name" whole
[ -b "/dev/mapper/$name" ] || dmsetup mknodes "$name"
device=/dev/mapper/$name
start() { $as pg_ctl -w -t 900 -D "$folder/mounted/db" -l "$folder/mounted/log" start > started; }
ask() { psql -X -q -A -t -h "$folder/socket" -U nobody -d postgres -c "$1"; }

"mkfs.$filesystem" -q "$device" > made 2>&1 || { cat made; exit 1; }
mount "$device" mounted
mkdir mounted/db && chmod 700 mounted/db && touch mounted/log && chown nobody:nogroup mounted/db mounted/log
$as initdb -A trust -D "$folder/mounted/db" -U nobody --no-sync > initialised
cat >> mounted/db/postgresql.conf <<CONFIGURATION
full_page_writes = $images
autovacuum = off
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
listen_addresses = ''
unix_socket_directories = '$folder/socket'
dynamic_shared_memory_type = mmap
CONFIGURATION
start
ask "CREATE TABLE t (id int, v int) WITH (fillfactor = 40); INSERT INTO t SELECT i, 0 FROM generate_series(1, 20000) AS i"
ask "VACUUM t"
ask "CHECKPOINT"
table=mounted/db/$(ask "SELECT pg_relation_filepath('t')")
sync -f mounted
# The device again, but for the table's extents, where all fails. A flush passes such a part by, and would fail in one of dm-flakey.
filefrag -e -b512 "$table" | awk '$1 ~ /^[0-9]+:$/ { gsub(/[.:]/, " "); print $4, $6 }' | sort -n | awk -v disk="$disk" -v all="$sectors" '
    { if ($1 > at) print at + 0, $1 - at, "linear", disk, at + 0
      print $1, $2, "error"; at = $1 + $2 }
    END { if (all > at) print at, all - at, "linear", disk, at }' > failing
ask "UPDATE t SET v = 1 WHERE id <= 10000"
# Hint bits are set, and are not to write a page again later.
[ "$(ask "SELECT count(*) FROM t WHERE v = 1")" = 10000 ]
become failing
ask "CHECKPOINT" > checkpoint 2>&1 && said="succeeded" || said="failed"
become whole
until ask "SELECT 1" > back 2>&1; do sleep 0.5; done
before=$(ask "SELECT count(*) FROM t WHERE v = 1")
ask "CHECKPOINT"
$as pg_ctl -D mounted/db -m fast stop > stopped
panics=$(grep -c PANIC mounted/log || true)
umount mounted
mount "$device" mounted
start
echo "$(uname -r), $(postgres --version), $filesystem, full_page_writes = $images: CHECKPOINT $said, PANIC $panics times;" \
    "rows with the acknowledged value after recovery: $before, after unmount and mount: $(ask "SELECT count(*) FROM t WHERE v = 1") of 10000"
grep -m 1 PANIC mounted/log || true
