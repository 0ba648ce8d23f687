"""What may be compared with what: figures of two surroundings stand side by side, without a verdict.

Comparable means: same machine, device stack, executor, accelerator, kernel, build of the engine,
libraries and tools, protocol of the workload, and way of the dataset (loaded or restored), except for what a plan declares as a factor (docs/method/measuring.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.template import filled

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

# Keys of a visit's provenance, in the order in which a difference is told, and what each is called.
NAMES: Mapping[str, str] = {
    "machine": "machine",
    "disk": "device stack",
    "executor": "executor",
    "accelerator": "accelerator",
    "qemu": "QEMU",
    "host_kernel": "kernel of the host",
    "kernel": "kernel",
    "kernel_digest": "build of the kernel",
    "zfs": "ZFS",
    "build": "build of the engine",
    "tools": "libraries and tools",
    "protocol": "protocol of the workload",
    "dataset": "dataset",
}
# What the page's script says too.
DIFFERENCE = "{name}: {values}"


def differences(
    provenances: Iterable[Mapping[str, str]], *, declared: Collection[str] = ()
) -> tuple[str, ...]:
    """One sentence per way in which visits are not comparable; empty where they are.

    What is not known of a visit differs from nothing. `declared` are keys that the plan varies.
    """
    known = list(provenances)
    allowed = {*declared, *(["kernel_digest"] if "kernel" in declared else [])}
    found = []
    for key, name in NAMES.items():
        values = sorted({provenance[key] for provenance in known if key in provenance})
        if key not in allowed and len(values) > 1:
            found.append(filled(DIFFERENCE, name=name, values=", ".join(values)))
    return tuple(found)
