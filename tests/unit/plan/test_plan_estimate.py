from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bedplate.engines.postgresql.model import DATABASE_BLOCK_SIZES
from bedplate.engines.postgresql.visit import needed_duration_s
from bedplate.errors import PlanError
from bedplate.model.machine import Machine
from bedplate.model.plan import DatasetScale, Plan
from bedplate.plan.estimate import device_bytes_needed, estimate
from bedplate.plan.expand import expand
from bedplate.plan.order import order
from bedplate.workloads.pgbench.plan import bytes_per_scale, scale_units

GIB = 2**30
MIB = 2**20
LoadText = Callable[[str], Plan]
Edited = Callable[..., str]


def test_the_size_of_a_database_agrees_with_what_was_measured() -> None:
    # pg_total_relation_size of pgbench_accounts at scale 20, PostgreSQL 15, 8 kB: 14.956 MiB each.
    assert bytes_per_scale(8192) / MIB == pytest.approx(14.956, rel=0.005)


def test_small_pages_hold_fewer_rows() -> None:
    sizes = [bytes_per_scale(block) for block in DATABASE_BLOCK_SIZES]
    assert sorted(sizes, reverse=True) == sizes
    assert 1.05 < sizes[0] / sizes[3] < 1.15


@pytest.mark.parametrize("memory", [GIB // 4, GIB, 24 * GIB])
def test_a_multiple_of_the_memory_is_reached_at_every_block_size(memory: int) -> None:
    units = scale_units(DatasetScale(times_memory=4.0), memory)
    for block in DATABASE_BLOCK_SIZES:
        assert 4 * memory <= units * bytes_per_scale(block) <= 4.5 * memory + bytes_per_scale(block)


def test_the_scale_follows_the_memory_limit_and_is_one_for_all_block_sizes(
    load_text: LoadText, edited: Edited
) -> None:
    text = edited('scale = "2x memory"', "workload") + (
        '\n[machine]\nmemory = { vary = ["1 GB", "2 GB"] }\n'
        '[postgresql]\nblock_size = { vary = ["1 kB", "32 kB"] }\n'
    )
    expansion = expand(load_text(text), None)
    scales = {
        (planned.cell.device.memory_bytes, planned.loads[0].dataset.levels["scale"])
        for planned in expansion.cells
    }
    assert {(GIB, 139), (2 * GIB, 278)} == scales


def test_the_scale_does_not_change_with_what_a_kernel_reserves(
    load_text: LoadText, edited: Edited, machine: Callable[..., Machine]
) -> None:
    plan = load_text(edited('scale = "1x memory"', "workload"))
    first = expand(plan, machine(memory_bytes=24 * GIB - 500 * MIB // 2))
    second = expand(plan, machine(memory_bytes=24 * GIB - 12345))
    assert first.cells == second.cells


def test_a_multiple_of_an_unknown_memory_is_an_error_with_the_way_out(
    load_text: LoadText, edited: Edited
) -> None:
    with pytest.raises(PlanError, match=r"\[machine\] memory"):
        expand(load_text(edited('scale = "1x memory"', "workload")), None)


def test_two_scales_that_come_to_one_dataset_are_an_error(load_text: LoadText, edited: Edited) -> None:
    text = edited('scale = { vary = [139, "2x memory"] }', "workload") + '\n[machine]\nmemory = "1 GB"\n'
    with pytest.raises(PlanError, match="two scales come to 139"):
        expand(load_text(text), None)


def test_an_estimate_counts_visits_canaries_and_measured_time(load_text: LoadText, minimal: str) -> None:
    plan = load_text(minimal)
    expansion = expand(plan, None)
    found = estimate(plan, expansion, order(plan, expansion))
    assert (5, 2) == (found.visits, found.canary_visits)
    assert 5 * 10 + 2 * 8 == found.measured_seconds
    assert 5 * 40 + 2 * 10 < found.seconds < 5 * 70 + 2 * 25
    assert 4 * GIB == found.image_bytes


def test_a_canary_visit_stays_short_whatever_the_image(load_text: LoadText, edited: Edited) -> None:
    plan = load_text(edited('image_size = "500 GB"', "scratch_device"))
    expansion = expand(plan, None)
    visits = tuple(visit for visit in order(plan, expansion).visits if visit.canary)
    schedule = type(order(plan, expansion))(1, 0, visits)
    assert estimate(plan, expansion, schedule).seconds / len(visits) <= 25


def test_a_throttled_load_is_reckoned_from_its_limits(load_text: LoadText, edited: Edited) -> None:
    text = edited("scale = 100", "workload")
    slow = text.replace(
        'image_size = "4 GB"', 'image_size = "4 GB"\nthrottle = { write_bandwidth = "10 MB" }'
    )
    seconds = []
    for each in (text, slow):
        plan = load_text(each)
        expansion = expand(plan, None)
        seconds.append(estimate(plan, expansion, order(plan, expansion)).seconds)
    # 100 units are 1.5 GB, written twice at 10 MB/s, in five repetitions.
    assert seconds[1] - seconds[0] > 5 * 250


def test_an_image_that_is_too_small_is_said(load_text: LoadText, edited: Edited) -> None:
    plan = load_text(edited("scale = 1000", "workload"))
    (warning,) = expand(plan, None).warnings
    assert warning.startswith("scratch_device.image_size: 4 GiB may not hold the largest visit")


@pytest.mark.parametrize(("setting", "bytes_of_wal"), [('"2GB"', 2 * GIB), ("512", 512 * MIB), ('"?"', GIB)])
def test_room_for_the_wal_follows_its_setting(
    load_text: LoadText, minimal: str, setting: str, bytes_of_wal: int
) -> None:
    expansion = expand(load_text(f"{minimal}[postgresql.settings]\nmax_wal_size = {setting}\n"), None)
    planned = expansion.cells[0]
    needed = device_bytes_needed(planned.cell, planned.loads[0])
    assert needed == pytest.approx(bytes_of_wal + 10 * 15 * MIB, abs=250 * MIB)


def _writing(minimal: str, run: str, settings: str = "") -> str:
    text = minimal.replace('script = "read-only"\nduration = "10 s"', run)
    return f"{text}[postgresql.settings]\n{settings}\n"


@pytest.mark.parametrize(
    ("run", "settings", "enough"),
    [
        # The defaults: 300 s, then 0.9 x 300 s and 15 s for syncing, from which the warm-up is taken.
        ("warmup = 30\nduration = 555", "", True),
        ("warmup = 30\nduration = 554", "", False),
        ("warmup = 5\nduration = 40", 'checkpoint_timeout = "30s"\ncheckpoint_completion_target = 0.3', True),
        (
            "warmup = 5\nduration = 36",
            'checkpoint_timeout = "30s"\ncheckpoint_completion_target = 0.3',
            False,
        ),
        # A warm-up longer than the timeout: the next checkpoint but one is the first that counts.
        ("warmup = 31\nduration = 40", "checkpoint_timeout = 30\ncheckpoint_completion_target = 0.3", False),
        ("warmup = 31\nduration = 41", "checkpoint_timeout = 30\ncheckpoint_completion_target = 0.3", True),
        (
            'warmup = "until steady"\nduration = 41',
            "checkpoint_timeout = 30\ncheckpoint_completion_target = 0.3",
            False,
        ),
        (
            'warmup = "until steady"\nduration = 42',
            "checkpoint_timeout = 30\ncheckpoint_completion_target = 0.3",
            True,
        ),
    ],
)
def test_warns_of_a_run_that_holds_no_whole_checkpoint(
    load_text: LoadText, minimal: str, run: str, settings: str, enough: bool
) -> None:
    plan = load_text(_writing(minimal, f'script = "read-write"\n{run}', settings))
    assert enough == (plan.warnings == ())
    if not enough:
        assert "run read-write" in plan.warnings[0]
        assert "suspect" in plan.warnings[0]


def test_the_duration_that_a_warning_names_is_enough(load_text: LoadText, minimal: str) -> None:
    plan = load_text(_writing(minimal, 'script = "read-write"\nwarmup = 7\nduration = 10'))
    named = int(plan.warnings[0].split("duration = ")[1].split(" ")[0])
    enough = load_text(_writing(minimal, f'script = "read-write"\nwarmup = 7\nduration = {named}'))
    assert enough.warnings == ()


def test_an_own_configuration_decides_the_checkpoint_too(
    load_text: LoadText, minimal: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.conf").write_text(
        "checkpoint_timeout = 1h\ncheckpoint_timeout = '30s' # last\n checkpoint_completion_target 0.5\n"
    )
    plan = load_text(f'{minimal}[postgresql]\nconfiguration = "mine.conf"\n')
    assert 45 + 3 - 10 == needed_duration_s(plan.clusters[0], 10.0)


def test_a_read_only_run_needs_no_checkpoint(load_text: LoadText, minimal: str) -> None:
    assert load_text(minimal).warnings == ()


def test_warns_of_more_clients_than_branches(load_text: LoadText, minimal: str) -> None:
    plan = load_text(_writing(minimal, 'script = "read-write"\nclients = 20\nduration = 600'))
    assert any("20 clients on scale 10" in warning for warning in plan.warnings)


@pytest.mark.parametrize("workload", ["power_cut", "faulty_disk"])
def test_cases_are_counted_and_need_no_repetitions_for_a_verdict(load_text: LoadText, workload: str) -> None:
    plan = f'repetitions = 1\n[[filesystem]]\ntype = "ext4"\n[[workload]]\ntype = "{workload}"\n'
    assert () == load_text(plan).warnings
    (beside,) = load_text(plan + '[[workload]]\ntype = "microbenchmark"\nentries = 1000\n').warnings
    assert "bedplate run STUDY --repetitions" in beside


def test_warns_that_two_repetitions_give_no_verdict(load_text: LoadText, edited: Edited) -> None:
    (warning,) = load_text(edited("repetitions = 2")).warnings
    assert "bedplate run STUDY --repetitions" in warning


@pytest.mark.parametrize(
    ("device", "warns"),
    [
        ('throttle = "hdd-7200"', True),
        ('throttle = "sata-ssd"', False),
        ('latency = "hdd-7200"', False),
        ("", False),
    ],
)
def test_warns_of_a_slow_throttle_below_a_journal_of_data(
    load_text: LoadText, device: str, warns: bool
) -> None:
    plan = (
        f'repetitions = 5\n[scratch_device]\nimage_size = "1 GB"\n{device}\n[[filesystem]]\ntype = "ext4"\n'
        'data = { vary = ["ordered", "journal"] }\n[[workload]]\ntype = "microbenchmark"\nentries = 1000\n'
    )
    assert warns == any("`latency`" in warning for warning in load_text(plan).warnings)
    assert not any("`latency`" in warning for warning in load_text(plan.replace(', "journal"', "")).warnings)


@pytest.mark.parametrize(
    ("device", "canaries", "room"),
    [("", True, 3 * GIB), ('latency = "gp3"', True, GIB), ('latency = "gp3"', False, None)],
)
def test_a_device_with_latency_takes_room_on_the_disk_for_canaries_alone(
    load_text: LoadText, edited: Edited, device: str, canaries: bool, room: int | None
) -> None:
    text = edited(f'image_size = "3 GB"\n{device}', "scratch_device")
    plan = load_text(f"{text}\n[canary]\nenabled = {str(canaries).lower()}\n")
    expansion = expand(plan, None)
    assert room == estimate(plan, expansion, order(plan, expansion)).image_bytes
