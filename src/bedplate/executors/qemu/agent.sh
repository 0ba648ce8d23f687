#!/bin/sh
# The agent of a guest: process 1 after switch_root, run by a busybox of its own. It makes ready what
# an init system would, and then serves visits: it waits on a virtio-serial port for a line
# `visit NUMBER`, lives through that visit, or another program of bedplate's, and says how it ended.
#
# /run/guest/share is a folder of the host's, which holds
#   python, sources        the paths of an interpreter and of what goes into PYTHONPATH
#   modprobe               a script that becomes modprobe(8); without it busybox has to do
#   NUMBER/request.json    what is asked; NUMBER/visit/ takes the record
#   NUMBER/arguments       the words behind the interpreter's own options, a line each
#   NUMBER/environment     NAME=VALUE lines, the visit's whole environment
#   NUMBER/folders         folders that an account without rights must pass through
#   NUMBER/load            `modprobe NAME` and `insmod PATH` lines
#   NUMBER/disks           `SERIAL BYTES` lines
#
# On the port every line of ours is JSON with an "agent" key; the visit's own events have "event";
# what is neither is what the visit said on standard error.

share=/run/guest/share
port_name=bedplate.visits
errors=/run/guest/errors
/run/guest/bin/busybox --install -s /run/guest/bin
export PATH=/run/guest/bin

say() {
    printf '%s\n' "$1" >&3
}

give_up() {
    echo "bedplate: the guest's agent gives up: $*" >/dev/console
    reboot -f
}

# No event tells that the host has announced its port: within a second it has.
open_port() {
    tries=0
    while :; do
        for port in /sys/class/virtio-ports/*; do
            if [ "$(cat "$port/name" 2>/dev/null)" = "$port_name" ]; then
                exec 3<>"/dev/${port##*/}"
                return
            fi
        done
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || give_up "the host has no port $port_name"
        sleep 0.05
    done
}

prepare_machine() {
    mkdir -p /dev/pts /dev/shm /dev/disk/by-id /lib/modules /run/guest/state /run/lock
    mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    mount -t cgroup2 cgroup2 /sys/fs/cgroup || echo "bedplate: no cgroup2" >/dev/console
    mount --bind /run/guest/modules /lib/modules
    ln -sfn /proc/self/fd /dev/fd
    hostname guest
    ip link set lo up
    ulimit -n 65536
    if [ -e "$share/modprobe" ]; then
        rm -f /run/guest/bin/modprobe
        cp "$share/modprobe" /run/guest/bin/modprobe
        chmod +x /run/guest/bin/modprobe
    fi
    # The kernel calls it too, when a file system asks for a character set or a checksum.
    [ ! -e /proc/sys/kernel/modprobe ] || echo /run/guest/bin/modprobe >/proc/sys/kernel/modprobe
}

# There is no udev here: stable names are made of the serials that the host gave.
link_disks() {
    for disk in /sys/block/vd*; do
        serial=$(cat "$disk/serial" 2>/dev/null)
        [ -z "$serial" ] || ln -sfn "../../${disk##*/}" "/dev/disk/by-id/virtio-$serial"
    done
}

# The host has written the images anew, perhaps in another size: forget what was read of them, and
# wait until the kernel knows the size.
renew_disks() {
    while read -r serial bytes; do
        node=/dev/disk/by-id/virtio-$serial
        blockdev --flushbufs "$node" || return
        tries=0
        until [ "$(blockdev --getsize64 "$node")" = "$bytes" ]; do
            tries=$((tries + 1))
            [ "$tries" -lt 200 ] || return
            sleep 0.05
        done
    done
}

load_modules() {
    while read -r how what; do
        # By its path: busybox would take its own.
        "/run/guest/bin/$how" "$what" >>"$errors.modules" 2>&1
    done
}

# A folder that is open to all already is left alone: changing its mode copies it into memory.
open_folders() {
    while read -r folder; do
        chmod o+x "$folder"
    done
}

live() {
    visit=$share/$1
    : >"$errors.modules"
    load_modules <"$visit/load"
    open_folders <"$visit/folders"
    if ! renew_disks <"$visit/disks"; then
        say "the guest's kernel did not take the disks that were written anew: $(cat /proc/partitions | tr '\n' ';')"
        say '{"agent": "ended", "status": 3, "tainted": 0}'
        return
    fi
    set --
    while IFS= read -r pair; do
        set -- "$@" "$pair"
    done <"$visit/environment"
    # -S -s -P: nothing but the standard library and our sources.
    set -- "$@" "$python" -S -s -P
    while IFS= read -r word; do
        set -- "$@" "$word"
    done <"$visit/arguments"
    (cd / && exec env -i "$@") </dev/null >&3 2>"$errors"
    status=$?
    tail -c 20000 "$errors" >&3
    # Beside the record, as it may be why a file system was not to be had.
    if [ -s "$errors.modules" ] && [ -d "$visit/visit/logs" ]; then
        cp "$errors.modules" "$visit/visit/logs/modules.log"
    fi
    # A line that the visit did not end would swallow ours.
    say ''
    say "{\"agent\": \"ended\", \"status\": $status, \"tainted\": $(cat /proc/sys/kernel/tainted)}"
}

# Process 1 that ends is a kernel panic, which ends QEMU: the host is told in any case.
read -r python <"$share/python"
prepare_machine
link_disks
open_port
say "{\"agent\": \"ready\", \"tainted\": $(cat /proc/sys/kernel/tainted)}"
# A guest that hangs as a whole stops saying this, however long the visit's own step takes.
while sleep 10; do
    say '{"agent": "alive"}'
done &
while read -r word number <&3; do
    [ "$word" != visit ] || live "$number"
done
give_up "its port was closed"
