"""Effects of factors, on designs whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.model.levels import Scalar
from bedplate.statistics.design import DesignCell, Lack, design
from bedplate.statistics.effects import FILESYSTEM, Effect, Effects, Interaction, effects

Truth = Callable[[Mapping[str, Scalar]], float]
BLOCK, BARRIER, DATA = "build.block_size_bytes", "filesystem.barrier", "filesystem.data"


def cells(
    levels: Iterator[Mapping[str, Scalar]] | list[Mapping[str, Scalar]],
    truth: Truth,
    *,
    repetitions: int = 5,
    scatter: float = 0.0,
    seed: int = 1,
) -> list[DesignCell]:
    """Cells whose values are the truth, times a factor of their repetition, times the scatter of a run."""
    random = np.random.default_rng(seed)
    shifts = random.normal(0, 0.2, repetitions)
    return [
        DesignCell(
            found,
            {
                r: truth(found) * math.exp(shifts[r - 1] + random.normal(0, scatter))
                for r in range(1, repetitions + 1)
            },
            frozenset(name for name, level in found.items() if USUAL.get(name) == level),
        )
        for found in levels
    ]


def crossed(**factors: tuple[Scalar, ...]) -> list[Mapping[str, Scalar]]:
    names = {"kind": FILESYSTEM, "block": BLOCK, "barrier": BARRIER}
    keys = [names.get(name, name) for name in factors]
    return [dict(zip(keys, chosen, strict=True)) for chosen in product(*factors.values())]


def effect(found: Effects, factor: str, level: Scalar, baseline: Scalar) -> Effect:
    (only,) = (e for e in found.effects if (e.factor, e.level, e.baseline) == (factor, level, baseline))
    return only


def interaction(found: Effects, factor: str, by: str) -> Interaction:
    (only,) = (i for i in found.interactions if {factor, by} == {i.factor, i.by})
    return only


def small_blocks_help_without_barriers(levels: Mapping[str, Scalar]) -> float:
    gain = 2.0 if levels[BLOCK] == 2048 and not levels[BARRIER] else 1.0
    return 1000 * gain * (1.3 if levels[FILESYSTEM] == "xfs" else 1.0)


def test_ratios_and_interactions_without_scatter_are_the_truth() -> None:
    levels = crossed(kind=("ext4", "xfs"), block=(8192, 2048), barrier=(True, False))
    (found,) = effects(cells(levels, small_blocks_help_without_barriers))
    kind = effect(found, FILESYSTEM, "xfs", "ext4")
    assert kind.ratio == pytest.approx(1.3)
    assert (4, (), ()) == (kind.strata, kind.held, kind.differs)
    # Numbers stand in their order; the mean of no gain and a twofold one is geometric.
    assert effect(found, BLOCK, 8192, 2048).ratio == pytest.approx(1 / math.sqrt(2))
    both = interaction(found, BLOCK, BARRIER)
    assert (8192, 2048, True, False) == (both.level, both.baseline, both.at, both.against)
    assert (1.0, 0.5, 2.0) == pytest.approx((both.ratio_at, both.ratio_against, both.ratio))
    assert interaction(found, FILESYSTEM, BLOCK).ratio == pytest.approx(1.0)
    assert (None, (), ()) == (found.within, found.aliases, found.unmatched)


def test_what_is_real_is_told_from_what_is_not() -> None:
    levels = crossed(kind=("ext4", "xfs", "jfs"), block=(2048, 8192), barrier=(True, False))
    (found,) = effects(cells(levels, small_blocks_help_without_barriers, scatter=0.02))
    assert effect(found, FILESYSTEM, "xfs", "ext4").judged.is_told_apart
    assert not effect(found, FILESYSTEM, "jfs", "ext4").judged.is_told_apart
    assert interaction(found, BLOCK, BARRIER).judged.is_told_apart
    others = [i for i in found.interactions if {i.factor, i.by} != {BLOCK, BARRIER}]
    assert 6 == len(others)
    assert not any(i.judged.is_told_apart for i in others)
    assert (one := effect(found, FILESYSTEM, "xfs", "ext4").judged.confidence) is not None
    assert one > 0.95


USUAL = {DATA: "ordered", "filesystem.nodatacow": False, BARRIER: True}


def nested_levels() -> Iterator[Mapping[str, Scalar]]:
    for block in (2048, 8192):
        yield {FILESYSTEM: "xfs", BLOCK: block}
        for data in ("ordered", "journal"):
            yield {FILESYSTEM: "ext4", BLOCK: block, DATA: data}
        for nodatacow in (True, False):
            yield {FILESYSTEM: "btrfs", BLOCK: block, "filesystem.nodatacow": nodatacow}


def nested_truth(levels: Mapping[str, Scalar]) -> float:
    slow = 0.5 if levels.get(DATA) == "journal" else 1.0
    fast = 3.0 if levels.get("filesystem.nodatacow") is True else 1.0
    return slow * fast * (1.2 if levels[BLOCK] == 8192 else 1.0)


def nested_truth_without_blocks(levels: Mapping[str, Scalar]) -> float:
    return nested_truth({**levels, BLOCK: 2048})


def test_a_factor_of_one_file_system_is_judged_within_it() -> None:
    whole, ext4, btrfs = effects(cells(nested_levels(), nested_truth))
    assert {FILESYSTEM, BLOCK} == {e.factor for e in whole.effects}
    assert (FILESYSTEM, "ext4") == ext4.within
    assert effect(ext4, DATA, "journal", "ordered").ratio == pytest.approx(0.5)
    assert {DATA, BLOCK} == {e.factor for e in ext4.effects}
    assert (FILESYSTEM, "btrfs") == btrfs.within
    assert 4 == btrfs.cells
    assert effect(whole, BLOCK, 8192, 2048).ratio == pytest.approx(1.2)


def test_what_only_one_side_has_is_held_at_its_usual_level_and_named() -> None:
    whole = effects(cells(nested_levels(), nested_truth))[0]
    kind = effect(whole, FILESYSTEM, "ext4", "xfs")
    assert (((DATA, "ordered"),), ()) == (kind.held, kind.differs)
    assert kind.ratio == pytest.approx(1.0)
    both = effect(whole, FILESYSTEM, "btrfs", "ext4")
    assert ((DATA, "ordered"), ("filesystem.nodatacow", False)) == tuple(sorted(both.held))
    assert both.ratio == pytest.approx(1.0)


def test_without_a_usual_level_there_is_no_ratio_and_the_factor_is_named() -> None:
    levels: list[Mapping[str, Scalar]] = [{FILESYSTEM: "xfs"}]
    levels += [{FILESYSTEM: "ext4", DATA: data} for data in ("writeback", "journal")]
    whole, within = effects(cells(levels, nested_truth_without_blocks))
    assert () == whole.effects
    assert [(FILESYSTEM, Lack.NO_USUAL_LEVEL, (DATA,))] == [
        (each.factor, each.lack, each.factors) for each in whole.unmatched
    ]
    assert effect(within, DATA, "journal", "writeback").ratio == pytest.approx(0.5)


def test_an_unusual_level_that_all_of_one_side_has_is_told() -> None:
    levels: list[Mapping[str, Scalar]] = [{FILESYSTEM: "xfs"}, {FILESYSTEM: "ext4", DATA: "journal"}]
    (whole,) = effects(cells(levels, nested_truth_without_blocks))
    kind = effect(whole, FILESYSTEM, "ext4", "xfs")
    assert ((), ((DATA, ("journal",)),)) == (kind.held, kind.differs)


def test_a_factor_that_goes_with_another_is_told_where_that_one_is_compared() -> None:
    levels: list[Mapping[str, Scalar]] = [
        {FILESYSTEM: kind, "filesystem.mount_options": options, BLOCK: block}
        for kind, options in (("ext4", "noatime"), ("xfs", "noatime,discard"))
        for block in (2048, 8192)
    ]
    (whole,) = effects(cells(levels, lambda _: 1.0))
    kind = effect(whole, FILESYSTEM, "xfs", "ext4")
    assert (("filesystem.mount_options", ("noatime,discard", "noatime")),) == kind.differs
    assert () == effect(whole, BLOCK, 8192, 2048).differs


def test_limits_of_a_throttle_belong_to_it() -> None:
    levels: list[Mapping[str, Scalar]] = [
        {"device.throttle": name, "device.throttle.iops": iops, "device.throttle.bytes": most}
        for name, iops, most in (("slow", 100, 1), ("fast", 900, 1), ("faster", 900, 5))
    ]
    (found,) = effects(cells(levels, lambda levels: float(levels["device.throttle.iops"])))
    assert effect(found, "device.throttle", "fast", "slow").ratio == pytest.approx(9.0)
    assert effect(found, "device.throttle", "faster", "slow").ratio == pytest.approx(9.0)


def test_a_factor_of_two_file_systems_is_judged_over_both_and_in_each() -> None:
    levels: list[Mapping[str, Scalar]] = [
        {FILESYSTEM: kind, DATA: data} for kind in ("ext3", "ext4") for data in ("ordered", "journal")
    ]
    levels.append({FILESYSTEM: "xfs"})

    def truth(found: Mapping[str, Scalar]) -> float:
        return 0.5 if found.get(DATA) == "journal" else 1.0

    whole, ext3, ext4 = effects(cells(levels, truth))
    assert 2 == effect(whole, DATA, "journal", "ordered").strata
    assert [(FILESYSTEM, "ext3"), (FILESYSTEM, "ext4")] == [ext3.within, ext4.within]
    # Matched on what both have.
    assert () == effect(whole, FILESYSTEM, "ext4", "ext3").held
    assert effect(whole, FILESYSTEM, "ext4", "ext3").ratio == pytest.approx(1.0)


def test_missing_cells_leave_the_complete_part_for_each_ratio() -> None:
    levels = [
        found
        for found in crossed(kind=("ext4", "btrfs"), block=(1024, 2048, 4096))
        if found[FILESYSTEM] == "ext4" or found[BLOCK] == 4096
    ]

    def truth(found: Mapping[str, Scalar]) -> float:
        # Small blocks are slow; without matching, ext4 would look slower than it is.
        return (1.0 if found[BLOCK] == 4096 else 0.1) * (2.0 if found[FILESYSTEM] == "btrfs" else 1.0)

    (found,) = effects(cells(levels, truth))
    kind = effect(found, FILESYSTEM, "btrfs", "ext4")
    assert kind.ratio == pytest.approx(2.0)
    assert 1 == kind.strata
    assert () == found.interactions


def test_two_names_of_one_factor_are_one_factor() -> None:
    levels: list[Mapping[str, Scalar]] = [
        {"device.throttle": name, "device.throttle.iops": iops, BLOCK: block}
        for name, iops in (("slow", 100), ("fast", 900))
        for block in (2048, 8192)
    ]
    (found,) = effects(cells(levels, lambda levels: float(levels["device.throttle.iops"])))
    assert (("device.throttle.iops", "device.throttle"),) == found.aliases
    assert effect(found, "device.throttle", "fast", "slow").ratio == pytest.approx(9.0)


def test_factors_that_only_vary_together_are_unmatched() -> None:
    levels: list[Mapping[str, Scalar]] = [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 3}]
    (found,) = effects(cells(levels, lambda _: 1.0))
    assert {("a", Lack.NOTHING_MATCHES, ("b",)), ("b", Lack.NOTHING_MATCHES, ("a",))} == {
        (each.factor, each.lack, each.factors) for each in found.unmatched
    }
    assert [(2, 1)] == [(each.level, each.baseline) for each in found.effects]


def test_two_repetitions_are_described_and_not_judged() -> None:
    levels = crossed(kind=("ext4", "xfs"), block=(2048, 8192))
    (found,) = effects(cells(levels, lambda f: 5.0 if f[FILESYSTEM] == "xfs" else 1.0, repetitions=2))
    kind = effect(found, FILESYSTEM, "xfs", "ext4")
    judged = kind.judged
    assert (kind.ratio, judged.estimate) == pytest.approx((5.0, 5.0))
    assert (None, None, None, False) == (judged.low, judged.high, judged.p_difference, judged.is_told_apart)


def test_nothing_varies_and_nothing_is_there() -> None:
    assert () == effects([])
    assert () == effects([DesignCell({FILESYSTEM: "xfs"}, {1: 1.0, 2: 2.0, 3: 1.0})])


def test_a_broken_off_repetition_costs_nothing_and_a_lost_visit_its_own_ratios_alone() -> None:
    found = cells(crossed(kind=("ext4", "xfs"), block=(1024, 2048, 4096)), lambda _: 1.0, repetitions=3)
    broken = [DesignCell(found[0].levels, {**found[0].values, 4: 1.0}), *found[1:5]]
    broken.append(DesignCell(found[5].levels, {1: 1.0, 3: 1.0}))
    made = design(broken)
    assert ((1, 2, 3, 4), 5) == (made.repetitions, made.incomplete)
    complete = made.complete()
    assert ((1, 2, 3), 5, 0) == (complete.repetitions, len(complete.cells), complete.incomplete)
    (told,) = effects(broken)
    assert (1, 2, 3) == effect(told, BLOCK, 2048, 1024).repetitions
    kind = effect(told, FILESYSTEM, "xfs", "ext4")
    assert ((1, 2, 3), 3, {}) == (kind.repetitions, kind.strata, kind.left_out)


def test_a_pair_with_fewer_repetitions_keeps_its_weight_and_one_with_a_single_one_is_counted() -> None:
    """What a pair of cells says of a level is no smaller for a run that may not be believed."""
    ratios = {2048: 1.15, 8192: 1.15, 32768: 0.5}

    def cell(kind: str, block: int, repetitions: int) -> DesignCell:
        level = ratios[block] if kind == "xfs" else 1.0
        values = {r: level * (1 + 0.002 * ((r * block) % 5 - 2)) for r in range(1, repetitions + 1)}
        return DesignCell({FILESYSTEM: kind, BLOCK: block}, values)

    for repetitions in (8, 4, 2):
        cut = [
            cell(kind, block, repetitions if block == 32768 else 8)
            for kind in ("ext4", "xfs")
            for block in ratios
        ]
        (found,) = effects(cut)
        kind = effect(found, FILESYSTEM, "xfs", "ext4")
        assert kind.ratio == pytest.approx((1.15 * 1.15 * 0.5) ** (1 / 3), rel=0.01)
        assert (3, {}, True) == (kind.strata, kind.left_out, kind.judged.is_told_apart)
        assert kind.ratio < 1
    cut = [cell(kind, block, 1 if block == 32768 else 8) for kind in ("ext4", "xfs") for block in ratios]
    (found,) = effects(cut)
    assert (2, {Lack.FEW_REPETITIONS: 1}) == (
        effect(found, FILESYSTEM, "xfs", "ext4").strata,
        effect(found, FILESYSTEM, "xfs", "ext4").left_out,
    )


def test_a_pair_of_cells_has_every_repetition_that_both_have() -> None:
    first = DesignCell({FILESYSTEM: "ext4"}, dict.fromkeys((1, 2, 3, 4), 1.0))
    second = DesignCell({FILESYSTEM: "xfs"}, dict.fromkeys((2, 3, 4, 5), 2.0))
    third = DesignCell({FILESYSTEM: "jfs"}, dict.fromkeys((1, 5), 3.0))
    (told,) = effects([first, second, third])
    assert (2, 3, 4) == effect(told, FILESYSTEM, "xfs", "ext4").repetitions
    assert effect(told, FILESYSTEM, "xfs", "ext4").judged.is_told_apart
    # Described, with nothing that an interval could be made of.
    assert (None, (1,)) == (
        effect(told, FILESYSTEM, "jfs", "ext4").judged.low,
        effect(told, FILESYSTEM, "jfs", "ext4").repetitions,
    )


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_what_has_no_logarithm_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="positive values"):
        DesignCell({}, {1: value})


def test_groups_of_one_repetition_each_are_described_and_not_judged() -> None:
    """Three groups, each with another repetition in common: three repetitions together, and no scatter in any."""
    every = [
        DesignCell({FILESYSTEM: kind, BLOCK: block}, {repetition: speed})
        for repetition, block in enumerate((2048, 4096, 8192), 1)
        for kind, speed in (("ext4", 1.0), ("xfs", 1.1))
    ]
    (found,) = effects(every)
    ratio = effect(found, FILESYSTEM, "xfs", "ext4")
    assert ratio.ratio == pytest.approx(1.1)
    assert (None, None, None) == (ratio.judged.low, ratio.judged.high, ratio.judged.basis)


@pytest.mark.parametrize("repetitions", [3, 5])
def test_of_effects_that_are_none_few_are_told(repetitions: int) -> None:
    levels = crossed(kind=("ext4", "xfs", "jfs"), block=(1024, 2048, 8192), barrier=(True, False))
    some = some_pairs = 0
    for seed in range(120):
        (found,) = effects(cells(levels, lambda _: 1.0, repetitions=repetitions, scatter=0.1, seed=seed))
        some += len({e.factor for e in found.effects if e.judged.is_told_apart})
        some_pairs += any(i.judged.is_told_apart for i in found.interactions)
    # A family without any true effect speaks in 5 %, so the interactions in 6 of 120, and the three factors in 18; three and
    # a half deviations more are 14 and 32.
    assert some <= 32
    assert some_pairs <= 14


_GRID = st.tuples(st.integers(2, 3), st.integers(2, 4), st.integers(2, 3))


@settings(deadline=None, max_examples=30)
@given(_GRID, st.lists(st.floats(0.1, 10), min_size=10, max_size=10), st.randoms(use_true_random=False))
def test_multiplicative_truth_is_found_whatever_the_order_of_cells(
    sizes: tuple[int, int, int], factors: list[float], shuffler: object
) -> None:
    levels: list[Mapping[str, Scalar]] = [
        {"a": a, "b": b, "c": c} for a, b, c in product(*(range(size) for size in sizes))
    ]
    shuffler.shuffle(levels)  # type: ignore[attr-defined]

    def truth(found: Mapping[str, Scalar]) -> float:
        return factors[int(found["a"])] * factors[3 + int(found["b"])] * factors[7 + int(found["c"])]

    (found,) = effects(cells(levels, truth))
    offset = {"a": 0, "b": 3, "c": 7}
    for e in found.effects:
        expected = factors[offset[e.factor] + int(e.level)] / factors[offset[e.factor] + int(e.baseline)]
        assert e.ratio == pytest.approx(expected)
    for i in found.interactions:
        assert i.ratio == pytest.approx(1.0)
    assert math.prod(sizes) // sizes[0] == next(e.strata for e in found.effects if e.factor == "a")


def test_cells_that_are_effectively_the_same_are_in_no_ratio_and_counted() -> None:
    """As `compare` leaves them out: an option that changes nothing makes no second cell."""

    def cell(kind: str, block: int, option: str, *same: str) -> DesignCell:
        speed = 2.0 if option == "discard" else 1.0
        name = f"{kind} {block} {option}"
        values = {repetition: speed * (1 + 0.001 * repetition * block) for repetition in (1, 2, 3)}
        return DesignCell(
            {FILESYSTEM: kind, BLOCK: block, "option": option}, values, name=name, same_as=frozenset(same)
        )

    def study(*same: str) -> list[DesignCell]:
        twice = [cell("xfs", 1, "none", *same), cell("xfs", 1, "discard", *("xfs 1 none" for _ in same))]
        return [
            *twice,
            *(cell(kind, 2, option) for kind in ("ext4", "xfs") for option in ("none", "discard")),
        ]

    every, some = (effects(study(*same))[0] for same in ((), ("xfs 1 discard",)))
    assert (3, {}) == (
        effect(every, "option", "discard", "none").strata,
        effect(every, "option", "discard", "none").left_out,
    )
    left = effect(some, "option", "discard", "none")
    assert (2, {Lack.SAME: 1}) == (left.strata, left.left_out)


def test_a_run_without_a_logarithm_takes_its_pair_where_both_have_it() -> None:
    """A run that came to nothing is not left out for the good ones; where the other cell lost that visit it is."""
    values = dict.fromkeys((1, 2, 3, 4), 1.0)

    def ratio(*lost: int) -> Effect:
        here = [
            DesignCell({FILESYSTEM: "ext4", BLOCK: 1}, {r: v for r, v in values.items() if r not in lost}),
            DesignCell({FILESYSTEM: "xfs", BLOCK: 1}, {1: 2.0, 2: 2.0, 3: 2.1}, without_ratio=frozenset({4})),
            DesignCell({FILESYSTEM: "ext4", BLOCK: 2}, values),
            DesignCell({FILESYSTEM: "xfs", BLOCK: 2}, values),
        ]
        return effect(effects(here)[0], FILESYSTEM, "xfs", "ext4")

    both, one = ratio(), ratio(4)
    assert (1, {Lack.NO_RATIO: 1}) == (both.strata, both.left_out)
    assert both.ratio == pytest.approx(1.0)
    assert (2, {}) == (one.strata, one.left_out)
