"""A tree that builds as a kernel does, in a second: its configuration, its objects, its image, by makefiles of our making.

`make O=… KCONFIG_ALLCONFIG=… allnoconfig` writes a `.config` of what it is told, as far as its `Kconfig` knows the option; `make O=… bzImage` compiles
each C file whose option is set, and packs a bzImage with its release and its configuration. Each object that is made is a line of `made`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from bedplate.executors.qemu.own_kernel import GUEST, Configuration

_MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 12
SUBLEVEL = 1
EXTRAVERSION =
RELEASE := $(VERSION).$(PATCHLEVEL).$(SUBLEVEL)$(LOCALVERSION)
objects := $(patsubst %.c,$(O)/%.o,$(wildcard *.c))

.DELETE_ON_ERROR:

allnoconfig:
\t@PYTHON@ -S configure.py Kconfig $(KCONFIG_ALLCONFIG) $(O)/.config

bzImage: $(O)/arch/x86/boot/bzImage

$(O)/%.o: %.c common.h
\techo $* >>$(O)/made
\t$(CC) -c -o $@ $<

$(O)/arch/x86/boot/bzImage: $(objects) FORCE
\tmkdir -p $(O)/arch/x86/boot $(O)/include/config
\techo $(RELEASE) >$(O)/include/config/kernel.release
\t@PYTHON@ -S pack.py $(RELEASE) $(O)/.config $@

FORCE:
"""
_CONFIGURE = """\
import re, sys
known = set(open(sys.argv[1]).read().split())
values = {}
for match in re.finditer(r"^CONFIG_(\\w+)=(.*)$|^# CONFIG_(\\w+) is not set$", open(sys.argv[2]).read(), re.M):
    values[match[1] or match[3]] = match[2] or "n"
with open(sys.argv[3], "w") as file:
    for name in sorted(known):
        value = values.get(name, "n")
        file.write(f"# CONFIG_{name} is not set\\n" if value == "n" else f"CONFIG_{name}={value}\\n")
"""
_PACK = """\
import gzip, struct, sys
release, config, target = sys.argv[1:]
text = open(config, "rb").read()
kernel = b"Linux version " + release.encode() + b" (a toy)\\0IKCFG_ST" + gzip.compress(text, mtime=0) + b"IKCFG_ED"
payload = gzip.compress(kernel, mtime=0)
image = bytearray(5 * 512)
image[0x1F1] = 4
image[0x202:0x206] = b"HdrS"
image[0x206:0x208] = struct.pack("<H", 0x20F)
image[0x20E:0x210] = struct.pack("<H", 0x80)
image[0x248:0x250] = struct.pack("<II", 0, len(payload))
name = release.encode() + b" (a toy) #1\\0"
image[0x280:0x280 + len(name)] = name
open(target, "wb").write(bytes(image) + payload)
"""


def toy_kernel(
    *,
    without: Iterable[str] = (),
    files: Mapping[str, str] | None = None,
    python: Path = Path(sys.executable).resolve(),  # noqa: B008 -- it stays the same
) -> dict[str, str]:
    """The files of the tree, which builds with `python`; its `Kconfig` knows all options of the shipped configuration but `without`."""
    known = Configuration(GUEST.read_text(), "shipped").values.keys() - set(without)
    return {
        "Makefile": _MAKEFILE.replace("@PYTHON@", str(python)),
        "Kconfig": "\n".join(sorted({*known, "TOY"})),
        "configure.py": _CONFIGURE,
        "pack.py": _PACK,
        "common.h": "#define COMMON 1\n",
        "main.c": '#include "common.h"\nint first = COMMON;\n',
        "fsync.c": "int second = 2;\n",
        **(files or {}),
    }


def made(objects: Path) -> list[str]:
    """The objects that were made since this was asked last, in any order."""
    file = objects / "made"
    found = sorted(file.read_text().split()) if file.exists() else []
    file.unlink(missing_ok=True)
    return found
