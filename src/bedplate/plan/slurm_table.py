"""`[slurm]`: the nodes of a cluster that a plan's repetitions run on."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeAlias

from pydantic import Field, PlainValidator, model_validator

from bedplate.model.fleet import CONTROLLER_DEADLINE_S, DIFFERING, LOCAL_DIRECTORY
from bedplate.plan import values
from bedplate.plan.fields import DeviceName
from bedplate.plan.table import PlanTable
from bedplate.plan.words import shown

MOST_NODES = 1000
# What stands on sbatch's command line, and in the name of a folder.
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
_RANGES = re.compile(
    r"([A-Za-z0-9._-]*)\[(\d{1,6}(?:-\d{1,6})?(?:,\d{1,6}(?:-\d{1,6})?)*)\]([A-Za-z0-9._-]*)", re.ASCII
)
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:=-]{0,99}", re.ASCII)
_CONSTRAINT = re.compile(r"[A-Za-z0-9_&|!()\[\]*,.:=-]{1,200}", re.ASCII)


def expand_nodes(text: str) -> tuple[str, ...]:
    """`n[1-3,7]` as Slurm writes it, expanded; a plain name is itself. ValueError for anything else."""
    found = _RANGES.fullmatch(text)
    if found is None:
        if _NODE.fullmatch(text) is None:
            raise ValueError('allowed are names of nodes as Slurm knows them: "n1", or "n[01-16]"')
        return (text,)
    before, ranges, after = found.groups()
    names = []
    for part in ranges.split(","):
        low, _, high = part.partition("-")
        last = int(high or low)
        if last < int(low) or last - int(low) >= MOST_NODES:
            raise ValueError(f"{text}: {part} is no range of at most {MOST_NODES} nodes")
        # Slurm keeps the leading zeros of the first number.
        names += [f"{before}{number:0{len(low)}d}{after}" for number in range(int(low), last + 1)]
    if not all(map(_NODE.fullmatch, names)):
        raise ValueError(f"{text} makes names that no node has")
    return tuple(names)


def nodes(value: Any) -> tuple[str, ...]:
    """A list of names, ranges among them; every node once."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not listed or not all(isinstance(name, str) for name in listed):
        raise ValueError('allowed is a list of names of nodes: ["n1", "n2"], or ["n[01-16]"]')
    found = [name for text in listed for name in expand_nodes(text)]
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise ValueError(f"{', '.join(twice)}: listed twice")
    if len(found) > MOST_NODES:
        raise ValueError(f"{len(found)} nodes; allowed are {MOST_NODES}")
    return tuple(found)


def _matching(pattern: re.Pattern[str], allowed: str) -> PlainValidator:
    def check(value: Any) -> str:
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        raise ValueError(f"allowed is {allowed}")

    return PlainValidator(check)


def _directory(value: Any) -> str:
    if (
        isinstance(value, str)
        and value.startswith("/")
        and value.isprintable()
        and len(value) <= 500
        and ".." not in value.split("/")
    ):
        return value
    raise ValueError("allowed is an absolute path on every node")


Word: TypeAlias = Annotated[str, _matching(_WORD, "one word as sbatch takes it")]
Constraint: TypeAlias = Annotated[str, _matching(_CONSTRAINT, "a constraint as sbatch takes it")]
Nodes: TypeAlias = Annotated[tuple[str, ...], PlainValidator(nodes)]
NodeName: TypeAlias = Annotated[str, _matching(_NODE, "the name of a node")]
Directory: TypeAlias = Annotated[str, PlainValidator(_directory)]
JobTime: TypeAlias = Annotated[float, PlainValidator(lambda value: values.duration(60, value))]
Differing: TypeAlias = Annotated[
    tuple[str, ...], PlainValidator(lambda value: values.some_of(tuple(DIFFERING), value))
]


class SlurmTable(PlanTable):
    """`[slurm]`: which nodes, how jobs are asked for, and what stands on the nodes."""

    nodes: Nodes = Field(description='list of names of nodes: ["n1", "n2"], or ["n[01-16]"]')
    """– | a list of names of nodes, ranges as Slurm writes them; repetition 1 runs on the first, 2 on the second, and so on,
    round and round | required | `["n[01-16]"]`"""
    partition: Word | None = Field(default=None, description="partition of the nodes")
    """– | partition of the nodes | the cluster's | `"bench"`"""
    constraint: Constraint | None = Field(default=None, description="features that the nodes must have")
    """– | features that the nodes must have | none | `"nvme"`"""
    account: Word | None = Field(default=None, description="account that the jobs are charged to")
    """– | account that the jobs are charged to | the user's | `"storage"`"""
    gres: Word | None = Field(default=None, description='generic resource, such as "scratch_device:1"')
    """– | a generic resource that every job asks for | none | `"scratch_device:1"`"""
    time: JobTime | None = Field(default=None, description='limit of one job, such as "12 h"')
    """– | a minute or more: limit of one job, which is one repetition on one node | three times the estimate, an hour at least |
    `"12 h"`"""
    devices: dict[NodeName, DeviceName] = Field(
        default_factory=dict, description="a table of scratch devices by node"
    )
    """– | a table of scratch devices by node, in place of `device` in `[scratch_device]`; **each will be erased**, and must be
    named with `--erase` | none | `{ n1 = "/dev/disk/by-id/nvme-…" }`"""
    journal_devices: dict[NodeName, DeviceName] = Field(
        default_factory=dict, description="a table of devices of external journals by node"
    )
    """– | a table of devices of external journals by node, in place of `device` in `[journal_device]`; **each will be erased**, and
    must be named with `--erase` | none | `{ n1 = "/dev/disk/by-id/nvme-…" }`"""
    local_directory: Directory = Field(default=LOCAL_DIRECTORY, description="absolute path on every node")
    """– | an absolute path on every node, on a disk of its own: results and images are below it while a visit runs |
    `"/var/tmp"` | `"/scratch"`"""
    controller_deadline: JobTime = Field(
        default=CONTROLLER_DEADLINE_S, description='how long a silent controller is waited for: "1 d"'
    )
    """– | how long a controller that does not answer is waited for | `"1 d"` | `"2 h"`"""
    differing: Differing = Field(default=(), description=f"some of {', '.join(DIFFERING)}")
    """– | in what nodes may differ: a list of `cpu`, `memory`, `kernel`, `distribution`, `firmware`, `device` | nothing |
    `["firmware"]`"""

    @model_validator(mode="after")
    def _knows_its_nodes(self) -> SlurmTable:
        for key in ("devices", "journal_devices"):
            unknown = [name for name in getattr(self, key) if name not in self.nodes]
            if unknown:
                raise ValueError(f"{key} of {', '.join(map(shown, unknown))}, which nodes does not list")
        return self
