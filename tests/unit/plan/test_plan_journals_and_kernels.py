"""Keys of kernels, guests and external journals: what they mean, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bedplate.model.cell import FilesystemLevels, KernelLevels
from bedplate.model.filesystem import TRAITS, feature_levels
from bedplate.model.plan import Plan
from bedplate.model.visit import ScratchDevice
from bedplate.plan.differences import differences, obstacles_to_extend
from bedplate.plan.load import FilesystemTable

LoadText = Callable[[str], Plan]
ReasonsOf = Callable[[str], tuple[str, ...]]
Edited = Callable[..., str]
DISK = "/dev/disk/by-id/nvme-journal"
EXTERNAL = 'type = "ext4"\njournal = "external"\n'


def with_filesystem(minimal: str, lines: str, *tables: str) -> str:
    return minimal.replace('type = "ext4"\n', lines) + "".join(f"{table}\n" for table in tables)


def journals(plan: Plan) -> list[tuple[str | None, str | None]]:
    return [(levels.journal, levels.journal_device) for levels in plan.filesystems]


def test_an_external_journal_stands_in_ram_unless_the_plan_says_otherwise(
    load_text: LoadText, minimal: str
) -> None:
    plan = load_text(with_filesystem(minimal, EXTERNAL))
    assert [("external", "ram")] == journals(plan)
    assert ScratchDevice(image_bytes=256 * 2**20) == plan.journal_device_for(plan.filesystems[0])


def test_it_stands_where_the_table_says(load_text: LoadText, minimal: str) -> None:
    on_disk = load_text(with_filesystem(minimal, EXTERNAL, f'[journal_device]\ndevice = "{DISK}"'))
    assert [("external", "device")] == journals(on_disk)
    assert ScratchDevice(device=DISK) == on_disk.journal_device_for(on_disk.filesystems[0])
    in_ram = load_text(with_filesystem(minimal, EXTERNAL, '[journal_device]\nram_size = "1 GB"'))
    assert ScratchDevice(image_bytes=2**30) == in_ram.journal_device_for(in_ram.filesystems[0])


def test_with_both_each_variant_gets_its_own(load_text: LoadText, minimal: str) -> None:
    lines = f'{EXTERNAL}journal_device = {{ vary = ["ram", "device"] }}\n'
    table = f'[journal_device]\ndevice = "{DISK}"\nram_size = "64 MB"'
    plan = load_text(with_filesystem(minimal, lines, table))
    assert [
        ScratchDevice(image_bytes=64 * 2**20),
        ScratchDevice(device=DISK),
    ] == [plan.journal_device_for(levels) for levels in plan.filesystems]
    assert len({cell.id for cell in plan.cells()}) == 2


def test_only_an_external_journal_has_a_device(load_text: LoadText, minimal: str) -> None:
    lines = 'type = "ext4"\njournal = { vary = ["internal", "external", "none"] }\n'
    both = f'{lines}journal_device = {{ vary = ["ram", "device"] }}\n'
    plan = load_text(with_filesystem(minimal, lines))
    assert [("internal", None), ("external", "ram"), ("none", None)] == journals(plan)
    assert [True, False, True] == [plan.journal_device_for(levels) is None for levels in plan.filesystems]
    table = f'[journal_device]\ndevice = "{DISK}"\nram_size = "64 MB"'
    assert [("internal", None), ("external", "ram"), ("external", "device"), ("none", None)] == journals(
        load_text(with_filesystem(minimal, both, table))
    )


@pytest.mark.parametrize(
    ("lines", "tables", "reason"),
    [
        (
            EXTERNAL,
            (f'[journal_device]\ndevice = "{DISK}"\nram_size = "64 MB"',),
            "filesystem[0].journal_device: [journal_device] names a device and RAM",
        ),
        (
            f'{EXTERNAL}journal_device = "device"\n',
            (),
            "filesystem[0].journal_device: 'device' needs device in [journal_device]",
        ),
        (
            f'{EXTERNAL}journal_device = "ram"\n',
            (f'[journal_device]\ndevice = "{DISK}"',),
            "filesystem[0].journal_device: 'ram' needs ram_size in [journal_device]",
        ),
        ('type = "ext4"\njournal_device = "ram"\n', (), "filesystem[0]: found"),
        (EXTERNAL, ("[journal_device]",), "journal_device: found an empty table; allowed is device"),
        (
            EXTERNAL,
            ('[journal_device]\nram_size = "1 MB"',),
            "journal_device.ram_size: found '1 MB'; allowed is",
        ),
        (EXTERNAL, ('[journal_device]\ndevice = "/dev/sdb"',), "journal_device.device: found '/dev/sdb'"),
    ],
)
def test_a_journal_that_has_no_place_is_refused(
    reasons_of: ReasonsOf, minimal: str, lines: str, tables: tuple[str, ...], reason: str
) -> None:
    (found,) = reasons_of(with_filesystem(minimal, lines, *tables))
    assert found.startswith(f"p.toml: {reason}")


def test_the_journal_is_not_the_scratch_device(reasons_of: ReasonsOf, minimal: str) -> None:
    text = with_filesystem(minimal, EXTERNAL, f'[journal_device]\ndevice = "{DISK}"')
    (found,) = reasons_of(text.replace('image_size = "4 GB"', f'device = "{DISK}"'))
    assert found.startswith("p.toml: journal_device.device: it is the scratch device")


def test_a_journal_device_for_nothing_is_told(load_text: LoadText, minimal: str) -> None:
    plan = load_text(f'{minimal}[journal_device]\nram_size = "64 MB"\n')
    assert plan.journal_device is None
    assert plan.digest == load_text(minimal).digest
    assert any("no file system asks for journal" in warning for warning in plan.warnings)


def test_journals_added_to_a_study_are_cells_added_and_a_moved_one_is_an_obstacle(
    load_text: LoadText, minimal: str
) -> None:
    both = 'type = "ext4"\njournal = { vary = ["internal", "external"] }\n'
    internal = load_text(with_filesystem(minimal, 'type = "ext4"\njournal = "internal"\n'))
    larger = load_text(with_filesystem(minimal, both))
    assert () == obstacles_to_extend(internal, larger)
    assert ["cells added"] == [sentence.split(":")[0] for sentence in differences(internal, larger)]
    elsewhere = load_text(with_filesystem(minimal, both, '[journal_device]\nram_size = "1 GB"'))
    assert ("journal_device.ram_size: was 256 MiB, is 1 GiB",) == obstacles_to_extend(larger, elsewhere)
    assert larger.digest != elsewhere.digest


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('kernel = "6.12"', ("6.12",)),
        ('kernel = { vary = ["6.1", "6.12.95+deb12-amd64"] }', ("6.1", "6.12.95+deb12-amd64")),
        ('kernel = "/home/me/linux 6.15-rc1"', ("/home/me/linux 6.15-rc1",)),
    ],
)
def test_a_kernel_is_a_version_a_release_or_a_path(
    load_text: LoadText, edited: Edited, line: str, expected: tuple[str, ...]
) -> None:
    plan = load_text(edited(line, "machine"))
    assert tuple(map(KernelLevels, expected)) == plan.kernels
    assert len({cell.id for cell in plan.cells()}) == len(expected)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("kernel = 6.10", "put it in quotes"),
        ("kernel = 6", "allowed is a version or a release as text"),
        ('kernel = "linux"', "allowed is a version"),
        ('kernel = "6.1 -append init=/bin/sh"', "allowed is a version"),
        ('kernel = "../linux"', "allowed is a version"),
        ('kernel = "/home/../etc"', "no comma, colon, backslash or `..`"),
        ('kernel = "/a,b"', "no comma"),
        ('kernel = "/a:b"', "no comma, colon"),
        ('kernel = "/a\\u0000b"', "no comma"),
    ],
)
def test_what_is_no_kernel_is_refused(reasons_of: ReasonsOf, edited: Edited, line: str, why: str) -> None:
    (found,) = reasons_of(edited(line, "machine"))
    assert found.startswith("p.toml: machine.kernel: found ")
    assert why in found


def test_kernels_count_among_the_cells_that_are_too_many(reasons_of: ReasonsOf, minimal: str) -> None:
    kernels = ", ".join(f'"6.{number}"' for number in range(400))
    blocks = ", ".join(f'"{number}"' for number in range(300))
    text = f"{minimal}[machine]\nkernel = {{ vary = [{kernels}] }}\n[postgresql.settings]\nwork_mem = {{ vary = [{blocks}] }}\n"
    assert "the plan comes to 120000 cells" in reasons_of(text)[0]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("visits_per_boot = 2", "visits_per_boot = 4", "guest.visits_per_boot: was 2, is 4"),
        ('memory = "1 GB"', 'memory = "2 GB"', "guest.memory: was 1 GiB, is 2 GiB"),
    ],
)
def test_another_guest_is_another_study(
    load_text: LoadText, minimal: str, old: str, new: str, expected: str
) -> None:
    text = f'{minimal}[guest]\nvisits_per_boot = 2\nmemory = "1 GB"\n'
    before, after = load_text(text), load_text(text.replace(old, new))
    assert (expected,) == differences(before, after) == obstacles_to_extend(before, after)
    assert before.digest != after.digest


def test_a_canary_in_guests_stays_under_its_kernel(load_text: LoadText, minimal: str) -> None:
    text = f'executor = "qemu"\n{minimal}[machine]\nkernel = KERNELS\n'
    old = load_text(text.replace("KERNELS", '"6.12"'))
    last = load_text(text.replace("KERNELS", '{ vary = ["6.12", "6.1"] }'))
    first = load_text(text.replace("KERNELS", '{ vary = ["6.1", "6.12"] }'))
    assert () == obstacles_to_extend(old, last)
    (obstacle,) = obstacles_to_extend(old, first)
    assert "the canary would move from kernel 6.12 to 6.1; list the kernels that are new last" in obstacle


def test_what_only_some_types_know_is_a_key_by_itself(load_text: LoadText, minimal: str) -> None:
    assert set(feature_levels()) <= set(FilesystemTable.model_fields)
    for name, levels in feature_levels().items():
        kind = next(kind for kind, traits in TRAITS.items() if name in traits.features)
        for level in TRAITS[kind].features[name]:
            written = str(level).lower() if isinstance(level, bool) else f'"{level}"'
            plan = load_text(with_filesystem(minimal, f'type = "{kind}"\n{name} = {written}\n'))
            assert {name: level} == dict(plan.filesystems[0].features)
        assert set(levels) >= set(TRAITS[kind].features[name])


def test_a_level_that_no_type_has_is_refused_with_those_that_some_have(
    reasons_of: ReasonsOf, edited: Edited
) -> None:
    (found,) = reasons_of(edited('nodatacow = "yes"', "filesystem"))
    assert "filesystem[0].nodatacow: found 'yes'; allowed: true, false" in found
    (number,) = reasons_of(edited("nodatacow = 1", "filesystem"))
    assert "allowed: true, false" in number


def test_recordsize_is_the_block_size_of_zfs(
    load_text: LoadText, reasons_of: ReasonsOf, minimal: str
) -> None:
    plan = load_text(with_filesystem(minimal, 'type = "zfs"\nrecordsize = { vary = ["8 kB", "128 kB"] }\n'))
    same = load_text(with_filesystem(minimal, 'type = "zfs"\nblock_size = { vary = ["8 kB", "128 kB"] }\n'))
    assert [FilesystemLevels("zfs", 8192), FilesystemLevels("zfs", 131072)] == list(plan.filesystems)
    assert plan.digest == same.digest
    for lines in (
        'type = "ext4"\nrecordsize = "8 kB"\n',
        'type = "zfs"\nrecordsize = "8 kB"\nblock_size = "8 kB"\n',
    ):
        (found,) = reasons_of(with_filesystem(minimal, lines))
        assert "recordsize is the block_size of zfs" in found


@pytest.mark.parametrize(
    ("kind", "words", "why"),
    [
        ("f2fs", ["-c", "sdb"], "it names further devices"),
        ("f2fs", ["-l", "mine"], "the label is how bedplate knows"),
        ("reiserfs", ["-l", "mine"], "the label is how bedplate knows"),
        ("ntfs3", ["-n"], "it makes no file system"),
        ("ntfs-3g", ["--cluster-size", "512"], "write block_size instead"),
        ("zfs", ["-n"], "it makes no file system"),
        ("zfs", ["-R", "mnt"], "bedplate decides where it is mounted"),
    ],
)
def test_what_mkfs_must_not_be_told_is_refused(
    reasons_of: ReasonsOf, minimal: str, kind: str, words: list[str], why: str
) -> None:
    (found,) = reasons_of(with_filesystem(minimal, f'type = "{kind}"\nmkfs_options = {words}\n'))
    assert f"mkfs option {words[0]} is refused for {kind}: {why}" in found
