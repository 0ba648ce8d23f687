#!/bin/sh
# Without page images one write-back that fails once takes acknowledged rows: PostgreSQL stops, recovers, and the page never reaches the disk.
#
#     postgresql-eio.sh RECORDER PGBIN FOLDER FILESYSTEM FULL_PAGE_WRITES
#
# RECORDER is bedplate's drivers/power_cut_recorder.c, compiled; it is used for nothing but a disk that fails one write. Any device that fails
# one write of a given range on demand will do. FOLDER is new, on a tmpfs with 2 GB of room. FILESYSTEM is ext4 or xfs. Needs root.
set -eu
recorder=$1 PATH=$2:$PATH folder=$3 filesystem=$4 images=$5
mkdir -m 755 "$folder"
cd "$folder"
mkdir -m 755 recorder mounted
mkdir -m 777 socket
"$recorder" --directory "$folder" --mount "$folder/recorder" --disk-bytes 1073741824 --log-limit-bytes 536870912 --parent $$ > said 2>&1 &
until [ -e recorder/disk ]; do sleep 0.2; done
device=$(losetup --find --show --direct-io=on recorder/disk)
as='setpriv --reuid=nobody --regid=nogroup --clear-groups'
finish() {
    $as pg_ctl -D mounted/db -m immediate stop > stopped 2>&1 || true
    umount mounted || true
    losetup --detach "$device"
    umount recorder
    cd / && rm -r "$folder"
}
trap finish EXIT
start() { $as pg_ctl -w -t 300 -D "$folder/mounted/db" -l "$folder/mounted/log" start > started; }
ask() { psql -X -q -A -t -h "$folder/socket" -U nobody -d postgres -c "$1"; }

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
table=mounted/db/$(ask "SELECT pg_relation_filepath('t')")
sync -f mounted
ranges=$(filefrag -e -b1 "$table" | awk '$1 ~ /^[0-9]+:$/ { gsub(/[.:]/, " "); print $4 "+" $6 }' | tr '\n' ' ')
ask "UPDATE t SET v = 1 WHERE id <= 10000"
# Hint bits are set, and are not to write a page again later.
[ "$(ask "SELECT count(*) FROM t WHERE v = 1")" = 10000 ]
printf 'write eio 1 0 %s' "$ranges" > order
dd if=order of=recorder/fault bs=128k conv=notrunc,nocreat status=none
ask "CHECKPOINT" > checkpoint 2>&1 && said="succeeded" || said="failed"
until ask "SELECT 1" > back 2>&1; do sleep 0.5; done
ask "CHECKPOINT"
$as pg_ctl -D mounted/db -m fast stop > stopped
panics=$(grep -c PANIC mounted/log || true)
umount mounted
mount "$device" mounted
start
echo "$filesystem, full_page_writes = $images: CHECKPOINT $said, PANIC $panics times; rows with the acknowledged value: $(ask "SELECT count(*) FROM t WHERE v = 1") of 10000"
grep -m 1 PANIC mounted/log || true
