"""External journals that this kernel has, on a real loop over memory: made, mounted, proved, checked, given back."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.tools.filesystem_site import site_on
from tests.support.tools.scratch_disk import looped

from bedplate.errors import DeviceRefused, PlanError, RequirementMissing, VerifyFailed
from bedplate.filesystem.adapter import Site, effective_facts, verify
from bedplate.filesystem.refusals import judge, measure_fsyncs, probe_refusals, write_back_wanted
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.block_tree import attached_to, read_signatures
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger, release_orphans
from bedplate.host.mount import unmount
from bedplate.host.scratch_device import (
    AttachedDevice,
    journal_refusal_reasons,
    note_journal,
    prepare_journal,
    release_journal,
)
from bedplate.model import codec
from bedplate.model.cell import FilesystemLevels, RunSpec
from bedplate.model.filesystem import TRAITS
from bedplate.model.levels import Levels
from bedplate.model.visit import FlushCount, Outcome, RunRecord, ScratchDevice
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Bench = Any

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

_MEMORY = Path("/dev/shm")
_DATA_BYTES, _JOURNAL_BYTES = 304 * MIB, 64 * MIB


def _external(type_: str, block_size_bytes: int | None = None, **changes: Any) -> FilesystemLevels:
    return FilesystemLevels(
        type_, block_size_bytes, journal="external", journal_device=changes.pop("on", "ram"), **changes
    )


@pytest.fixture
def commands() -> Commands:
    return Commands()


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bedplate-test-journal-", dir=_MEMORY) as name:
        yield Path(name)


@contextmanager
def _attached(folder: Path, name: str, size_bytes: int) -> Iterator[AttachedDevice]:
    with looped(folder, size_bytes=size_bytes, name=name) as path:
        device = AttachedDevice(path, Path(path).name, Path(path).name, size_bytes, folder / name)
        try:
            yield device
        finally:
            (device.queue / "write_cache").write_text("write back")


@pytest.fixture
def devices(folder: Path) -> Iterator[tuple[AttachedDevice, AttachedDevice]]:
    with (
        _attached(folder, "data", _DATA_BYTES) as data,
        _attached(folder, "journal", _JOURNAL_BYTES) as journal,
    ):
        yield data, journal


@pytest.fixture
def target(folder: Path, commands: Commands) -> Iterator[Path]:
    path = folder / "mount"
    path.mkdir()
    try:
        yield path
    finally:
        unmount(path, commands=commands)


def _variants() -> Iterator[FilesystemLevels]:
    for size in (None, 1024, 4096):
        for barrier in (None, True, False):
            yield _external("ext3", size, barrier=barrier)
            yield _external("xfs", size, barrier=barrier)
            for mode in (None, "ordered", "writeback", "journal"):
                features = Levels({"data": mode} if mode else {})
                yield _external("ext4", size, barrier=barrier, features=features)


def _name(levels: FilesystemLevels) -> str:
    words = (levels.type, levels.block_size_bytes, levels.barrier, levels.features.get("data"))
    return "-".join(str(word) for word in words)


@pytest.mark.parametrize("levels", tuple(_variants()), ids=_name)
def test_the_journal_is_on_its_device_and_flushed_as_asked(
    levels: FilesystemLevels,
    devices: tuple[AttachedDevice, AttachedDevice],
    target: Path,
    commands: Commands,
) -> None:
    data, journal = devices
    filesystem = filesystem_for(levels.type)
    for device in devices:
        switch = "write back" if write_back_wanted(levels) else "write through"
        (device.queue / "write_cache").write_text(switch)
    site = Site(levels, data, target, commands, journal)
    filesystem.mkfs(site)
    filesystem.mount(site)
    comparisons = filesystem.read_back(site)
    verify(comparisons)
    in_force = {item.name: (item.effective, item.matches) for item in comparisons}
    assert ("external", True) == in_force["filesystem.journal"]
    assert ("the given device", True) == in_force["filesystem.journal_device"]
    # Nothing of it names this visit's device numbers, or no two visits would be one configuration.
    assert [name for name, value in effective_facts(comparisons).items() if "loop" in str(value)] == []
    before = _written_sectors(journal)
    counts = measure_fsyncs(target, data, journal).counts
    patterns = ("appending", "overwriting", "logging")
    assert {(name, pattern) for name in ("data", "journal") for pattern in patterns} == {
        (count.device, count.pattern) for count in counts
    }
    assert _written_sectors(journal) > before
    assert judge(counts, levels.barrier) == ()
    assert judge(counts, levels.barrier is False) != ()
    assert filesystem.unmount(site)
    checked = filesystem.check(site)
    assert checked.clean, checked.text


def _written_sectors(device: AttachedDevice) -> int:
    return int(device.stat.read_text().split()[6])


@pytest.mark.parametrize("type_", ["ext3", "ext4", "xfs"])
def test_a_journal_that_is_not_on_the_given_device_is_caught(
    type_: str, devices: tuple[AttachedDevice, AttachedDevice], target: Path, commands: Commands
) -> None:
    data, journal = devices
    filesystem = filesystem_for(type_)
    inside = Site(FilesystemLevels(type_), data, target, commands)
    filesystem.mkfs(inside)
    filesystem.mount(inside)
    found = filesystem.read_back(replace(inside, levels=_external(type_), journal=journal))
    with pytest.raises(VerifyFailed) as caught:
        verify(found)
    assert ["filesystem.journal", "filesystem.journal_device"] == [
        reason.partition(":")[0] for reason in caught.value.reasons
    ]


def test_the_given_device_is_compared_by_number_not_by_name(
    devices: tuple[AttachedDevice, AttachedDevice], target: Path, commands: Commands, folder: Path
) -> None:
    data, journal = devices
    alias = folder / "stable-name"
    alias.symlink_to(journal.path)
    filesystem, site = filesystem_for("xfs"), Site(_external("xfs"), data, target, commands, journal)
    called_so = replace(site, journal=replace(journal, path=str(alias)))
    filesystem.mkfs(called_so)
    filesystem.mount(called_so)
    comparisons = {item.name: item for item in filesystem.read_back(site)}
    verify(comparisons.values())
    assert comparisons["filesystem.journal_device"].matches


@pytest.mark.parametrize("type_", [name for name, traits in TRAITS.items() if "external" in traits.journals])
def test_an_external_journal_without_a_device_touches_nothing(type_: str, commands: Commands) -> None:
    with pytest.raises(PlanError, match="journal_device"):
        filesystem_for(type_).mkfs(site_on(_external(type_), "/dev/null", commands))
    assert [] == commands.record


@pytest.mark.parametrize("type_", ["ext3", "ext4", "xfs"])
def test_a_trial_makes_the_journal_too(type_: str, folder: Path, commands: Commands) -> None:
    assert () == probe_refusals(_external(type_), commands=commands, directory=folder)
    refused = probe_refusals(
        _external(type_, mount_options=("nonsense",)), commands=commands, directory=folder
    )
    assert any("nonsense" in reason.sentence for reason in refused)
    assert [] == list(folder.glob("bedplate-probe-*"))


def test_damage_beside_an_external_journal_is_not_called_clean(
    devices: tuple[AttachedDevice, AttachedDevice], target: Path, commands: Commands
) -> None:
    data, journal = devices
    for type_ in ("ext4", "xfs"):
        filesystem, site = (
            filesystem_for(type_),
            Site(_external(type_, 4096), data, target, commands, journal),
        )
        filesystem.mkfs(site)
        with Path(data.path).open("r+b", buffering=0) as disk:
            disk.seek(4096 if type_ == "xfs" else 128 * 1024)
            disk.writelines(b"\xa5" * MIB for _ in range(64))
            os.fsync(disk.fileno())
        checked = filesystem.check(site)
        assert not checked.clean, type_


class _Places:
    """A state directory, and a real second device: a loop device under a stable name."""

    def __init__(self, folder: Path, journal: AttachedDevice) -> None:
        self.state = folder / "state"
        self.journal = journal
        self.name = Path("/dev/mapper") / f"bedplate-test-{os.getpid()}"
        self.name.parent.mkdir(exist_ok=True)
        self.name.symlink_to(journal.path)
        self.scratch = ScratchDevice(image_bytes=MIB)

    @property
    def request(self) -> ScratchDevice:
        return ScratchDevice(device=str(self.name), erase=(str(self.name),))


@pytest.fixture
def places(folder: Path, devices: tuple[AttachedDevice, AttachedDevice]) -> Iterator[_Places]:
    made = _Places(folder, devices[1])
    try:
        yield made
    finally:
        made.name.unlink()


def test_a_real_journal_device_is_guarded_like_the_scratch_device(
    places: _Places, commands: Commands, folder: Path
) -> None:
    unnamed = ScratchDevice(device=str(places.name))
    (reason,) = journal_refusal_reasons(unnamed, places.scratch, commands, directory=folder)
    assert f"--erase {places.name}" in reason
    commands.run(
        ["mkfs.xfs", "-q", "-f", "-K", "-L", "mine", "-m", "crc=0", places.journal.path], check=False
    )
    commands.run(["mke2fs", "-q", "-F", "-E", "nodiscard", "-L", "mine", places.journal.path])
    (reason,) = journal_refusal_reasons(places.request, places.scratch, commands, directory=folder)
    assert "--erase-foreign" in reason
    same = journal_refusal_reasons(places.request, places.request, commands, directory=folder)
    assert any("is the scratch device itself" in reason for reason in same)
    with Ledger.open(places.state, "test") as ledger, pytest.raises(DeviceRefused):
        prepare_journal(places.request, None, ledger=ledger, commands=commands, directory=folder)
    assert read_signatures(places.journal.path, commands) != ()


@pytest.mark.parametrize("type_", ["ext4", "xfs"])
def test_a_real_journal_device_is_wiped_when_it_is_given_back(
    type_: str,
    places: _Places,
    devices: tuple[AttachedDevice, AttachedDevice],
    commands: Commands,
    folder: Path,
) -> None:
    with Ledger.open(places.state, "test") as ledger:
        device = prepare_journal(places.request, None, ledger=ledger, commands=commands, directory=folder)
        filesystem_for(type_).mkfs(Site(_external(type_), devices[0], folder, commands, device))
        note_journal(places.request, device, ledger=ledger, commands=commands)
        assert read_signatures(device.path, commands) != ()
        release_journal(places.request, device, ledger=ledger, commands=commands)
        assert () == ledger.holdings()
    assert () == read_signatures(places.journal.path, commands)
    assert () == journal_refusal_reasons(places.request, places.scratch, commands, directory=folder)


@pytest.mark.parametrize("type_", ["ext4", "xfs"])
def test_what_a_killed_visit_left_on_the_journals_device_is_wiped_and_a_strangers_is_not(  # noqa: PLR0917 -- fixtures
    type_: str,
    places: _Places,
    devices: tuple[AttachedDevice, AttachedDevice],
    target: Path,
    commands: Commands,
    folder: Path,
) -> None:
    filesystem, site = filesystem_for(type_), Site(_external(type_), devices[0], target, commands)

    def leave_behind() -> None:
        # A child that dies without a word, as after SIGKILL.
        pid = os.fork()
        if pid == 0:
            try:
                ledger = Ledger.open(places.state, f"killed-{os.getpid()}")
                device = prepare_journal(
                    places.request, None, ledger=ledger, commands=commands, directory=folder
                )
                filesystem.mkfs(replace(site, journal=device))
                note_journal(places.request, device, ledger=ledger, commands=commands)
            finally:
                os._exit(9)
        os.waitpid(pid, 0)

    leave_behind()
    # A used log looks otherwise than a fresh one.
    site = replace(site, journal=places.journal)
    filesystem.mount(site)
    measure_fsyncs(target, devices[0])
    filesystem.unmount(site)
    assert read_signatures(places.journal.path, commands) != ()
    report = release_orphans(places.state, commands)
    assert ((f"the journal on {places.name} wiped",), ()) == (report.released, report.problems)
    assert () == read_signatures(places.journal.path, commands)
    leave_behind()
    commands.run(["mke2fs", "-q", "-F", "-E", "nodiscard", "-L", "mine", places.journal.path])
    report = release_orphans(places.state, commands)
    assert ((), ()) == (report.released, report.problems)
    assert "mine" in {signature.label for signature in read_signatures(places.journal.path, commands)}


def test_a_journal_in_memory_stands_in_memory_only(folder: Path, commands: Commands) -> None:
    scratch = ScratchDevice(image_bytes=MIB)
    request = ScratchDevice(image_bytes=_JOURNAL_BYTES)
    assert () == journal_refusal_reasons(request, scratch, commands, directory=folder)
    elsewhere = Path(__file__).parent
    reasons = journal_refusal_reasons(request, scratch, commands, directory=elsewhere)
    assert any("tmpfs" in reason for reason in reasons)
    with Ledger.open(folder / "state", "test") as ledger:
        with pytest.raises(RequirementMissing, match="tmpfs"):
            prepare_journal(request, None, ledger=ledger, commands=commands, directory=elsewhere)
        device = prepare_journal(request, None, ledger=ledger, commands=commands, directory=folder)
        assert device.image is not None
        assert _JOURNAL_BYTES == device.size_bytes == device.image.stat().st_blocks * 512
        release_journal(request, device, ledger=ledger, commands=commands)
        assert () == ledger.holdings()
        assert () == attached_to(device.image)
        assert not device.image.exists()


@pytest.mark.parametrize("type_", ["ext4", "xfs"])
def test_a_visit_with_its_journal_in_memory_records_both_devices(
    bench: Bench, make_run: Callable[..., RunSpec], type_: str
) -> None:
    # Longer than ext4's commit interval of 5 s: overwrites alone need no transaction. That of xfs is 30 s.
    request = bench.request(
        _external(type_, barrier=True),
        journal_device=ScratchDevice(image_bytes=_JOURNAL_BYTES),
        runs=(make_run("read-write", script="read-write", duration_s=8),),
    )
    record = bench.live(request)
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    assert {True, None} >= {item.matches for item in record.comparisons}
    assert "clean" == record.filesystem_check
    assert {"data", "journal"} == {count.device for count in record.flush_counts}
    # Every append is a transaction; an overwrite may need none.
    (appending,) = [count for count in _of(record.flush_counts, "journal") if count.pattern == "appending"]
    assert appending.flushes >= appending.calls
    assert record.durability is not None
    assert ("unsafe", "unsafe") == (record.durability.volatile_cache, record.durability.protected_cache)
    assert "memory behind a loop device" == record.device_facts["journal_device_kind"]
    assert _JOURNAL_BYTES == record.device_facts["journal_device_size_bytes"]
    run = codec.read(RunRecord, bench.directory / "runs" / record.runs[0] / "record.json")
    assert run.before is not None
    assert run.after is not None
    for name in ("writes", "flushes", "written_sectors"):
        growth = run.after.values[f"journal_device.{name}"] - run.before.values[f"journal_device.{name}"]
        assert growth > 0 if type_ == "ext4" else growth >= 0
    assert [] == bench.left_behind()


def _of(counts: tuple[FlushCount, ...], device: str) -> list[FlushCount]:
    return [count for count in counts if count.device == device]


def test_a_visit_that_names_no_journal_device_fails_before_it_touches_anything(bench: Bench) -> None:
    record = bench.live(bench.request(_external("ext4")))
    assert (Outcome.FAILED, "preflight") == (record.outcome, record.failed_step)
    assert any("journal" in reason.sentence for reason in record.reasons), record.reasons
    assert [] == bench.left_behind()
