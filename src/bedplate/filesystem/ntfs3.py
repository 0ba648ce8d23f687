"""NTFS by the kernel's driver ntfs3 (since 5.15). It has no option for barriers: the device's switch does it."""

from __future__ import annotations

from bedplate.filesystem.ntfsprogs import MadeByMkntfs
from bedplate.filesystem.options import OptionRules
from bedplate.model.filesystem import TRAITS

# fs/ntfs3/super.c, ntfs_show_options: what is at its default is not shown, uid and gid always are.
_RULES = OptionRules(
    synonyms={"nls=utf8": "iocharset=utf8", "no_acs_rules": "noacsrules"},
    hidden={
        "nodiscard": ("discard",),
        "noforce": ("force",),
        "nosparse": ("sparse",),
        "hidden": ("nohidden",),
        "noshowmeta": ("showmeta",),
        "noprealloc": ("prealloc",),
        "nosys_immutable": ("sys_immutable",),
        "acsrules": ("noacsrules",),
        "noacl": ("acl",),
    },
)


class Ntfs3(MadeByMkntfs):
    """NTFS by the kernel. ntfs3 flushes at every fsync."""

    traits = TRAITS["ntfs3"]
    rules = _RULES
