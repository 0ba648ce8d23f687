"""[[workload]] tables of every type: what they allow, and the datasets and runs they come to."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.errors import PlanError
from bedplate.model.codec import dumps, loads
from bedplate.model.levels import Levels
from bedplate.model.plan import Plan
from bedplate.plan.differences import differences
from bedplate.plan.estimate import Estimate, estimate
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order
from bedplate.plan.platforms import LOCAL, QEMU, Platform
from bedplate.units import GIB

HEAD = """
title = "x"
repetitions = 3
seed = 7
[scratch_device]
image_size = "6 GB"
[[filesystem]]
type = "ext4"
"""


def plan_of(text: str) -> Plan:
    return load_plan(HEAD + text, source="p.toml", directory=Path("/nowhere"))


def refused(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        plan_of(text)
    return "\n".join(caught.value.reasons)


def tpch(text: str = "scale_factor = 1") -> str:
    return f'[[workload]]\ntype = "tpch"\n{text}\n'


def test_a_tpch_workload_is_a_load_two_passes_and_streams() -> None:
    plan = plan_of(tpch('scale_factor = { vary = [0.1, 1] }\nquery_timeout = "300 s"\nstreams = 2'))
    (workload,) = plan.workloads
    assert (Levels(scale_factor=0.1), Levels(scale_factor=1.0)) == workload.datasets
    assert ["load", "cold", "warm", "throughput"] == [run.name for run in workload.runs]
    cold = workload.runs[1]
    assert {
        "kind": "power",
        "pass": "cold",
        "pass_number": 1,
        "parameters": "validation",
        "query_timeout_s": 300.0,
    } == dict(cold.levels)
    assert 2 == workload.runs[3].levels["streams"]
    (planned,) = expand(plan, None).cells
    assert [{"scale_factor": 0.1}, {"scale_factor": 1.0}] == [
        dict(load.dataset.levels) for load in planned.loads
    ]
    assert plan == loads(Plan, dumps(plan))


def test_a_pass_that_comes_again_has_its_number() -> None:
    plan = plan_of(tpch('scale_factor = 1\npasses = ["warm", "cold", "warm", "warm"]'))
    runs = plan.workloads[0].runs
    assert ["load", "warm", "cold", "warm-2", "warm-3"] == [run.name for run in runs]
    assert [1, 2, 3, 4] == [run.levels["pass_number"] for run in runs[1:]]
    assert len({run.id for run in runs}) == len(runs)


def test_drawn_parameters_follow_the_seed_of_the_plan_alone() -> None:
    runs = plan_of(tpch('scale_factor = 1\nparameters = "drawn"')).workloads[0].runs
    assert {7} == {run.levels["parameter_seed"] for run in runs[1:]}
    assert all("query_timeout_s" not in run.levels for run in runs)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scale_factor = 0", "workload[0].scale_factor: found 0; allowed is a number from 0.01 to 10000"),
        ("scale_factor = 0.001", "scale_factor: found 0.001"),
        ("scale_factor = 0.123", "at most two digits"),
        ("scale_factor = true", "scale_factor: found True"),
        ("scale_factor = nan", "scale_factor: found nan"),
        ("scale_factor = inf", "scale_factor: found inf"),
        ("scale_factor = { vary = [1, 1.0] }", "is listed twice"),
        ("", "workload[0].scale_factor: missing; expected a number from 0.01 to 10000"),
        ('scale_factor = 1\npasses = ["hot"]', 'each "cold" or "warm"'),
        ('scale_factor = 1\npasses = "cold"', "workload[0].passes: found 'cold'"),
        ("scale_factor = 1\npasses = []", "there is nothing to run"),
        ("scale_factor = 1\nstreams = -1", "workload[0].streams: found -1"),
        ('scale_factor = 1\nparameters = "mine"', "workload[0].parameters: found 'mine'"),
        (
            "scale_factor = 1\nscale = 3",
            "workload[0].scale: unknown key; allowed: type, scale_factor, query_timeout",
        ),
        ('scale_factor = 1\nquery_timeout = "0 s"', "workload[0].query_timeout"),
    ],
)
def test_what_a_tpch_workload_refuses(text: str, said: str) -> None:
    assert said in refused(tpch(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[workload]]\ntype = "tpcc"', "workload[0].type: found 'tpcc'; expected pgbench, tpch"),
        ("[[workload]]\nscale = 1", "workload[0].type: missing; expected pgbench, tpch"),
        ("[[workload]]\ntype = 3", "workload[0].type: found 3; expected pgbench, tpch"),
        ("[[workload]]\ntype = { vary = ['tpch'] }", "workload[0].type: found a table with"),
        (
            '[[workload]]\ntype = "pgbench"\nscale = 1\nruns = 3',
            "workload[0].runs: unknown key; did you mean run?",
        ),
        (
            '[[workload]]\ntype = "pgbench"\nscale = 1\n[[workload.run]]\nscript = "read-only"\nduration = 5\nclient = 2',
            "workload[0].run[0].client: unknown key; did you mean clients?",
        ),
    ],
)
def test_a_workload_is_known_by_its_type(text: str, said: str) -> None:
    assert said in refused(text)


def test_one_dataset_is_loaded_once() -> None:
    said = refused(tpch() + tpch("scale_factor = { vary = [10, 1] }"))
    assert "workload[1].scale_factor: loads the same dataset as workload[0]" in said
    pgbench = (
        '[[workload]]\ntype = "pgbench"\nscale = 1\n[[workload.run]]\nscript = "read-only"\nduration = 5\n'
    )
    assert ["pgbench", "tpch"] == [workload.type for workload in plan_of(pgbench + tpch()).workloads]


def test_page_costs_are_scaled_where_they_are_numbers() -> None:
    text = '[postgresql]\nscaled_page_costs = true\n[postgresql.settings]\nrandom_page_cost = "cheap"\n'
    assert "scaled_page_costs scales random_page_cost, which is 'cheap'" in refused(text + tpch())
    plan = plan_of(text.replace('"cheap"', "{ vary = [1.1, 4] }") + tpch())
    assert [True, True] == [cluster.scaled_page_costs for cluster in plan.clusters]
    assert "cluster.scaled_page_costs" in next(plan.cells()).levels


def test_a_default_changes_no_cells_name() -> None:
    (cell,) = plan_of(tpch()).cells()
    assert "cluster.scaled_page_costs" not in cell.levels
    assert cell.id == next(plan_of("[postgresql]\nscaled_page_costs = false\n" + tpch()).cells()).id


def test_an_extension_names_what_changed() -> None:
    old, new = plan_of(tpch()), plan_of(tpch("scale_factor = { vary = [1, 10] }\nstreams = 2"))
    said = "\n".join(differences(old, new))
    assert "workload tpch at scale_factor 10.0: added" in said
    assert "workload tpch at scale_factor 1.0: run throughput added" in said
    assert old.digest != new.digest


def test_time_and_room_of_tpch_follow_the_scale_factor() -> None:
    def found(text: str, executor: str = LOCAL) -> Estimate:
        plan = plan_of(tpch(text))
        expansion = expand(plan, None, platform=Platform(executor))
        return estimate(plan, expansion, order(plan, expansion, executor=executor), executor=executor)

    one, ten = found("scale_factor = 1"), found("scale_factor = 10")
    assert 8 < ten.measured_seconds / one.measured_seconds < 12
    assert 1.9 * GIB < one.device_bytes < 4 * GIB, "tables, what sorts spill, and WAL"
    assert 17 * GIB < ten.device_bytes < 25 * GIB
    with_streams = found("scale_factor = 1\nstreams = 2")
    assert with_streams.measured_seconds > 1.5 * one.measured_seconds
    short = found('scale_factor = 10\nquery_timeout = "1 s"')
    assert short.measured_seconds < 0.6 * ten.measured_seconds, "no query is longer than its limit"
    assert found("scale_factor = 1", QEMU).seconds > 5 * one.seconds
    said = expand(plan_of(tpch("scale_factor = 10")), None).warnings
    assert any("image_size: 6 GiB may not hold the largest visit" in warning for warning in said)
