"""What bedplate needs of a distribution, by Debian's names; bedplate.host.requirement knows Fedora's."""

from __future__ import annotations

# The launcher, and what the ready plan `quick` and the questions of `ask` need: the file systems, the build of PostgreSQL,
# the recorder of power cuts.
DEPENDS = (
    "bison",
    "btrfs-progs",
    "bzip2",
    "e2fsprogs",
    "flex",
    "gcc",
    "libc6-dev",
    "libfuse3-dev",
    "libicu-dev",
    "liblz4-dev",
    "libssl-dev",
    "liburing-dev",
    "libxml2-dev",
    "libzstd-dev",
    "make",
    "mount",
    "perl",
    "pkg-config",
    "python3",
    "python3-venv",
    "tar",
    "util-linux",
    "uuid-dev",
    "xfsprogs",
    "xz-utils",
    "zlib1g-dev",
)
# What further plans need: each is asked for where it is missing.
RECOMMENDS = ("bonnie++", "fio", "liblmdb-dev", "libsqlite3-dev", "qemu-system-x86")
