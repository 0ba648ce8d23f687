#!/bin/sh
# What people write instead of a TPC-H load phase by phase: psql, once for each step.
# Usage: tpch_load.sh PREFIX_OF_POSTGRESQL DIRECTORY FOLDER_OF_SQL SETTINGS
# The folder has create.sql, load-*.sql (in order), keys.sql and analyze.sql. DIRECTORY gets the image, the
# mount and the cluster. Prints the seconds from the empty database to the first query.
set -eu
bin=$1/bin
directory=$2
sql=$3
settings=$4
image=$directory/disk.img
mnt=$directory/mnt
sock=$directory/sock
mkdir -p "$mnt" "$sock"
chown nobody "$sock"
dd if=/dev/zero of="$image" bs=1M count=5120 conv=fsync status=none
loop=$(losetup --show --direct-io=on -f "$image")
cleanup() {
    as "$bin/pg_ctl" -D "$mnt/data" -s -m immediate stop 2>/dev/null || true
    umount "$mnt" 2>/dev/null || true
    losetup -d "$loop" 2>/dev/null || true
}
trap cleanup EXIT

as() { setpriv --reuid=nobody --regid=nogroup --clear-groups env LC_ALL=C "$@"; }
ask() { as "$bin/psql" -X -q -v ON_ERROR_STOP=1 -h "$sock" tpch "$@" >/dev/null; }

mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$loop"
mount -o noatime "$loop" "$mnt"
mkdir "$mnt/data"
chown nobody "$mnt/data"
as "$bin/initdb" -D "$mnt/data" -A trust --no-sync --encoding=UTF8 --locale=C >/dev/null
printf '%s\n' "$settings" >>"$mnt/data/postgresql.conf"
as "$bin/pg_ctl" -D "$mnt/data" -s -w -l "$sock/log" \
    -o "-c listen_addresses= -c unix_socket_directories=$sock" start
as "$bin/psql" -X -q -h "$sock" postgres -c 'CREATE DATABASE tpch'
started=$(date +%s%N)
ask -f "$sql/create.sql"
for file in "$sql"/load-*.sql; do
    ask -f "$file"
done
ask -f "$sql/keys.sql"
ask -f "$sql/analyze.sql"
ask -c CHECKPOINT
ended=$(date +%s%N)
ask -f "$sql/first-query.sql"
echo $(((ended - started) / 1000000))
