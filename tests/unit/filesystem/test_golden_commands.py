"""Every program that an adapter starts to make, mount, read back, unmount and check a file system, for all levels that plans ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.goldens.held_text import GOLDEN, hold
from tests.support.studies.pretended_machine import ROOT, pretended_machine
from tests.support.tools.doubles import put_in_place_of
from tests.support.tools.filesystem_site import site_on
from tests.support.tools.recorded_commands import RecordedCommands

from bedplate.campaign.planning import read_plan
from bedplate.errors import BedplateError
from bedplate.filesystem import zfs
from bedplate.filesystem.registry import FILESYSTEMS
from bedplate.host import mount, process, zpool
from bedplate.host.mount import MountEntry
from bedplate.model.cell import FilesystemLevels
from bedplate.model.filesystem import TRAITS, contradictions
from bedplate.model.levels import Levels
from bedplate.units import GIB

SOURCES = Path(__file__).parents[3]
PLANS = sorted((SOURCES / "plans").glob("*.toml"))
# What reads a superblock, and what such a tool said once.
SAID = {
    "dumpe2fs": "dumpe2fs-ext4.txt",
    "xfs_info": "xfs_info-1024.txt",
    "btrfs": "dump-super.txt",
    "jfs_tune": "jfs_tune.txt",
    "debugreiserfs": "debugreiserfs.txt",
    "nilfs-tune": "nilfs-tune.txt",
    "dump.f2fs": "dump.f2fs.txt",
    "ntfsinfo": "ntfsinfo.txt",
}
SAID_BY_ZFS = {"--version": "zfs-version.txt", "get": "get.txt", "status": "zpool-status-checked-plain.txt"}
TARGET = "/bedplate/mount"


def _asked(type_: str, of_plans: tuple[FilesystemLevels, ...]) -> Iterator[FilesystemLevels]:
    """As mkfs makes it, each level alone, each journal with each block size; and what the ready plans ask for."""
    traits = TRAITS[type_]
    yield FilesystemLevels(type_)
    yield from (FilesystemLevels(type_, block_size_bytes=size) for size in traits.block_sizes)
    if traits.barrier_by is not None:
        yield from (FilesystemLevels(type_, barrier=barrier) for barrier in (True, False))
    for journal in traits.journals:
        device = "ram" if journal == "external" else None
        sizes: tuple[int | None, ...] = (None, *traits.block_sizes)
        for size in sizes:
            yield FilesystemLevels(type_, block_size_bytes=size, journal=journal, journal_device=device)
    for name, levels in traits.features.items():
        yield from (FilesystemLevels(type_, features=Levels({name: level})) for level in levels)
    yield FilesystemLevels(type_, mount_options=("noatime", "nodiratime"))
    yield from (levels for levels in of_plans if levels.type == type_)


@pytest.fixture(scope="module")
def of_plans(tmp_path_factory: pytest.TempPathFactory) -> tuple[FilesystemLevels, ...]:
    with pretended_machine(ROOT, tmp_path_factory.mktemp("cache")):
        return tuple(levels for path in PLANS for levels in read_plan(path).plan.filesystems)


def _answer(argv: tuple[str, ...]) -> str:
    program = Path(argv[0]).name
    if program == "umount":
        mounted.clear()
    if program in {"zfs", "zpool"}:
        name = next((file for word, file in SAID_BY_ZFS.items() if word in argv), None)
        name = f"{program}-get.txt" if name == "get.txt" else name
        return "" if name is None else (GOLDEN / "zfs" / name).read_text(encoding="utf-8")
    return (GOLDEN / "filesystem" / SAID[program]).read_text(encoding="utf-8") if program in SAID else ""


def _mount_table(path: object) -> object:
    """Always the last mount that the recorder saw."""
    from tests.unit.filesystem.test_golden_commands import mounted  # noqa: PLC0415

    return tuple(mounted)


def _wait_for_nothing(is_there: object, **_: object) -> bool:
    return True


def _partition(path: str) -> str:
    return f"{path}p1"


def _nothing(*_: object) -> None:
    pass


mounted: list[MountEntry] = []


def _steps(levels: FilesystemLevels, devices: Path) -> Iterator[tuple[str, list[str]]]:
    adapter = FILESYSTEMS[levels.type]
    commands = RecordedCommands(answer=_answer)
    journal = str(devices / "journal") if levels.journal == "external" else None
    site = site_on(levels, str(devices / "scratch"), commands, journal=journal, target=Path(TARGET))
    steps: dict[str, Callable[[], object]] = {
        "versions": lambda: adapter.versions(commands=commands),
        "mkfs": lambda: adapter.mkfs(site),
        "mount": lambda: adapter.mount(site),
        "read back": lambda: adapter.read_back(site),
        "complaints": lambda: adapter.complaints(site),
        "unmount": lambda: adapter.unmount(site),
        "check": lambda: adapter.check(site),
        "layout": lambda: adapter.layout(site),
    }
    for name, step in steps.items():
        commands.lines.clear()
        source = "bedplate-scratch" if levels.type == "zfs" else site.device.path
        shown = adapter.shown_type or levels.type
        entry = MountEntry(1, 0, "0:1", "/", TARGET, shown, source, ("rw",), ("rw",))
        mounted[:] = [] if name in {"versions", "mkfs", "check", "layout"} else [entry]
        try:
            step()
        except (BedplateError, OSError) as error:
            # The device is empty, and nothing is mounted: what is read from there cannot be had.
            end = [f"! {type(error).__name__}"]
        else:
            end = []
        yield name, [*commands.lines, *end]


@pytest.mark.parametrize("type_", TRAITS)
def test_an_adapter_starts_what_it_started(
    type_: str, of_plans: tuple[FilesystemLevels, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("scratch", "journal"):
        with (tmp_path / name).open("wb") as device:
            device.truncate(4 * GIB)
    doubles: dict[Callable[..., Any], Callable[..., Any]] = {
        mount.read_mount_table: _mount_table,
        process.wait_until: _wait_for_nothing,
        zpool.partition_over: _partition,
        zpool.drop_partition_over: _nothing,
        zfs._require_module: _nothing,
    }
    for function, double in doubles.items():
        put_in_place_of(function, double, monkeypatch)
    seen: dict[tuple[str, ...], list[str]] = {}
    for levels in dict.fromkeys(_asked(type_, of_plans)):
        if not contradictions(levels):
            lines = tuple(f"{name:<11} {line}" for name, lines in _steps(levels, tmp_path) for line in lines)
            seen.setdefault(lines, []).append(_words(levels))
    text = "\n\n".join(
        "\n".join((*(f"== {each}" for each in asked), *lines)) for lines, asked in seen.items()
    )
    places = {str(tmp_path): "/dev", str(SOURCES): "<sources>"}
    for place, name in places.items():
        text = text.replace(place, name)
    hold(f"commands/{type_}.txt", f"{text}\n")


def _words(levels: FilesystemLevels) -> str:
    """What is asked, as a plan says it."""
    asked = {
        "block_size": levels.block_size_bytes,
        "mkfs_options": " ".join(levels.mkfs_options) or None,
        "mount_options": ",".join(levels.mount_options) or None,
        "barrier": levels.barrier,
        "journal": levels.journal,
        "journal_device": levels.journal_device,
        **levels.features,
    }
    return (
        " ".join(f"{key}={value}" for key, value in asked.items() if value is not None) or "(nothing asked)"
    )
