#!/bin/busybox sh
# /init of a guest, in its initramfs: makes the host's root its own, read-only under a layer of
# memory, and hands over to the agent. The host's folders are reached over 9p.
#
# Goal: the programs, libraries and builds of the host, under another kernel, and nothing written to
# the host but results. Not a goal: services, udev, a network.

/bin/busybox --install -s /bin
export PATH=/bin

# Nobody could go on by hand here: say why, and end QEMU (it runs with -no-reboot).
give_up() {
    echo "bedplate: the guest cannot be made: $*" >/dev/console
    reboot -f
}

# mount_share TAG TARGET OPTIONS: the device of a share may appear a moment after its driver.
mount_share() {
    tries=0
    until mount -t 9p -o "trans=virtio,version=9p2000.L,msize=512000,$3" "$1" "$2"; do
        tries=$((tries + 1))
        [ "$tries" -lt 50 ] || give_up "share $1 cannot be mounted"
        sleep 0.1
    done
}

mount -t devtmpfs devtmpfs /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys
while read -r module; do
    insmod "/m/$module" || give_up "module $module cannot be loaded"
done </m/order

# What is missing in a kernel whose configuration nobody could read beforehand: all of it at once.
lacking=
# needs OPTION PATH: the path is there where the kernel has the option.
needs() {
    [ -e "$2" ] || lacking="$lacking CONFIG_$1"
}
# needs_type OPTION NAME: a file system.
needs_type() {
    grep -q -w "$2" /proc/filesystems 2>/dev/null || lacking="$lacking CONFIG_$1"
}
needs PROC_FS /proc/filesystems
needs PROC_SYSCTL /proc/sys/kernel
needs SYSFS /sys/bus
if [ -z "$lacking" ]; then
    needs PCI /sys/bus/pci
    needs VIRTIO_PCI /sys/bus/pci/drivers/virtio-pci
    needs VIRTIO_BLK /sys/bus/virtio/drivers/virtio_blk
    needs VIRTIO_CONSOLE /sys/bus/virtio/drivers/virtio_console
    needs NET_9P_VIRTIO /sys/bus/virtio/drivers/9pnet_virtio
    # The initramfs has /dev/console and /dev/null of its own.
    needs_type DEVTMPFS devtmpfs
    needs_type TMPFS tmpfs
    needs_type OVERLAY_FS overlay
    needs_type 9P_FS 9p
fi
[ -z "$lacking" ] || give_up "its kernel $(uname -r) lacks, built in or as a module that was loaded:$lacking"

mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/guest/bin /run/guest/share /run/guest/modules
cp /bin/busybox /run/guest/bin/busybox
# What the host writes is seen at once, and what is written is on the host at once.
mount_share share /run/guest/share cache=none
# The host's root may be cached: of it a guest reads what was there at its boot, and folders that it had not looked at before.
mount_share root /h ro,cache=loose

mount -t tmpfs -o mode=755 tmpfs /rw
mkdir /rw/upper /rw/work
mount -t overlay -o lowerdir=/h,upperdir=/rw/upper,workdir=/rw/work overlay /n ||
    give_up "no layer over the host's root"
# The modules stand in bedplate's cache, under a path of the host's. None are there where all is built in.
read -r modules </run/guest/share/modules
[ -z "$modules" ] || mount --bind "/h$modules" /run/guest/modules ||
    give_up "the kernel's modules are not at $modules"

mkdir -p /n/dev /n/proc /n/sys /n/run /n/tmp
for folder in dev proc sys run; do
    mount --move "/$folder" "/n/$folder"
done
# switch_root and no chroot: the kernel's own calls for modprobe then see the same root.
exec switch_root /n /run/guest/bin/busybox sh /run/guest/share/agent
