"""What a fleet's study knows of its nodes, one file for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import codec, no_links
from bedplate.model.fleet import NodeFacts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.model.devices.identity import DeviceIdentity
    from bedplate.model.plan import Plan
    from bedplate.study.layout import StudyLayout


def nodes_directory(layout: StudyLayout) -> Path:
    """Where the files of a study's nodes are."""
    return layout.fleet / "nodes"


def read_nodes(layout: StudyLayout) -> Mapping[str, NodeFacts]:
    """What was found about the nodes, by name; empty before that, and without a fleet.

    StudyError names a file that cannot be read, and the way out.
    """
    found = {}
    directory = nodes_directory(layout)
    for path in (directory / name for name in no_links.names_in(directory) if name.endswith(".json")):
        try:
            found[path.stem] = codec.read(NodeFacts, path)
        except StudyError as error:
            raise StudyError(*error.reasons, f"remove {path}, and it is found out again") from error
    return found


def node_devices(layout: StudyLayout, plan: Plan) -> Mapping[str, Mapping[str, DeviceIdentity]]:
    """By node the devices that its visits erase, by their names, as they were when somebody looked at the node first."""
    fleet, journal = plan.fleet, plan.journal_device
    if fleet is None:
        return {}
    found = {}
    for node, facts in read_nodes(layout).items():
        pairs = (
            (fleet.devices.get(node, plan.scratch_device.device), facts.device),
            (
                None if journal is None else fleet.journal_devices.get(node, journal.device),
                facts.journal_device,
            ),
        )
        found[node] = {name: device for name, device in pairs if name is not None and device is not None}
    return found
