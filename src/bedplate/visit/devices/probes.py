"""What is read once a second beside the runs of a visit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.probe.emulated import EmulatedDeviceProbe
from bedplate.probe.kernel import DeviceProbe, GroupProbe, MemoryProbe, PressureProbe, ProcessorProbe

if TYPE_CHECKING:
    from bedplate.filesystem.site import Site
    from bedplate.host.cgroups.group import Group
    from bedplate.host.devices.latency_device import LatencyDevice
    from bedplate.probe.protocol import Probe


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
