"""Aged and filled file systems in a plan: what they make, what is refused, what they take."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.plan.conftest import MACHINE

from bedplate.model.plan import Plan
from bedplate.plan.estimate import estimate
from bedplate.plan.expand import expand
from bedplate.plan.order import order
from bedplate.plan.rules import QEMU, SLURM, Platform
from bedplate.units import GIB

LoadText = Callable[[str], Plan]
ReasonsOf = Callable[[str], tuple[str, ...]]
SMALL_LOG = '[postgresql.settings]\nmax_wal_size = "128MB"\n'


def asking(minimal: str, lines: str, *tables: str) -> str:
    return minimal.replace('type = "ext4"\n', lines) + "".join(tables)


def pruned(plan: Plan) -> list[str]:
    return [reason.sentence for each in expand(plan, MACHINE).pruned for reason in each.reasons]


def test_each_level_is_a_cell_of_its_own_and_says_so(load_text: LoadText, minimal: str) -> None:
    lines = 'type = "xfs"\nfill = { vary = ["no", "90 %"] }\naged = { vary = ["no", "small files"] }\n'
    plan = load_text(asking(minimal, lines, SMALL_LOG))
    assert [] == pruned(plan)
    cells = list(plan.cells())
    assert 4 == len({cell.id for cell in cells}) == len({cell.variant for cell in cells})
    assert {"xfs aged=small files fill=90 %"} <= {cell.variant for cell in cells}
    levels = cells[-1].levels
    assert ("small files", "90 %") == (levels["filesystem.aged"], levels["filesystem.fill"])


def test_a_cell_that_does_not_ask_keeps_its_name(load_text: LoadText, minimal: str) -> None:
    (plain,) = load_text(minimal).cells()
    assert not {name for name in plain.levels if name.endswith((".aged", ".fill"))}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('fill = "90%"', "'90%'"),
        ("fill = 0.9", "0.9"),
        ('fill = "100 %"', "'100 %'"),
        ('aged = "profile"', "'profile'"),
        ("aged = true", "True"),
        ('aged = { vary = ["mixed", "mixed"] }', "listed twice"),
    ],
)
def test_other_levels_are_refused_with_those_there_are(
    reasons_of: ReasonsOf, minimal: str, line: str, said: str
) -> None:
    reasons = " ".join(reasons_of(asking(minimal, f'type = "ext4"\n{line}\n')))
    assert said in reasons
    assert "filesystem[0]" in reasons


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('type = "f2fs"\naged = "mixed"\n', "f2fs has no aged = 'mixed'"),
        ('type = "ext2"\nfill = "90 %"\n', "ext2 has no fill = '90 %'"),
        ('type = "ext4"\njournal = "external"\naged = "mixed"\n', "holds no external journal"),
    ],
)
def test_types_without_a_way_are_pruned(load_text: LoadText, minimal: str, lines: str, said: str) -> None:
    assert any(said in sentence for sentence in pruned(load_text(asking(minimal, lines, SMALL_LOG))))


def test_what_has_no_room_is_pruned_in_sentences(load_text: LoadText, minimal: str) -> None:
    large_log = load_text(asking(minimal, 'type = "ext4"\nfill = "90 %"\n'))
    (sentence,) = pruned(large_log)
    assert "fill: 90 % leaves 410 MiB of 4 GiB" in sentence
    assert "smaller log" in sentence
    # It frees an extent when all of it was overwritten: what one database fits in, two of it do not.
    small_room = SMALL_LOG.replace("128MB", "300MB")
    for name, reasons in (("ext4", 0), ("btrfs", 1)):
        of_type = load_text(asking(minimal, f'type = "{name}"\nfill = "90 %"\n', small_room))
        assert reasons == len(pruned(of_type))
    small = asking(minimal, 'type = "ext4"\nfill = "50 %"\naged = "mixed"\n', SMALL_LOG)
    tight = load_text(small.replace('"4 GB"', '"512 MB"'))
    told = pruned(tight)
    assert any(each.startswith("aged: 'mixed' leaves 205 MiB of 512 MiB") for each in told)
    assert any(each.startswith("fill: the visit needs about") for each in told)
    vast = load_text(asking(minimal, 'type = "ext4"\naged = "mixed"\n').replace('"4 GB"', '"128 GB"'))
    assert any("64 GiB is the most" in each for each in pruned(vast))


def test_a_real_device_can_be_filled_and_not_aged(load_text: LoadText, minimal: str) -> None:
    disk = 'device = "/dev/disk/by-id/nvme-x"'
    aged = asking(minimal, 'type = "ext4"\naged = "mixed"\n').replace('image_size = "4 GB"', disk)
    assert any("old blocks would show through" in each for each in pruned(load_text(aged)))
    filled = asking(minimal, 'type = "ext4"\nfill = "90 %"\n').replace('image_size = "4 GB"', disk)
    assert [] == pruned(load_text(filled))


@pytest.mark.parametrize(
    ("executor", "why"),
    [(QEMU, "which guests do not reach"), (SLURM, "which the nodes of a cluster do not share")],
)
def test_neither_guests_nor_nodes_of_a_cluster_age(
    load_text: LoadText, minimal: str, executor: str, why: str
) -> None:
    plan = load_text(asking(minimal, 'type = "ext4"\naged = "mixed"\n'))
    found = expand(plan, MACHINE, platform=Platform(executor=executor)).pruned
    assert any(why in reason.sentence for each in found for reason in each.reasons)


def test_an_aged_image_is_reckoned_once_for_all_that_stand_on_it(load_text: LoadText, minimal: str) -> None:
    def reckoned(lines: str) -> tuple[int, float]:
        plan = load_text(asking(minimal, lines, SMALL_LOG))
        found = expand(plan, MACHINE)
        told = estimate(plan, found, order(plan, found))
        return told.data_bytes, told.data_seconds

    assert (0, 0.0) == reckoned('type = "ext4"\naged = "no"\n')
    one = reckoned('type = "ext4"\naged = "mixed"\n')
    assert (int(0.15 * 4 * GIB), 40.0) == one
    assert one == reckoned('type = "ext4"\naged = "mixed"\nfill = { vary = ["no", "75 %"] }\n')
    assert one < reckoned('type = "ext4"\naged = { vary = ["mixed", "small files"] }\n')
