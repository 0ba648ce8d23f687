"""Where a fleet's visits are lived: repetitions whole on one node, canaries on every node, nothing moved later."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.errors import PlanError
from bedplate.model.machine import Fleet
from bedplate.model.plan import Plan, Schedule
from bedplate.plan.differences import differences
from bedplate.plan.estimate import estimate
from bedplate.plan.expand import expand
from bedplate.plan.fields import expand_nodes
from bedplate.plan.load import load_plan
from bedplate.plan.order import blocks_of, order

PLAN = """
title = "Fleet"
repetitions = {repetitions}
executor = "slurm"
[scratch_device]
image_size = "1 GB"
[slurm]
nodes = {nodes}
[[filesystem]]
type = {{ vary = ["ext4", "xfs", "btrfs"] }}
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
clients = 1
duration = "600 s"
[canary]
every = "10 min"
"""


def plan_of(repetitions: int = 4, nodes: str = '["n1", "n2"]', *changes: tuple[str, str]) -> Plan:
    text = PLAN.format(repetitions=repetitions, nodes=nodes)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    tomllib.loads(text)
    return load_plan(text, source="plan.toml", directory=Path("/"))


def schedule_of(plan: Plan) -> Schedule:
    return order(plan, expand(plan, None), executor="slurm")


@settings(deadline=None, max_examples=40)
@given(repetitions=st.integers(1, 9), nodes=st.integers(1, 5))
def test_every_repetition_is_whole_on_one_node_and_canaries_open_and_close_each(
    repetitions: int, nodes: int
) -> None:
    schedule = schedule_of(plan_of(repetitions, f'["n[1-{nodes}]"]'))
    assert list(range(len(schedule.visits))) == [visit.index for visit in schedule.visits]
    by_repetition: dict[int, set[str | None]] = {}
    for visit in schedule.visits:
        if not visit.canary:
            by_repetition.setdefault(visit.repetition, set()).add(visit.node)
    assert {r: {f"n{(r - 1) % nodes + 1}"} for r in range(1, repetitions + 1)} == by_repetition
    assert 3 * repetitions == sum(not visit.canary for visit in schedule.visits)
    for node in {visit.node for visit in schedule.visits}:
        own = [visit for visit in schedule.visits if visit.node == node]
        assert own[0].canary
        assert own[-1].canary
    numbers = [visit.repetition for visit in schedule.visits if visit.canary]
    assert {1} == set(Counter(numbers).values())


def test_a_repetition_that_is_added_moves_no_visit_and_renames_no_canary() -> None:
    before, after = (schedule_of(plan_of(repetitions)) for repetitions in (3, 6))
    where = {(v.cell_id, v.dataset_id, v.repetition, v.canary): v.node for v in after.visits}
    for visit in before.visits:
        key = (visit.cell_id, visit.dataset_id, visit.repetition, visit.canary)
        assert visit.node == where[key]


def test_a_block_is_one_repetition_on_one_node_with_its_canaries() -> None:
    schedule = schedule_of(plan_of(5))
    blocks = blocks_of(schedule.visits)
    assert [("n1", 1), ("n2", 2), ("n1", 3), ("n2", 4), ("n1", 5)] == [(b.node, b.repetition) for b in blocks]
    assert sorted(v.index for v in schedule.visits) == sorted(v.index for b in blocks for v in b.visits)
    assert all(visit.node == block.node for block in blocks for visit in block.visits)


def test_canaries_that_alone_are_due_go_with_a_block_of_their_node() -> None:
    visits = schedule_of(plan_of(2)).visits
    due = [visit for visit in visits if visit.canary and visit.node == "n2"]
    (block,) = blocks_of(due)
    assert ("n2", len(due)) == (block.node, len(block.visits))


def test_visits_of_another_schedule_are_refused() -> None:
    plan = plan_of(1, '["n1"]')
    local = order(plan, expand(plan, None), executor="local")
    with pytest.raises(ValueError, match="no node"):
        blocks_of(local.visits)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ("n1",)),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("rack2-n[08-10,12].lab", ("rack2-n08.lab", "rack2-n09.lab", "rack2-n10.lab", "rack2-n12.lab")),
    ],
)
def test_names_of_nodes_are_expanded_as_slurm_does(text: str, names: tuple[str, ...]) -> None:
    assert names == expand_nodes(text)


@pytest.mark.parametrize(
    "text", ["", "-w", "n 1", "n[3-1]", "n[1-999999]", "../n", "n1\n", "n[1", "n;m", "é"]
)
def test_a_name_that_no_node_has_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"nodes|range|names"):
        expand_nodes(text)


@settings(deadline=None)
@given(st.text(max_size=30))
def test_whatever_is_taken_for_a_node_is_one_word_that_is_no_option(text: str) -> None:
    try:
        names = expand_nodes(text)
    except ValueError:
        return
    for name in names:
        assert name.isascii()
        assert not name.startswith("-")
        assert not set(name) & set(" /,\n\t;|&$")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('[slurm]\nnodes = ["n1", "n2"]', ""), "needs the table"),
        (('nodes = ["n1", "n2"]', 'nodes = ["n1", "n1"]'), "listed twice"),
        (('nodes = ["n1", "n2"]', 'nodes = ["n1"]\npartition = "a b"'), "one word"),
        (('nodes = ["n1", "n2"]', 'nodes = ["n1"]\ndiffering = ["luck"]'), "firmware"),
        (('nodes = ["n1", "n2"]', 'nodes = ["n1"]\nlocal_directory = "here"'), "absolute path"),
        (
            ('nodes = ["n1", "n2"]', 'nodes = ["n1"]\ndevices = { n9 = "/dev/disk/by-id/a" }'),
            "which nodes does not list",
        ),
        (
            ('nodes = ["n1", "n2"]', 'nodes = ["n1"]\ndevices = { n1 = "/dev/disk/by-id/a" }'),
            "which has an image",
        ),
        (("[slurm]", '[machine]\nkernel = "6.1"\n[slurm]'), "nodes keep the kernel"),
        (
            ('nodes = ["n1", "n2"]', 'nodes = ["n1"]\njournal_devices = { n9 = "/dev/disk/by-id/a" }'),
            "journal_devices of 'n9', which nodes does not list",
        ),
        (
            ('nodes = ["n1", "n2"]', 'nodes = ["n1"]\njournal_devices = { n1 = "/dev/disk/by-id/a" }'),
            "which names none",
        ),
    ],
)
def test_what_is_wrong_with_the_table_is_said(change: tuple[str, str], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        plan_of(2, '["n1", "n2"]', change)


def test_how_jobs_are_asked_for_may_change_and_where_they_run_may_not() -> None:
    before = plan_of()
    longer = plan_of(4, '["n1", "n2"]', ("[slurm]", '[slurm]\ntime = "9 h"\npartition = "slow"'))
    elsewhere = plan_of(4, '["n1", "n3"]')
    assert before.digest == longer.digest
    assert () == differences(before, longer)
    assert before.digest != elsewhere.digest
    assert ("slurm.nodes: was n1, n2, is n1, n3",) == differences(before, elsewhere)


def test_every_device_of_a_fleet_is_named_once() -> None:
    image = ('image_size = "1 GB"', 'device = "/dev/disk/by-path/a"')
    one = plan_of(
        2,
        '["n1", "n2"]',
        image,
        ("[[filesystem]]", '[slurm.devices]\nn2 = "/dev/disk/by-id/b"\n[[filesystem]]'),
    )
    both = plan_of(
        2,
        '["n1", "n2"]',
        image,
        (
            "[[filesystem]]",
            '[slurm.devices]\nn1 = "/dev/disk/by-id/c"\nn2 = "/dev/disk/by-id/b"\n[[filesystem]]',
        ),
    )
    assert ("/dev/disk/by-path/a", "/dev/disk/by-id/b") == one.devices_erased
    assert ("/dev/disk/by-id/c", "/dev/disk/by-id/b") == both.devices_erased


WITH_JOURNALS = (
    ('image_size = "1 GB"', 'device = "/dev/disk/by-id/a"\n[journal_device]\ndevice = "/dev/disk/by-id/j"'),
    ('type = { vary = ["ext4", "xfs", "btrfs"] }', 'type = "ext4"\njournal = "external"'),
)


def journals_on(table: str) -> tuple[str, str]:
    return ("[[filesystem]]", f"[slurm.journal_devices]\n{table}\n[[filesystem]]")


def test_a_node_may_have_a_journal_device_of_its_own_which_is_erased_and_decides() -> None:
    nodes = '["n1", "n2"]'
    plain = plan_of(2, nodes, *WITH_JOURNALS)
    one = plan_of(2, nodes, *WITH_JOURNALS, journals_on('n2 = "/dev/disk/by-id/k"'))
    both = plan_of(
        2, nodes, *WITH_JOURNALS, journals_on('n1 = "/dev/disk/by-id/l"\nn2 = "/dev/disk/by-id/k"')
    )
    assert ("/dev/disk/by-id/a", "/dev/disk/by-id/j") == plain.devices_erased
    assert ("/dev/disk/by-id/a", "/dev/disk/by-id/j", "/dev/disk/by-id/k") == one.devices_erased
    assert ("/dev/disk/by-id/a", "/dev/disk/by-id/l", "/dev/disk/by-id/k") == both.devices_erased
    assert 3 == len({plain.digest, one.digest, both.digest})
    (difference,) = differences(plain, one)
    assert "slurm.journal_devices: was not asked for, is n2 /dev/disk/by-id/k" == difference


def test_a_plan_without_journal_devices_by_node_keeps_its_digest() -> None:
    assert {"nodes", "devices", "local_directory"} == set(Fleet(("n1",)).deciding)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            journals_on('n2 = "/dev/disk/by-id/a"'),
            "slurm.journal_devices.n2: it is the node's scratch device",
        ),
        (
            ("[[filesystem]]", '[slurm.devices]\nn2 = "/dev/disk/by-id/j"\n[[filesystem]]'),
            r"slurm.devices.n2: it is the device of \[journal_device\]",
        ),
    ],
)
def test_a_journal_does_not_stand_on_its_nodes_scratch_device(table: tuple[str, str], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        plan_of(2, '["n1", "n2"]', *WITH_JOURNALS, table)


def test_two_nodes_may_have_their_devices_the_other_way_round() -> None:
    plan = plan_of(
        2,
        '["n1", "n2"]',
        *WITH_JOURNALS,
        (
            "[[filesystem]]",
            (
                '[slurm.devices]\nn2 = "/dev/disk/by-id/j"\n[slurm.journal_devices]\nn2 = "/dev/disk/by-id/a"\n'
                "[[filesystem]]"
            ),
        ),
    )
    assert ("/dev/disk/by-id/a", "/dev/disk/by-id/j") == plan.devices_erased


def test_nodes_take_repetitions_in_turn() -> None:
    assert ["a", "b", "c", "a"] == [Fleet(("a", "b", "c")).node_of(r) for r in (1, 2, 3, 4)]


def test_a_fleet_takes_as_long_as_the_node_that_has_most_to_do() -> None:
    seconds = {}
    for nodes in (1, 2, 4):
        plan = plan_of(4, f'["n[1-{nodes}]"]', ('every = "10 min"', "enabled = false"))
        expansion = expand(plan, None)
        schedule = order(plan, expansion, executor="slurm")
        seconds[nodes] = estimate(plan, expansion, schedule, executor="slurm").seconds
    assert seconds[1] == pytest.approx(2 * seconds[2])
    assert seconds[1] == pytest.approx(4 * seconds[4])
