#!/bin/sh
# Without page images one write-back that fails takes acknowledged rows: PostgreSQL stops, recovers, and the pages never reach the disk.
#
#     postgresql-eio.sh PGBIN FOLDER FILESYSTEM FULL_PAGE_WRITES
#
# Needs root, PostgreSQL's programs in PGBIN, dmsetup, and a kernel with dm-flakey: it fails writes of the table's blocks with EIO during
# one CHECKPOINT, and no others. FOLDER is new, with 1 GB of room. FILESYSTEM is ext4 or xfs. No bedplate.
set -eu
PATH=$1:$PATH folder=$2 filesystem=$3 images=$4
mkdir -m 755 "$folder"
cd "$folder"
mkdir -m 755 mounted
mkdir -m 777 socket
truncate -s 1G image
loop=$(losetup --find --show image)
sectors=$(blockdev --getsz "$loop")
name=postgresql-eio-$$
as='setpriv --reuid=nobody --regid=nogroup --clear-groups'
finish() {
    $as pg_ctl -D mounted/db -m immediate stop > stopped 2>&1 || true
    umount mounted || true
    dmsetup remove "$name"
    losetup --detach "$loop"
    cd / && rm -r "$folder"
}
start() { $as pg_ctl -w -t 600 -D "$folder/mounted/db" -l "$folder/mounted/log" start > started; }
ask() { psql -X -q -A -t -h "$folder/socket" -U nobody -d postgres -c "$1"; }
# Without a flush of what is dirty: that is to be written through the new table.
table() { dmsetup reload "$name" "$1" && dmsetup suspend --noflush --nolockfs "$name" && dmsetup resume "$name"; }

echo "0 $sectors linear $loop 0" > sound
dmsetup create "$name" sound
dmsetup mknodes "$name"
trap finish EXIT
device=/dev/mapper/$name
"mkfs.$filesystem" -q "$device" > made 2>&1
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
file=mounted/db/$(ask "SELECT pg_relation_filepath('t')")
sync -f mounted
# Writes of the table's blocks fail, reads do not; the rest of the disk is as it was.
filefrag -e -b512 "$file" | awk '$1 ~ /^[0-9]+:$/ { gsub(/[.:]/, " "); print $4, $6 }' | sort -n |
    awk -v loop="$loop" -v end="$sectors" '
        $1 > at { print at + 0, $1 - at, "linear", loop, at + 0 }
        { print $1, $2, "flakey", loop, $1, 0, 3600, 1, "error_writes"; at = $1 + $2 }
        END { if (at < end) print at, end - at, "linear", loop, at }' > failing
ask "UPDATE t SET v = 1 WHERE id <= 10000"
# Hint bits are set, and are not to write a page again later.
[ "$(ask "SELECT count(*) FROM t WHERE v = 1")" = 10000 ]
table failing
ask "CHECKPOINT" > checkpoint 2>&1 && said="succeeded" || said="failed"
table sound
until ask "SELECT 1" > back 2>&1; do sleep 0.5; done
ask "CHECKPOINT"
$as pg_ctl -D mounted/db -m fast stop > stopped
panics=$(grep -c PANIC mounted/log || true)
umount mounted
mount "$device" mounted
start
echo "$filesystem, full_page_writes = $images: CHECKPOINT $said, PANIC $panics times; rows with the acknowledged value: $(ask "SELECT count(*) FROM t WHERE v = 1") of 10000"
grep -m 1 PANIC mounted/log || true
