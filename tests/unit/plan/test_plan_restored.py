"""`dataset = "restored"` in a plan: which cells share an image, what is refused, what it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.plan.conftest import MACHINE

from bedplate.model.filesystem import deciding
from bedplate.model.plan import Plan
from bedplate.model.visit import LOADED, RESTORED
from bedplate.plan.differences import differences
from bedplate.plan.estimate import estimate
from bedplate.plan.expand import expand
from bedplate.plan.order import order
from bedplate.plan.rules import QEMU, Platform

LoadText = Callable[[str], Plan]
ReasonsOf = Callable[[str], tuple[str, ...]]
WITH_F2FS = replace(MACHINE, filesystems=(*MACHINE.filesystems, "f2fs"))
ASKED = f'dataset = "{RESTORED}"\n'


def asking(minimal: str, lines: str = 'type = "ext4"\n', *tables: str) -> str:
    return ASKED + minimal.replace('type = "ext4"\n', lines) + "".join(tables)


def refused(plan: Plan, platform: Platform | None = None) -> list[str]:
    found = expand(plan, WITH_F2FS, platform=platform)
    return [reason.sentence for each in found.pruned for reason in each.reasons]


def images(plan: Plan) -> int:
    return len({deciding(cell) for cell in plan.cells()})


def test_visits_load_unless_the_plan_says_otherwise(load_text: LoadText, minimal: str) -> None:
    plain, asked = load_text(minimal), load_text(asking(minimal))
    assert (LOADED, RESTORED) == (plain.dataset_by, asked.dataset_by)
    assert plain.digest == replace(asked, dataset_by=LOADED).digest != asked.digest
    assert ("dataset: was loaded, is restored",) == differences(plain, asked)
    assert [LOADED, RESTORED] == [asked.dataset_by_of(canary=canary) for canary in (True, False)]


def test_another_word_is_refused(reasons_of: ReasonsOf, minimal: str) -> None:
    assert "allowed: loaded, restored" in " ".join(reasons_of('dataset = "copied"\n' + minimal))


@pytest.mark.parametrize(
    ("lines", "tables", "count"),
    [
        ('type = "ext4"\nbarrier = { vary = [true, false] }\n', "", 1),
        ('type = "ext4"\nmount_options = { vary = [["noatime"], ["relatime", "commit=30"]] }\n', "", 1),
        ('type = "ext4"\ndata = { vary = ["ordered", "writeback", "journal"] }\n', "", 2),
        ('type = "btrfs"\nnodatacow = { vary = [true, false] }\n', "", 2),
        ('type = "btrfs"\nmount_options = { vary = [["noatime"], ["compress=zstd"]] }\n', "", 2),
        ('type = "ext4"\nmount_options = { vary = [["noatime"], ["nodelalloc"]] }\n', "", 2),
        ('type = "xfs"\nblock_size = { vary = ["1 kB", "4 kB"] }\n', "", 2),
        ('type = "xfs"\n', '[postgresql.settings]\nshared_buffers = { vary = ["64MB", "128MB"] }\n', 1),
        ('type = "xfs"\n', '[postgresql.settings]\nmax_wal_size = { vary = ["1GB", "2GB"] }\n', 2),
        ('type = "xfs"\n', '[postgresql.settings]\nfsync = { vary = ["on", "off"] }\n', 2),
        ('type = "xfs"\n', '[postgresql]\nblock_size = { vary = ["4 kB", "8 kB"] }\n', 2),
        ('type = "xfs"\n', '[machine]\nmemory = { vary = ["1 GB", "2 GB"] }\n', 2),
    ],
)
def test_cells_share_an_image_unless_a_difference_may_show_in_the_files(
    load_text: LoadText, minimal: str, lines: str, tables: str, count: int
) -> None:
    assert count == images(load_text(asking(minimal, lines, tables)))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('type = "f2fs"\n', "on f2fs a restored dataset was never tried"),
        ('type = "ext4"\njournal = "external"\n', "holds no external journal"),
        ('type = "ext4"\nfill = "50 %"\n', "so the visit must load it"),
    ],
)
def test_what_an_image_cannot_hold_is_pruned_with_the_reason(
    load_text: LoadText, minimal: str, lines: str, said: str
) -> None:
    assert [each for each in refused(load_text(asking(minimal, lines))) if said in each]
    assert not [
        each for each in refused(load_text(minimal.replace('type = "ext4"\n', lines))) if said in each
    ]


def test_real_devices_guests_and_measured_loads_are_pruned(load_text: LoadText, minimal: str) -> None:
    device = asking(minimal).replace('image_size = "4 GB"', 'device = "/dev/disk/by-id/nvme-x"')
    assert any("old blocks would show through" in each for each in refused(load_text(device)))
    guests = refused(load_text(asking(minimal)), Platform(executor=QEMU))
    assert any("which guests and nodes do not reach" in each for each in guests)
    loads = asking(minimal).partition("[[workload]]")[0] + '[[workload]]\ntype = "tpch"\nscale_factor = 0.1\n'
    assert any("is not loaded before its runs" in each for each in refused(load_text(loads)))
    untorn = asking(minimal, 'type = "xfs"\n') + (
        '[postgresql]\nuntorn_writes = "on"\n[postgresql.settings]\ndebug_io_direct = "data"\n'
    )
    assert any("untorn_writes" in each for each in refused(load_text(untorn)))


def test_a_memory_that_holds_less_than_the_data_is_said(load_text: LoadText, minimal: str) -> None:
    def said(text: str) -> list[str]:
        return [each for each in expand(load_text(text), MACHINE).warnings if "from loaded ones" in each]

    small, large = (f'[machine]\nmemory = "{size}"\n' for size in ("256 MB", "2 GB"))
    grown = minimal.replace("scale = 10", "scale = 50")
    assert grown != minimal
    (words,) = said(asking(grown, 'type = { vary = ["ext4", "xfs"] }\n', small))
    assert "more than the memory of 256 MiB" in words
    assert not said(asking(grown, 'type = "ext4"\n', large))
    assert not said(asking(minimal, 'type = "ext4"\n', small))
    assert not said(grown + small)


def test_an_image_is_reckoned_once_and_its_loads_are_not(load_text: LoadText, minimal: str) -> None:
    slow = '[machine]\nmemory = "1 GB"\n'
    lines = 'type = "ext4"\nbarrier = { vary = [true, false] }\n'
    throttled = minimal.replace('image_size = "4 GB"', 'image_size = "4 GB"\nthrottle = "hdd-7200"')

    def reckoned(text: str) -> tuple[float, int, float]:
        plan = load_text(text)
        found = expand(plan, MACHINE)
        told = estimate(plan, found, order(plan, found))
        return told.seconds, told.data_bytes, told.data_seconds

    seconds, data_bytes, data_seconds = reckoned(throttled.replace('type = "ext4"\n', lines) + slow)
    assert (0, 0.0) == (data_bytes, data_seconds)
    restored_seconds, kept_bytes, making_seconds = reckoned(asking(throttled, lines, slow))
    assert restored_seconds < seconds
    assert kept_bytes > 0
    assert making_seconds > 0
    assert (kept_bytes, making_seconds) == reckoned(asking(throttled, 'type = "ext4"\n', slow))[1:]
