"""Untorn writes on a device that takes them itself: an NVMe disk of QEMU's, which says so since 9.2, below ext4 and XFS."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.guests.guest_lab import guest_lab

from bedplate.errors import BedplateError
from bedplate.executors.qemu.guest import PROGRAM
from bedplate.executors.qemu.kernels import GuestKernel, ensure_kernel
from bedplate.host.apt import code_name, ensure_package_tree, parse_os_release
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.native_driver import ensure_driver
from bedplate.host.requirement import read_os_release
from bedplate.model.cell import KernelLevels
from bedplate.units import KIB, MIB
from bedplate.visit.declaration import UNTORN_SHIM

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

HERE = Path(__file__).resolve().parent
# ext4 joins blocks of a cluster to one untorn write since 6.16, as XFS does with blocks and takes more by copying on write.
SERIES = ("6.18", "6.19", "7.2", "6.16")
UNIT_KIB = 16
SECTOR_BYTES = 512
DISK_BYTES = 512 * MIB
# Runs in the guest in the place of a visit.
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from untorn_on_nvme import main
main([{library!r}, sys.argv[2]])
Path(sys.argv[2], "visit.json").write_text("{{}}")
"""

Line = Mapping[str, Any]


def says_atomic(program: str, environment: Mapping[str, str] | None = None) -> bool:
    told = Commands().run([program, "-device", "nvme,help"], extra_environment=environment).stdout
    return "atomic.awupf=" in told


def newer_qemu(folder: Path) -> str:
    """The command of a QEMU whose nvme has a unit: the machine's own, else the distribution's backport, unpacked in the cache."""
    if says_atomic(PROGRAM):
        return PROGRAM
    suite = f"{code_name(parse_os_release(read_os_release()))}-backports"
    own = Commands().run([PROGRAM, "--version"]).stdout.splitlines()[0]
    try:
        tree = ensure_package_tree(
            ["qemu-system-x86"],
            cache_directory=cache_directory(),
            commands=Commands(),
            progress=lambda _: None,
            suite=suite,
        )
    except BedplateError as error:
        pytest.skip(f"{own}: its nvme has no atomic.awupf, and {suite} has no newer one: {error}")
    program = str(tree.demand_program(PROGRAM))
    if not says_atomic(program, tree.environment):
        pytest.skip(f"{own}, and that of {suite}: their nvme has no atomic.awupf")
    libraries = ":".join(map(str, tree.library_path))
    firmware = " ".join(
        f"-L {shlex.quote(str(tree.root / 'usr/share' / name))}" for name in ("qemu", "seabios")
    )
    wrapper = folder / "newer-qemu"
    wrapper.write_text(
        f'#!/bin/sh\nexport LD_LIBRARY_PATH={shlex.quote(libraries)}\nexec {shlex.quote(program)} {firmware} "$@"\n'
    )
    wrapper.chmod(0o755)
    return str(wrapper)


def recent_kernel() -> GuestKernel:
    reasons = []
    for asked in SERIES:
        try:
            return ensure_kernel(
                asked, cache_directory=cache_directory(), commands=Commands(), progress=lambda _: None
            )
        except BedplateError as error:
            reasons.append(f"{asked}: {error}")
    pytest.skip("; ".join(reasons))


def disk_words(folder: Path, name: str, unit_kib: int) -> str:
    """A disk of its own, as its options: NVMe counts such units in blocks, and from 0."""
    image = folder / f"{name}.nvme"
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    last = unit_kib * KIB // SECTOR_BYTES - 1
    promise = f",atomic.dn=on,atomic.awun={last},atomic.awupf={last}" if unit_kib else ""
    # Where none is asked for, nobody says that it merges what is written in the host's page cache.
    return f"-drive if=none,id={name},format=raw,file={shlex.quote(str(image))} -device nvme,drive={name},serial={name}{promise}"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Line]]:
    """What came of each disk, by its serial, from one boot."""
    folder: Path = tmp_path_factory.mktemp("newer")
    qemu, kernel = newer_qemu(folder), recent_kernel()
    words = " ".join(disk_words(folder, name, unit) for name, unit in (("promising", UNIT_KIB), ("plain", 0)))
    (folder / "bin").mkdir()
    program = folder / "bin" / PROGRAM
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(qemu)} "$@" {words}\n')
    program.chmod(0o755)
    library = ensure_driver(
        UNTORN_SHIM.name,
        source=HERE.parents[1] / "drivers" / f"{UNTORN_SHIM.program}.c",
        cache_directory=cache_directory() / "drivers",
        commands=Commands(),
        is_preloaded=True,
    )
    with pytest.MonkeyPatch.context() as patch, guest_lab() as lab:
        if qemu == PROGRAM:
            qemu_at = next(path for path in os.environ["PATH"].split(":") if Path(path, PROGRAM).exists())
            program.write_text(program.read_text().replace(f"exec {PROGRAM}", f"exec {qemu_at}/{PROGRAM}"))
        patch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        executor = lab.executor()
        request = lab.run(SCRIPT.format(tests=str(HERE), library=str(library)))
        request = replace(request, cell=replace(request.cell, kernel=KernelLevels(kernel.release)))
        directory = lab.live(executor, request)
        found = [json.loads(line) for line in (directory / "lines").read_text().splitlines()]
        yield {line["serial"]: line for line in found}


def test_ext4_takes_pages_that_the_device_writes_whole_where_its_clusters_hold_them(
    lines: Mapping[str, Line],
) -> None:
    line = lines["promising"]
    assert UNIT_KIB * KIB == line["queue_unit_bytes"]
    clustered, plain = line["ext4 bigalloc"], line["ext4"]
    assert [4 * KIB, UNIT_KIB * KIB] == clustered["unit"][:2]
    assert ("taken", 16, {}) == (clustered["probe"], clustered["atomic"], clustered["refused"])
    # Without clusters a block is all that it joins.
    assert [4 * KIB, 4 * KIB] == plain["unit"][:2]
    assert ("EINVAL", 0, {"EINVAL": 16}) == (plain["probe"], plain["atomic"], plain["refused"])


def test_xfs_says_what_it_hands_to_the_device_and_what_it_copies(lines: Mapping[str, Line]) -> None:
    line = lines["promising"]
    smallest, largest, without_copy = line["xfs"]["unit"]
    assert (4 * KIB, UNIT_KIB * KIB) == (smallest, without_copy)
    assert largest >= without_copy
    assert ("taken", 16, {}) == tuple(line["xfs"][name] for name in ("probe", "atomic", "refused"))


def test_without_such_a_promise_only_what_can_copy_takes_a_page(lines: Mapping[str, Line]) -> None:
    line = lines["plain"]
    # One block, which NVMe has any disk write whole.
    assert SECTOR_BYTES == line["queue_unit_bytes"]
    for name in ("ext4", "ext4 bigalloc", "xfs without reflink"):
        assert ("EOPNOTSUPP", 0, {"EOPNOTSUPP": 16}) == tuple(
            line[name][each] for each in ("probe", "atomic", "refused")
        ), name
    assert ("taken", 16) == (line["xfs"]["probe"], line["xfs"]["atomic"])
    assert 0 == line["xfs"]["unit"][2]
