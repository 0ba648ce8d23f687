"""What a visit makes of its devices: an emulated one, and what is read of them beside its runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.recorder import DRIVER, LatencyDevice, fitting_way, way_there
from bedplate.host.scratch_device import device_facts
from bedplate.model.device_cache import KIND
from bedplate.model.devices import Latency
from bedplate.model.levels import Levels
from bedplate.model.visit import VisitRequest
from bedplate.probe.kernel import (
    DeviceProbe,
    EmulatedDeviceProbe,
    GroupProbe,
    MemoryProbe,
    PressureProbe,
    ProcessorProbe,
)

if TYPE_CHECKING:
    from bedplate.filesystem.adapter import Site
    from bedplate.host.cgroups import Group
    from bedplate.probe.sampler import Probe

EMULATED_KIND = "emulated device with latency, in memory"


def start_emulated(
    request: VisitRequest, latency: Latency, place: Path, *, ledger: Ledger, commands: Commands
) -> tuple[LatencyDevice, Levels]:
    """The device, and what is known of it and of the way there; `place` is a folder on a tmpfs.

    RequirementMissing where this machine cannot be such a device.
    """
    driver = request.native_drivers.get(DRIVER)
    if driver is None or request.scratch_device.image_bytes is None:
        raise RequirementMissing(
            f"latency {latency.name}: the request names no driver {DRIVER}, or no size of an image; `bedplate setup` builds the driver"
        )
    folders = [place / name for name in ("way", "device")]
    for folder in folders:
        folder.mkdir()
    # Asked with room before the first visit. What is late for a neighbour now is counted.
    way = fitting_way(
        [latency],
        lambda: way_there(Path(driver), folders[0], ledger=ledger, commands=commands),
        share_max=1.0,
    )
    emulated = LatencyDevice.start(
        Path(driver),
        folders[1],
        latency,
        request.scratch_device.image_bytes,
        way,
        seed=request.seed,
        ledger=ledger,
        commands=commands,
    )
    facts = {**device_facts(emulated.device), KIND: EMULATED_KIND, **way.facts}
    return emulated, Levels(facts)


def probes_of(site: Site, group: Group, emulated: LatencyDevice | None) -> tuple[Probe, ...]:
    """Of the devices, the machine, the server's group, and an emulated device where there is one."""
    return (
        DeviceProbe(site.device.stat),
        *(() if site.journal is None else (DeviceProbe(site.journal.stat, prefix="journal_device"),)),
        MemoryProbe(),
        PressureProbe(),
        ProcessorProbe(),
        GroupProbe("server", group.cpu_seconds),
        *(() if emulated is None else (EmulatedDeviceProbe(emulated.status_file),)),
    )
