"""Boots: what shares one, in which order they come, and what an extension leaves alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.model.cell import FilesystemLevels, KernelLevels
from bedplate.model.plan import Canary, Expansion, GuestPlan, Plan, Schedule, ScheduledVisit
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import drawn_boots, order
from bedplate.plan.rules import LOCAL, QEMU, Platform

LoadText = Callable[[str], Plan]
Kind = tuple[str | None, int | None]


def a_plan(
    cells: int, *, repetitions: int = 2, kernels: tuple[str, ...] = (), memories: int = 1, per_boot: int = 3
) -> Plan:
    """A plan of `cells` times kernels times memories."""
    text = f"""
title = "boots"
repetitions = {repetitions}
[scratch_device]
image_size = "1 GB"
[machine]
memory = {{ vary = {[f"{n + 1} GB" for n in range(memories)]} }}
{f"kernel = {{ vary = {list(kernels)} }}" if kernels else ""}
[guest]
visits_per_boot = {per_boot}
[[filesystem]]
type = "ext4"
[postgresql.settings]
work_mem = {{ vary = {list(range(cells))} }}
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
duration = 1
"""
    return load_plan(text, source="p.toml", directory=Path("/nonexistent"))


def in_guests(plan: Plan) -> Expansion:
    return expand(plan, None, platform=Platform(QEMU))


def drawn(plan: Plan, *, seed: int | None = None, standing: Schedule | None = None) -> Schedule:
    return order(plan, in_guests(plan), seed, executor=QEMU, schedule=standing)


def kind_of(plan: Plan, visit: ScheduledVisit) -> Kind:
    cell, _ = in_guests(plan).find(visit.cell_id, visit.dataset_id, canary=visit.canary)
    return cell.kernel.release, cell.device.memory_bytes


def plain(schedule: Schedule) -> list[ScheduledVisit]:
    return [visit for visit in schedule.visits if not visit.canary]


def place(visit: ScheduledVisit) -> tuple[str, int]:
    return visit.cell_id, visit.repetition


@settings(deadline=None)
@given(
    cells=st.integers(1, 14),
    repetitions=st.integers(1, 3),
    kernels=st.sampled_from([(), ("6.1",), ("6.1", "6.12"), ("5.10", "6.1", "6.12")]),
    memories=st.integers(1, 2),
    per_boot=st.integers(1, 9),
    seed=st.integers(0, 2**53 - 1),
)
def test_a_boot_is_a_handful_of_one_kind_and_repetitions_stay_complete_blocks(
    *, cells: int, repetitions: int, kernels: tuple[str, ...], memories: int, per_boot: int, seed: int
) -> None:
    plan = a_plan(cells, repetitions=repetitions, kernels=kernels, memories=memories, per_boot=per_boot)
    expansion = in_guests(plan)
    schedule = order(plan, expansion, seed, executor=QEMU)
    visits = plain(schedule)
    every = {planned.cell.id for planned in expansion.cells}
    in_time = [visit.repetition for visit in visits]
    assert sorted(in_time) == in_time
    for _, block in groupby(visits, key=lambda visit: visit.repetition):
        assert dict.fromkeys(every, 1) == Counter(visit.cell_id for visit in block)
    kinds = {planned.cell.id: planned.cell for planned in expansion.cells}
    runs = [(boot, list(shared)) for boot, shared in groupby(schedule.visits, key=lambda visit: visit.boot)]
    # Contiguous: no boot is left and come back to, and a canary has one of its own.
    assert len(runs) == len({boot for boot, _ in runs})
    for boot, shared in runs:
        assert boot is not None
        assert len(shared) <= per_boot
        assert len({visit.repetition for visit in shared}) == 1
        if any(visit.canary for visit in shared):
            assert len(shared) == 1
            continue
        cells_of_boot = [kinds[visit.cell_id] for visit in shared]
        assert len({(cell.kernel, cell.device.memory_bytes) for cell in cells_of_boot}) == 1
    # As few boots as the kinds allow: a study is not slower than it must be.
    needed = repetitions * max(1, len(kernels)) * memories * -(-cells // per_boot)
    assert needed == len({visit.boot for visit in visits})
    assert list(range(len(schedule.visits))) == [visit.index for visit in schedule.visits]


@settings(deadline=None)
@given(cells=st.integers(1, 20), per_boot=st.integers(1, 9), seed=st.integers(0, 2**53 - 1))
def test_with_one_kind_the_order_is_that_without_boots(cells: int, per_boot: int, seed: int) -> None:
    plan = a_plan(cells, per_boot=per_boot)
    without = order(plan, expand(plan, None), seed)
    with_boots = drawn(plan, seed=seed)
    assert [place(visit) for visit in plain(without)] == [place(visit) for visit in plain(with_boots)]


def test_boots_of_two_kernels_come_in_a_random_order() -> None:
    plan = a_plan(4, repetitions=400, kernels=("6.1", "6.12"), per_boot=2)
    expansion = in_guests(plan)
    kernels = {planned.cell.id: planned.cell.kernel.release for planned in expansion.cells}
    patterns: Counter[str] = Counter()
    for _, block in groupby(plain(order(plan, expansion, 1, executor=QEMU)), key=lambda v: v.repetition):
        boots = [next(shared) for _, shared in groupby(block, key=lambda v: v.boot)]
        patterns["".join("a" if kernels[boot.cell_id] == "6.1" else "b" for boot in boots)] += 1
    # Two boots each: six patterns, 400 draws, 67 each with a deviation of 7.5; four of them either way.
    assert {"aabb", "abab", "abba", "baab", "baba", "bbaa"} == set(patterns)
    assert all(37 <= count <= 97 for count in patterns.values())


def test_who_shares_a_boot_with_whom_is_random() -> None:
    plan = a_plan(6, repetitions=900, per_boot=2)
    expansion = in_guests(plan)
    first, *others = sorted(planned.cell.id for planned in expansion.cells)
    partners: Counter[str] = Counter()
    for _, shared in groupby(plain(order(plan, expansion, 1, executor=QEMU)), key=lambda v: v.boot):
        cells = [visit.cell_id for visit in shared]
        if first in cells:
            partners.update(cell for cell in cells if cell != first)
    # Five partners in 900 draws: 180 each, deviation 12; four of them either way.
    assert set(others) == set(partners)
    assert all(132 <= count <= 228 for count in partners.values())


@settings(deadline=None)  # another load of the machine is no failure
@given(
    cells=st.integers(1, 10),
    more=st.integers(0, 6),
    repetitions=st.integers(1, 3),
    added=st.integers(0, 2),
    kernels=st.integers(1, 2),
    extra_kernel=st.booleans(),
)
def test_an_extension_moves_nothing_of_what_stands(
    *, cells: int, more: int, repetitions: int, added: int, kernels: int, extra_kernel: bool
) -> None:
    names = ("6.1", "6.12", "7.2")
    small = a_plan(cells, repetitions=repetitions, kernels=names[:kernels])
    large = a_plan(cells + more, repetitions=repetitions + added, kernels=names[: kernels + extra_kernel])
    before = drawn(small)
    after = drawn(large, standing=before)
    stood = {place(visit): visit.boot for visit in plain(before)}
    kept = [visit for visit in plain(after) if place(visit) in stood]
    assert [place(visit) for visit in plain(before)] == [place(visit) for visit in kept]
    assert stood == {place(visit): visit.boot for visit in kept}
    # What is new shares no boot with what stands, and is all there.
    new = [visit for visit in plain(after) if place(visit) not in stood]
    assert not {visit.boot for visit in new} & {visit.boot for visit in before.visits}
    assert len(plain(after)) == (cells + more) * (repetitions + added) * (kernels + extra_kernel)
    assert max(Counter(visit.boot for visit in after.visits).values()) <= 3
    # Canaries too keep their boots, and nobody else's.
    had = {visit.repetition: visit.boot for visit in before.visits if visit.canary}
    has = {visit.repetition: visit.boot for visit in after.visits if visit.canary}
    assert had == {number: has[number] for number in had}
    assert not set(has.values()) & {visit.boot for visit in plain(after)}


def test_an_extension_by_nothing_changes_nothing() -> None:
    plan = replace(a_plan(7, kernels=("6.1", "6.12")), canary=Canary(every_s=60.0))
    once = drawn(plan)
    assert once == drawn(plan, standing=once)


def test_new_boots_come_at_random_places_between_those_that_stand() -> None:
    small, large = a_plan(6, repetitions=300), a_plan(7, repetitions=300)
    before = drawn(small)
    known = {visit.cell_id for visit in before.visits}
    places: Counter[int] = Counter()
    for _, block in groupby(plain(drawn(large, standing=before)), key=lambda v: v.repetition):
        boots = [next(shared) for _, shared in groupby(block, key=lambda v: v.boot)]
        places[[boot.cell_id in known for boot in boots].index(False)] += 1
    # Two boots stand: before, between or after, 100 each with a deviation of 8; four of them either way.
    assert {0, 1, 2} == set(places)
    assert all(68 <= count <= 132 for count in places.values())


def test_no_canary_comes_within_a_boot() -> None:
    plan = replace(a_plan(9, per_boot=4), canary=Canary(every_s=60.0))
    kinds = "".join("c" if visit.canary else "v" for visit in drawn(plan).visits)
    # A visit is reckoned at 82 s, so that a canary would come before each.
    assert kinds == "cvvvvcvvvvcv" * 2 + "c"


def test_a_boot_takes_its_time() -> None:
    few, many = a_plan(8, per_boot=8, repetitions=1), a_plan(8, per_boot=1, repetitions=1)
    assert len({visit.boot for visit in drawn(many).visits}) == 8 + 2
    assert len({visit.boot for visit in drawn(few).visits}) == 1 + 2


def test_by_hand_a_kernel_is_booted_once_in_a_repetition() -> None:
    plan = a_plan(5, repetitions=200, kernels=("6.1", "6.12"))
    expansion = expand(plan, None)
    kernels = {planned.cell.id: planned.cell.kernel.release for planned in expansion.cells}
    firsts: Counter[str | None] = Counter()
    for _, block in groupby(plain(order(plan, expansion, executor=LOCAL)), key=lambda v: v.repetition):
        runs = [kernel for kernel, _ in groupby(kernels[visit.cell_id] for visit in block)]
        assert {"6.1", "6.12"} == set(runs)
        assert len(runs) == 2
        firsts[runs[0]] += 1
    # 100 each with a deviation of 7; four of them either way.
    assert all(72 <= count <= 128 for count in firsts.values())


def test_by_hand_what_is_added_moves_nothing_past_anything() -> None:
    small = a_plan(5, repetitions=3, kernels=("6.1", "6.12"))
    large = replace(
        a_plan(5, repetitions=4, kernels=("6.1", "6.12", "7.2")),
        filesystems=(FilesystemLevels("ext4"), FilesystemLevels("xfs")),
    )
    before = [place(visit) for visit in plain(order(small, expand(small, None)))]
    after = [place(visit) for visit in plain(order(large, expand(large, None)))]
    assert before == [one for one in after if one in set(before)]


def test_without_kernels_nothing_is_booted(load_text: LoadText, minimal: str) -> None:
    plan = load_text(minimal)
    assert {None} == {visit.boot for visit in order(plan, expand(plan, None)).visits}


def test_a_visit_that_is_no_longer_asked_for_leaves_its_boot() -> None:
    plan = a_plan(3, per_boot=3, repetitions=1)
    schedule = drawn(plan)
    fewer = a_plan(2, per_boot=3, repetitions=1)
    left = drawn(fewer, standing=schedule)
    assert {visit.cell_id for visit in plain(left)} == {cell.cell.id for cell in in_guests(fewer).cells}


def test_boots_are_numbered_from_one_in_their_order() -> None:
    ranked = {1: (), 2: ()}
    assert [(1, ()), (2, ())] == list(drawn_boots(ranked, 8, seed=1, schedule=None))
    plan = replace(a_plan(4, per_boot=2, repetitions=2), canary=Canary(enabled=False))
    assert [1, 1, 2, 2, 3, 3, 4, 4] == [visit.boot for visit in drawn(plan).visits]


def test_guests_and_kernels_are_part_of_a_plan(load_text: LoadText, minimal: str) -> None:
    plan = load_text(f'{minimal}[guest]\nvisits_per_boot = 2\nmemory = "1 GB"\n[machine]\nkernel = "6.12"\n')
    assert GuestPlan(2, 2**30) == plan.guest
    assert (KernelLevels("6.12"),) == plan.kernels
    assert plan.digest != load_text(minimal).digest
