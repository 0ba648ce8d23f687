"""The machine under a benchmark's figures: printed above each of them."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from bedplate.host.facts import read_machine
from bedplate.units import format_size


def print_machine() -> None:
    """One line: date, processors, memory, system, kernel, load."""
    machine = read_machine()
    load = os.getloadavg()[0]
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, {machine.cpu_count} x {machine.cpu_model}, "
        f"{format_size(machine.memory_bytes)}, {machine.distribution}, kernel {machine.kernel_release}, "
        f"load {load:.1f} at the start"
    )
