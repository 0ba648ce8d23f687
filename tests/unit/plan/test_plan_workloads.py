"""[[workload]] tables of every type: what they allow, and the datasets and runs they come to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.studies.estimated import bytes_of, seconds_of

from bedplate.errors import PlanError
from bedplate.model.cell import Dataset
from bedplate.model.codec import dumps, loads
from bedplate.model.levels import Levels
from bedplate.model.machine import Machine
from bedplate.model.plan import Load, Plan
from bedplate.model.reason import sentences
from bedplate.plan.differences import differences
from bedplate.plan.estimate import StudyEstimate, estimate
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order
from bedplate.plan.rules import LOCAL, QEMU, Platform
from bedplate.registry import type_today
from bedplate.units import GIB
from bedplate.workloads.fio.model import is_pg_test_fsync

MakeMachine = Callable[..., Machine]

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
        ("scale_factor = 1\nscale = 3", "workload[0].scale: unknown key; did you mean scale_factor?"),
        (
            "scale_factor = 1\nhat = 3",
            "workload[0].hat: unknown key; allowed: type, scale_factor, query_timeout",
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
        ('[[workload]]\ntype = "pgbenh"', "workload[0].type: found 'pgbenh'; expected pgbench, "),
        ('[[workload]]\ntype = "pgbenh"', "faulty_disk; did you mean pgbench?"),
        (
            '[[workload]]\ntype = "pgbench"\nduration = 60',
            "workload[0].duration: unknown key; it is a key of [[workload.run]]",
        ),
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
    def found(text: str, executor: str = LOCAL) -> StudyEstimate:
        plan = plan_of(tpch(text))
        expansion = expand(plan, None, platform=Platform(executor))
        return estimate(plan, expansion, order(plan, expansion, executor=executor), executor=executor)

    one, ten = found("scale_factor = 1"), found("scale_factor = 10")
    assert 8 < ten.measured_seconds / one.measured_seconds < 12
    assert 1.9 * GIB < one.device_bytes < 4 * GIB, "tables, what sorts spill, and WAL"
    assert (1.0, 11.0) == pytest.approx((one.data_bytes / 1.11e9, ten.data_bytes / 1.03e9), rel=0.05)
    assert 17 * GIB < ten.device_bytes < 25 * GIB
    with_streams = found("scale_factor = 1\nstreams = 2")
    assert with_streams.measured_seconds > 1.5 * one.measured_seconds
    short = found('scale_factor = 10\nquery_timeout = "1 s"')
    assert short.measured_seconds < 0.6 * ten.measured_seconds, "no query is longer than its limit"
    assert found("scale_factor = 1", QEMU).seconds > 5 * one.seconds
    said = expand(plan_of(tpch("scale_factor = 10")), None).warnings
    assert any("image_size: 6 GiB may not hold the largest visit" in warning for warning in said)


def test_a_plan_with_several_engines_has_cells_of_each() -> None:
    text = (
        '[lmdb]\nsync = { vary = ["full", "nosync"] }\nwritemap = true\n'
        '[postgresql]\nblock_size = { vary = ["4 kB", "8 kB"] }\n'
        + tpch()
        + '[[workload]]\ntype = "lmdb"\nentries = 10000\n'
        + '[[workload]]\ntype = "fio"\njob = [{ job = "wal-append", size = "64 MB" }]\n'
    )
    plan = plan_of(text)
    assert ["postgresql", "lmdb", "none"] == [setup.engine for setup in plan.engines]
    expansion = expand(plan, None)
    assert 5 == len([*plan.cells()]) == len(expansion.cells)
    found = {
        planned.cell.slug: [load.dataset.workload for load in planned.loads] for planned in expansion.cells
    }
    assert {
        "ext4-pg4k": ["tpch"],
        "ext4-pg8k": ["tpch"],
        "ext4-lmdb-sync-full-writemap": ["lmdb"],
        "ext4-lmdb-sync-nosync-writemap": ["lmdb"],
        "ext4-none": ["fio"],
    } == found
    raw = next(planned.cell for planned in expansion.cells if not planned.cell.build.is_built)
    assert raw.database_block_bytes is None
    assert not any("block_size" in name or "version" in name for name in raw.levels)
    assert expansion.canary is not None
    assert "pgbench" == expansion.canary.loads[0].dataset.workload


@pytest.mark.parametrize("kind", ["lmdb", "bonnie", "fio"])
def test_without_postgresql_the_canary_is_the_plans_own_tool(kind: str) -> None:
    extra = 'job = [{ job = "checkpoint", size = "64 MB" }]\n' if kind == "fio" else ""
    extra += 'file_size = "1 GB"\n' if kind == "bonnie" else ""
    plan = plan_of(f'[[workload]]\ntype = "{kind}"\n{extra}')
    expansion = expand(plan, None)
    assert expansion.canary is not None
    (load,) = expansion.canary.loads
    assert type_today(kind) == load.dataset.workload == load.runs[0].workload
    found = estimate(plan, expansion, order(plan, expansion))
    assert 0 < found.measured_seconds < found.seconds


def test_lmdb_writes_first_and_reads_what_was_left() -> None:
    (workload,) = plan_of(
        '[[workload]]\ntype = "lmdb"\nvalue_size = { vary = ["100 B", "1 kB"] }\n'
    ).workloads
    assert [100, 1024] == [levels["value_bytes"] for levels in workload.datasets]
    runs = {run.name: str(run.levels["tests"]) for run in workload.runs}
    assert ["write", "read-cold", "read-warm", "write-100K", "read-cold-100K", "read-warm-100K"] == list(runs)
    assert runs["write"].startswith("fillrandsync,fillrandom,")
    assert runs["write"].endswith(",overwrite")
    assert "readrandom,readseq,readreverse" == runs["read-cold"], "a writer makes no cold pass"
    assert "readrandom,readseq,readreverse,readwhilewriting" == runs["read-warm"]


@pytest.mark.parametrize(
    ("tests", "left"),
    [
        (["fillrandbatch", "fillseqsync", "readrandom"], "fillseqsync"),
        (["fillrandsync", "readrandom", "readseq"], "fillrandsync"),
        (["fillrandsync", "fillrandbatch", "readrandom"], None),
        (["fillseqsync", "overwrite", "readrandom"], None),
        (["fillrandbatch", "fillseqsync"], None),
        (["fillseqsync", "fillseq100K", "readseq100K"], None),
    ],
)
@pytest.mark.parametrize("kind", ["lmdb", "microbenchmark"])
def test_reads_of_a_thousandth_of_the_entries_are_warned_of(
    kind: str, tests: list[str], left: str | None
) -> None:
    plan = plan_of(f'[[workload]]\ntype = "{kind}"\ntests = {tests}\nreads = ["warm"]\n')
    found = [sentence for sentence in plan.warnings if "a thousandth of the entries" in sentence]
    assert found == [sentence for sentence in plan.warnings if "run read-warm" in sentence]
    assert ([left] if left else []) == [sentence.split(" read what ")[1].split()[0] for sentence in found]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('type = "lmdb"\ntests = ["readseq"]', "readseq read what a fill leaves"),
        ('type = "lmdb"\ntests = ["overwrite"]', "overwrite needs a fill before it"),
        ('type = "lmdb"\ntests = ["fillseq", "readseq"]\nreads = []', "need a pass"),
        ('type = "lmdb"\ntests = ["fillfast"]', "allowed is a list of fillrandsync"),
        ('type = "lmdb"\nentries = 5', "a whole number from 1000"),
        ('type = "bonnie"\nfile_size = "0x memory"', "allowed is a size"),
        ('type = "bonnie"\nfile_size = "1 GB"\nfiles = 1000', "allowed is a multiple of 1024"),
        ('type = "bonnie"\nfile_size = "1 GB"\nper_character = -1', "workload[0].per_character"),
        ('type = "bonnie"\nfile_size = "1 GB"\nchunk_size = "3 kB"', "workload[0].chunk_size"),
        ('type = "fio"', "workload[0].job: missing"),
        ('type = "fio"\njob = []', "allowed are one or more tables"),
        ('type = "fio"\njob = [{ job = "wal" }]', "job 'wal' is not known; ready are random-read-8k"),
        ('type = "fio"\njob = [{ job = "checkpoint" }]', "a fio job needs size"),
        ('type = "fio"\njob = [{ name = "../x", rw = "read" }]', "a job needs a name of"),
        (
            'type = "fio"\njob = [{ rw = "read", bs = "8 kB", size = "1 MB", exec_prerun = "reboot" }]',
            "'exec_prerun'",
        ),
        (
            'type = "fio"\njob = [{ rw = "read", bs = { vary = [] }, size = "1 MB" }]',
            "fio option 'bs': vary takes a list",
        ),
        ('type = "fio"\njob = [{ rw = "read", bs = [1], size = "1 MB" }]', "takes one value"),
        (
            'type = "fio"\njob = [{ job = "checkpoint", size = "1 MB" }, { job = "checkpoint", size = "2 MB" }]',
            "two jobs are called checkpoint",
        ),
    ],
)
def test_what_workloads_without_a_server_refuse(text: str, said: str) -> None:
    assert said in refused(f"[[workload]]\n{text}\n")


def test_a_fio_option_that_varies_makes_a_run_for_each_level() -> None:
    jobs = '{ job = "wal-append", size = "64 MB", bs = { vary = ["4 kB", "8 kB"] }, fsync = 0 }'
    with pytest.raises(PlanError, match="fsync = 0"):
        plan_of(f'[[workload]]\ntype = "fio"\njob = [{jobs}]\n')
    (workload,) = plan_of(
        f'[[workload]]\ntype = "fio"\njob = [{jobs.replace(", fsync = 0", "")}]\n'
    ).workloads
    assert ["wal-append-bs-4kB", "wal-append-bs-8kB"] == [run.name for run in workload.runs]
    assert ["4 kB", "8 kB"] == [run.levels["bs"] for run in workload.runs]
    assert {1} == {run.levels["fdatasync"] for run in workload.runs}, "the ready job's own"


def test_a_file_follows_the_memory(machine: MakeMachine) -> None:
    plan = plan_of('[machine]\nmemory = "1 GB"\n[[workload]]\ntype = "bonnie"\nfile_size = "2x memory"\n')
    (planned,) = expand(plan, machine()).cells
    assert {"file_bytes": 2 * GIB, "file_size_asked": "2x memory"} == dict(planned.loads[0].dataset.levels)
    with pytest.raises(PlanError, match="file_size is a multiple of the memory"):
        expand(plan_of('[[workload]]\ntype = "bonnie"\n'), None)


def test_mapasync_without_its_map_is_pruned() -> None:
    plan = plan_of(
        '[lmdb]\nsync = "mapasync"\nwritemap = { vary = [true, false] }\n[[workload]]\ntype = "lmdb"\n'
    )
    expansion = expand(plan, None)
    assert [True] == [planned.cell.cluster.settings["writemap"] for planned in expansion.cells]
    assert ("sync = mapasync changes nothing without writemap = true",) == sentences(
        expansion.pruned[0].reasons
    )


def test_pg_test_fsync_runs_last_beside_the_build_of_another_workload() -> None:
    fio = '[[workload]]\ntype = "fio"\npg_test_fsync = true\njob = [{ job = "wal-append", size = "64 MB" }]\n'
    plan = plan_of(
        '[[workload]]\ntype = "pgbench"\nscale = 1\n[[workload.run]]\nscript = "read-only"\nduration = 5\n'
        + fio
    )
    (workload,) = [each for each in plan.workloads if each.type == "fio"]
    assert ["wal-append", "pg_test_fsync"] == [run.name for run in workload.runs]
    assert is_pg_test_fsync(workload.runs[-1])
    assert not is_pg_test_fsync(workload.runs[0])
    assert (Levels(pg_test_fsync=True),) == workload.datasets
    # Sixteen measurements of 2 s, beside 8192 commits.
    load = Load(Dataset("fio", workload.datasets[0]), workload.runs[-1:])
    assert (32, 0) == (seconds_of(load), bytes_of(load))


def test_pg_test_fsync_without_postgresql_is_refused_with_the_way_out() -> None:
    said = refused(
        '[[workload]]\ntype = "fio"\npg_test_fsync = true\njob = [{ job = "wal-append", size = "64 MB" }]\n'
    )
    assert "workload[0].pg_test_fsync: it is a program of PostgreSQL, and nothing here builds one" in said


def test_without_pg_test_fsync_the_dataset_of_fio_stays_what_it_was() -> None:
    plan = plan_of('[[workload]]\ntype = "fio"\njob = [{ job = "wal-append", size = "64 MB" }]\n')
    assert (Levels(),) == plan.workloads[0].datasets


def test_a_file_that_the_memory_could_hold_is_warned_of(machine: MakeMachine) -> None:
    text = '[machine]\nmemory = "256 MB"\n[[workload]]\ntype = "bonnie"\nfile_size = { vary = ["511 MB", "512 MB"] }\n'
    warned = [each for each in expand(plan_of(text), machine()).warnings if "file_size" in each]
    assert ["workload.file_size: 511 MiB is less than 2 x the memory of 256 MiB"] == [
        each[:66] for each in warned
    ]


def test_the_time_of_lmdb_counts_every_commit_that_waits() -> None:
    tests = "fillrandsync,fillrandom,fillrandbatch,overwrite,readrandom"
    workload = (
        f'[[workload]]\ntype = "lmdb"\nentries = 100_000\ntests = {tests.split(",")}\nreads = ["warm"]\n'
    )
    (planned,) = plan_of(workload).workloads
    load = Load(Dataset(planned.type, planned.datasets[0]), planned.runs)
    seconds = {
        sync: seconds_of(load, Levels(sync=sync)) for sync in ("by-test", "full", "nometasync", "nosync")
    }
    assert seconds_of(load) == seconds["by-test"]
    # At 2 ms: 100 of fillrandsync; of fillrandom and overwrite each entry, of fillrandbatch each thousand.
    assert 0.2 == pytest.approx(seconds["by-test"] - seconds["nosync"])
    assert (100 + 2 * 100_000 + 100) * 0.002 == pytest.approx(seconds["full"] - seconds["nosync"])
    assert seconds["full"] == seconds["nometasync"]


def test_the_size_of_lmdbs_map_varies() -> None:
    text = '[[workload]]\ntype = "lmdb"\nmap_size = { vary = ["1 GB", "4 GB"] }\nvalue_size = "4 GB"\n'
    (workload,) = plan_of(text).workloads
    assert [GIB, 4 * GIB] == [levels["map_bytes"] for levels in workload.datasets]
    assert {4 * GIB} == {levels["value_bytes"] for levels in workload.datasets}, (
        "the library refuses it itself"
    )
    (plain,) = plan_of('[[workload]]\ntype = "lmdb"\n').workloads
    assert "map_bytes" not in plain.datasets[0]
