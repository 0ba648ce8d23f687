#!/bin/sh
# What people write instead: one loop over file systems, with sleeps where nothing tells that it is
# time to go on. Same steps and same measured seconds as use_of_time.toml beside it.
# Usage: shell_loop.sh PREFIX_OF_POSTGRESQL DIRECTORY SECONDS_OF_A_RUN SECONDS_OF_A_PAUSE
set -eu
bin=$1/bin
directory=$2
seconds=$3
pause=$4
image=$directory/disk.img
mnt=$directory/mnt
sock=$directory/sock
mkdir -p "$mnt" "$sock"
chown nobody "$sock"
dd if=/dev/zero of="$image" bs=1M count=1024 conv=fsync status=none
loop=$(losetup --show --direct-io=on -f "$image")
trap 'umount "$mnt" 2>/dev/null || true; losetup -d "$loop" 2>/dev/null || true' EXIT

as() { setpriv --reuid=nobody --regid=nogroup --clear-groups env LC_ALL=C "$@"; }

for fs in ext4 xfs btrfs; do
    case $fs in
        ext4) mkfs.ext4 -q -F "$loop" ;;
        xfs) mkfs.xfs -q -f "$loop" ;;
        btrfs) mkfs.btrfs -q -f "$loop" ;;
    esac
    mount -o noatime "$loop" "$mnt"
    sleep "$pause"
    mkdir "$mnt/data"
    chown nobody "$mnt/data"
    as "$bin/initdb" -D "$mnt/data" -A trust >/dev/null
    as "$bin/pg_ctl" -D "$mnt/data" -s -l "$sock/log" \
        -o "-c listen_addresses= -c unix_socket_directories=$sock -c shared_buffers=64MB" start
    sleep "$pause"
    as "$bin/createdb" -h "$sock" bench 2>/dev/null || as "$bin/psql" -q -h "$sock" postgres -c 'CREATE DATABASE bench'
    as "$bin/pgbench" -h "$sock" -i -q -s 5 bench 2>/dev/null
    sleep "$((2 * pause))"
    as "$bin/pgbench" -h "$sock" -n -S -c 4 -j 2 -T "$seconds" bench
    sleep "$((2 * pause))"
    as "$bin/psql" -q -h "$sock" bench -c CHECKPOINT
    as "$bin/pgbench" -h "$sock" -n -c 4 -j 2 -T "$seconds" bench
    as "$bin/pg_ctl" -D "$mnt/data" -s stop
    sleep "$pause"
    umount "$mnt"
done
