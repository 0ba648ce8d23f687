from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.model.cell import FilesystemLevels
from bedplate.model.codec import dumps, loads
from bedplate.model.plan import Canary, Expansion, Plan, Schedule, ScheduledVisit
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order, rank

ROOT = Path(__file__).parents[3]

LoadText = Callable[[str], Plan]


@pytest.fixture
def many(load_text: LoadText, minimal: str) -> Plan:
    """12 cells and 2 datasets."""
    text = minimal.replace('type = "ext4"', 'type = { vary = ["ext4", "xfs"] }')
    text = text.replace("scale = 10", "scale = { vary = [1, 10] }")
    return load_text(
        f'{text}[postgresql]\nblock_size = {{ vary = ["1 kB", "2 kB", "4 kB", "8 kB", "16 kB", "32 kB"] }}\n'
    )


def _blocks(schedule: Schedule) -> dict[int, list[tuple[str, str]]]:
    blocks: dict[int, list[tuple[str, str]]] = {}
    for visit in schedule.visits:
        if not visit.canary:
            blocks.setdefault(visit.repetition, []).append((visit.cell_id, visit.dataset_id))
    return blocks


@given(seed=st.integers(0, 2**53 - 1), repetitions=st.integers(1, 6), count=st.integers(1, 30))
def test_each_repetition_visits_every_cell_once_and_blocks_do_not_mix(
    seed: int, repetitions: int, count: int
) -> None:
    plan, expansion = _numbered(count, repetitions)
    schedule = order(plan, expansion, seed)
    expected = Counter((planned.cell.id, planned.loads[0].dataset.id) for planned in expansion.cells)
    blocks = _blocks(schedule)
    assert list(range(1, repetitions + 1)) == list(blocks)
    assert all(expected == Counter(block) for block in blocks.values())
    assert list(range(len(schedule.visits))) == [visit.index for visit in schedule.visits]
    in_time = [visit.repetition for visit in schedule.visits if not visit.canary]
    assert sorted(in_time) == in_time


def test_the_same_seed_gives_the_same_order_and_another_another(many: Plan) -> None:
    expansion = expand(many, None)
    assert order(many, expansion, 7) == order(many, expansion, 7)
    assert order(many, expansion) == order(many, expansion, many.seed)
    assert _blocks(order(many, expansion, 7)) != _blocks(order(many, expansion, 8))


def test_each_repetition_has_an_order_of_its_own(many: Plan) -> None:
    blocks = _blocks(order(many, expand(many, None)))
    assert len({tuple(block) for block in blocks.values()}) == many.repetitions


def test_every_cell_with_every_dataset_is_a_visit(many: Plan) -> None:
    assert len(_blocks(order(many, expand(many, None)))[1]) == 24


def test_a_cell_that_is_added_moves_no_other_past_another(many: Plan) -> None:
    more = replace(many, filesystems=(*many.filesystems, FilesystemLevels("btrfs")))
    before = _blocks(order(many, expand(many, None)))
    after = _blocks(order(more, expand(more, None)))
    for repetition, block in before.items():
        assert block == [key for key in after[repetition] if key in set(block)]


def test_added_repetitions_leave_the_earlier_blocks_alone(many: Plan) -> None:
    more = replace(many, repetitions=9)
    before = _blocks(order(many, expand(many, None)))
    after = _blocks(order(more, expand(more, None)))
    assert before == {repetition: after[repetition] for repetition in before}


def test_the_place_of_a_cell_in_its_block_is_random() -> None:
    plan, expansion = _numbered(10, 1000)
    target = expansion.cells[3].cell.id
    places = Counter(
        [key[0] for key in block].index(target) for block in _blocks(order(plan, expansion, 1)).values()
    )
    # 1000 draws of 10 places: 100 each, standard deviation 9.5; five of them either way.
    assert set(range(10)) == set(places)
    assert all(53 <= count <= 147 for count in places.values())


def test_the_order_is_the_same_in_every_process_and_version() -> None:
    # Written down: were these to change, a study begun yesterday could not go on today.
    ranks = [rank(1, repetition, cell, "d").hex()[:8] for repetition in (1, 2) for cell in "abc"]
    assert ["38e6076d", "55bce2dc", "de0346ec", "48db11bc", "cd333d7f", "edf7430c"] == ranks


def test_the_order_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "import sys; from pathlib import Path; from bedplate.model.codec import dumps;"
        "from bedplate.plan.load import load_plan; from bedplate.plan.expand import expand;"
        "from bedplate.plan.order import order; path = Path(sys.argv[1]);"
        "plan = load_plan(path.read_text(), source='p', directory=path.parent);"
        "print(plan.digest, dumps(order(plan, expand(plan, None))))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, str(ROOT / "plans" / "vondra-2011-oltp.toml")],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1


def test_canaries_open_and_close_the_study_and_belong_to_no_block(many: Plan) -> None:
    schedule = order(many, expand(many, None))
    canaries = [visit for visit in schedule.visits if visit.canary]
    assert schedule.visits[0].canary
    assert schedule.visits[-1].canary
    assert list(range(1, len(canaries) + 1)) == [visit.repetition for visit in canaries]
    assert 24 * 5 + len(canaries) == len(schedule.visits)


def test_a_canary_comes_back_after_its_time(many: Plan) -> None:
    often = replace(many, canary=Canary(every_s=60.0))
    schedule = order(often, expand(often, None))
    # A visit of 40 s and its preparation: two of them are more than a minute, one is not.
    pattern = "".join("c" if visit.canary else "v" for visit in schedule.visits)
    assert pattern == "cvv" * 60 + "c"


def test_a_study_without_canaries_has_none(many: Plan) -> None:
    off = replace(many, canary=Canary(enabled=False))
    expansion = expand(off, None)
    assert expansion.canary is None
    assert not any(visit.canary for visit in order(off, expansion).visits)


def test_nothing_to_run_gives_an_empty_schedule(many: Plan) -> None:
    assert order(many, Expansion((), (), None)) == Schedule(1, 5, ())


def test_a_schedule_survives_its_json(many: Plan) -> None:
    schedule = order(many, expand(many, None))
    assert schedule == loads(Schedule, dumps(schedule))


def test_a_scheduled_visit_is_found_again(many: Plan) -> None:
    expansion = expand(many, None)
    for visit in order(many, expansion).visits:
        cell, load = expansion.find(visit.cell_id, visit.dataset_id, canary=visit.canary)
        assert (visit.cell_id, visit.dataset_id) == (cell.id, load.dataset.id)
    with pytest.raises(KeyError):
        expansion.find("x", "y")


def _numbered(count: int, repetitions: int) -> tuple[Plan, Expansion]:
    """A plan of `count` cells that differ in one setting."""
    levels = list(range(count))
    text = f"""
title = "numbered"
repetitions = {repetitions}
[scratch_device]
image_size = "1 GB"
[[filesystem]]
type = "ext4"
[postgresql.settings]
work_mem = {{ vary = {levels} }}
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
duration = 1
"""
    plan = load_plan(text, source="p.toml", directory=Path("/nonexistent"))
    return plan, expand(plan, None)


def test_a_visit_record_is_what_the_study_stores() -> None:
    visit = ScheduledVisit(3, "cell", "dataset", 2)
    assert visit == loads(ScheduledVisit, dumps(visit))
