"""Visits in a guest that QEMU runs: kernels, the boot, the guest, its shares and disks."""
