"""What a guest's console tells of a kernel that does not come as far as its first program: which option it lacks.

init/main.c and init/do_mounts.c say these words; `/init` itself names whatever is missing after it was begun (init.sh).
"""

from __future__ import annotations

import re

# A kernel that is booted with `quiet` says nothing of what goes well, so that silence may have other reasons.
_KERNEL_SPOKE = re.compile(r"\[ *\d+\.\d+\]|Linux version|bedplate: |Kernel panic")
_SILENT = (
    "nothing came on its serial port: a kernel without CONFIG_PRINTK, CONFIG_TTY or CONFIG_SERIAL_8250_CONSOLE, or for other processors, "
    "says nothing"
)
_BY_WORDS = (
    (
        re.compile(r"VFS: Unable to mount root fs|VFS: Cannot open root device"),
        "the kernel took no first root: CONFIG_BLK_DEV_INITRD is not set",
    ),
    (
        re.compile(r"Failed to execute /init \(error -8\)|Requested init /init failed \(error -8\)"),
        "the kernel cannot run /init: CONFIG_BINFMT_SCRIPT, CONFIG_BINFMT_ELF or CONFIG_64BIT is not set",
    ),
    (
        re.compile(r"Failed to execute /init|No working init found"),
        "the kernel cannot run /init: CONFIG_BINFMT_SCRIPT or CONFIG_BINFMT_ELF is not set",
    ),
)


def lacking_by_console(text: str) -> tuple[str, ...]:
    """What a guest that was never ready tells of an option; at most one sentence, none where it tells nothing."""
    for words, sentence in _BY_WORDS:
        if words.search(text):
            return (sentence,)
    return () if _KERNEL_SPOKE.search(text) else (_SILENT,)
