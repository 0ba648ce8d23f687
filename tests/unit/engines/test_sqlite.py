"""SQLite in a plan, what its PRAGMAs promise, and what its driver is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bedplate.engines.sqlite.oracle import POWER_CUT
from bedplate.engines.sqlite.visit import DURABILITY, MICROBENCHMARK, bound_transactions
from bedplate.errors import PlanError
from bedplate.model.cell import engine_model
from bedplate.model.durability import FilesystemPromise
from bedplate.model.levels import Levels
from bedplate.model.visit import FlushCount
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.workloads.microbenchmark import model as named
from bedplate.workloads.microbenchmark.plan import ESTIMATE

if TYPE_CHECKING:
    from bedplate.model.plan import Plan

FLUSHING = FilesystemPromise(
    (FlushCount("data", "appending", 50, 100), FlushCount("data", "overwriting", 50, 50))
)


def plan_of(text: str) -> Plan:
    head = "[[filesystem]]\ntype = 'ext4'\n"
    return load_plan(head + text, source="p.toml", directory=Path("/nowhere"))


BENCH = '[[workload]]\ntype = "microbenchmark"\nengine = "sqlite"\n'


def classes(*, in_order: bool = False, **settings: str) -> tuple[str, str]:
    found = DURABILITY.declare(Levels(settings), {}, replace(FLUSHING, keeps_write_order=in_order))
    return found.volatile_cache, found.protected_cache


@pytest.mark.parametrize(
    ("journal_mode", "synchronous", "expected"),
    [
        ("delete", "full", "bounded loss"),
        ("delete", "normal", "bounded loss"),
        ("delete", "extra", "durable"),
        ("truncate", "full", "durable"),
        ("persist", "full", "durable"),
        ("wal", "full", "durable"),
        ("wal", "normal", "bounded loss"),
        ("wal", "off", "unsafe"),
        ("delete", "off", "unsafe"),
        ("memory", "full", "unsafe"),
        ("off", "extra", "unsafe"),
    ],
)
def test_the_class_is_that_of_the_manual(journal_mode: str, synchronous: str, expected: str) -> None:
    assert (expected, expected) == classes(journal_mode=journal_mode, synchronous=synchronous)


def test_defaults_may_lose_one_transaction_and_kept_order_saves_what_is_off() -> None:
    assert ("bounded loss", "bounded loss") == classes(synchronous="full")
    assert ("bounded loss", "bounded loss") == classes(synchronous="off", in_order=True)
    assert ("durable", "durable") == classes(synchronous="full", locking_mode="exclusive")
    assert [1, 1, 1000, None] == [
        bound_transactions(Levels(journal_mode=journal, synchronous=mode))
        for journal, mode in (("delete", "full"), ("truncate", "normal"), ("wal", "normal"), ("wal", "full"))
    ]


def test_a_wal_loses_no_more_than_comes_between_two_checkpoints() -> None:
    in_wal = Levels(journal_mode="wal", synchronous="normal")
    assert [50, None] == [bound_transactions(in_wal.updated(wal_autocheckpoint=pages)) for pages in (50, 0)]


def test_by_test_has_a_class_for_each_kind_of_test() -> None:
    found = DURABILITY.declare(Levels(journal_mode="wal"), {}, FLUSHING)
    assert "durable" == found.volatile_cache
    assert found.without_waiting is not None
    assert "unsafe" == found.without_waiting.volatile_cache
    assert "sync-by-test" == found.reasons[-1].code


def test_only_what_syncs_at_a_commit_waits() -> None:
    model = engine_model("sqlite")
    waits = {
        (journal, mode): model.waits_in_test(Levels(journal_mode=journal, synchronous=mode), synchronous=True)
        for journal in ("delete", "wal")
        for mode in ("off", "normal", "full")
    }
    assert {("delete", "normal"), ("delete", "full"), ("wal", "full")} == {
        each for each, is_so in waits.items() if is_so
    }
    assert not model.waits_in_test(Levels(), synchronous=False)


def test_every_pragma_is_a_factor_and_the_page_size_is_the_block_size() -> None:
    plan = plan_of(
        '[sqlite]\npage_size = { vary = ["512 B", "64 kB"] }\njournal_mode = "wal"\nsynchronous = "full"\n'
        'wal_autocheckpoint = 200\ncache_size = "64 MB"\nmmap_size = { vary = [0, "1 GB"] }\nlocking_mode = "normal"\n'
        'auto_vacuum = "full"\n' + BENCH
    )
    cells = [planned.cell for planned in expand(plan, None).cells]
    assert 4 == len(cells)
    assert {512, 65536} == {cell.database_block_bytes for cell in cells}
    assert {"cache_size": 64_000_000, "auto_vacuum": "full"}.items() <= dict(
        cells[0].cluster.settings
    ).items() or {
        "cache_size": 64 * 2**20,
        "auto_vacuum": "full",
    }.items() <= dict(cells[0].cluster.settings).items()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('journal_mode = "wall"', "allowed: delete, truncate, persist, memory, wal, off"),
        ("page_size = 1000", "page_size"),
        ("wal_autocheckpoint = -1", "a whole number from 0"),
        ('journal = "wal"', "unknown key; did you mean journal_mode"),
    ],
)
def test_a_wrong_key_or_level_is_a_sentence(text: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        plan_of(f"[sqlite]\n{text}\n{BENCH}")


def test_a_pragma_without_effect_is_pruned() -> None:
    plan = plan_of(
        '[sqlite]\njournal_mode = { vary = ["wal", "delete"] }\nsynchronous = { vary = ["full", "extra"] }\n'
        + BENCH
    )
    (pruned,) = expand(plan, None).pruned
    assert ["pragma-without-effect"] == [reason.code for reason in pruned.reasons]
    plan = plan_of(f"[sqlite]\nwal_autocheckpoint = 10\n{BENCH}")
    assert "changes nothing without journal_mode = wal" in expand(plan, None).pruned[0].reasons[0].sentence


def test_two_engines_share_the_runs_of_one_workload() -> None:
    plan = plan_of('[[workload]]\ntype = "microbenchmark"\nengine = { vary = ["lmdb", "sqlite"] }\n')
    cells = expand(plan, None).cells
    assert ["lmdb", "sqlite"] == [planned.cell.build.engine for planned in cells]
    assert cells[0].loads == cells[1].loads
    for text, said in (
        ('type = "lmdb"\nengine = "sqlite"', 'write type = "microbenchmark"'),
        ('type = "microbenchmark"\nengine = "sqlite"\nmap_size = "1 GB"', "map_size is LMDB's alone"),
        ('type = "microbenchmark"\nengine = "oracle"', "allowed: lmdb, sqlite"),
    ):
        with pytest.raises(PlanError, match=said):
            plan_of(f"[[workload]]\n{text}\n")


def test_a_driver_is_told_what_the_cell_asks_for_and_how_the_test_commits() -> None:
    settings = Levels(journal_mode="wal", page_size=8192)
    told = MICROBENCHMARK.opened(settings, Levels(), synchronous=False, fresh=True)
    assert {"journal_mode": "wal", "page_size": 8192, "synchronous": "off"} == dict(told)
    assert "synchronous" not in MICROBENCHMARK.opened(settings, Levels(), synchronous=None, fresh=False)
    assert {"synchronous": "full"}.items() <= POWER_CUT.facts_of(settings).items()
    assert 30 == POWER_CUT.facts_of(Levels(synchronous="off"))["pressure_ms"]


def test_one_connection_that_keeps_the_others_out_is_refused_where_a_test_needs_several() -> None:
    exclusive = '[sqlite]\nlocking_mode = { vary = ["normal", "exclusive"] }\n' + BENCH
    for tests, test in (("", "readwhilewriting"), ('tests = ["tpcb"]\n', "tpcb")):
        with pytest.raises(
            PlanError, match=f"{test} need several connections .* SQLite's locking_mode = exclusive"
        ):
            plan_of(exclusive + tests)
    assert 2 == len(plan_of(exclusive + 'tests = ["fillseq", "readseq"]\n').clusters)


def test_processes_have_a_run_for_each_number_of_them() -> None:
    plan = plan_of(
        f'[sqlite]\nbusy_timeout = {{ vary = [0, 5000] }}\nbegin = "deferred"\n{BENCH}'
        'tests = ["tpcb", "fillseq", "readseq"]\nreads = ["warm"]\nprocesses = { vary = [1, 4] }\nduration = "5 s"\n'
    )
    runs = {run.name: run.levels for run in plan.workloads[0].runs}
    assert ["write", "read-warm", "tpcb-processes-1", "tpcb-processes-4"] == list(runs)
    assert {"kind": "write", "tests": "tpcb", "processes": 4, "duration_s": 5.0} == dict(
        runs["tpcb-processes-4"]
    )
    (cell, _) = (planned.cell for planned in expand(plan, None).cells)
    told = MICROBENCHMARK.opened(cell.cluster.settings, Levels(), synchronous=True, fresh=True)
    assert {"begin": "deferred", "busy_timeout": 0, "synchronous": "full"} == dict(told)
    assert {"synchronous": "full"} == dict(POWER_CUT.told(cell.cluster.settings))
    load = expand(plan, None).cells[0].loads[0]
    seconds = {run.name: ESTIMATE.run_seconds(cell, load, run, emulated=False) for run in load.runs}
    assert 5 < seconds["tpcb-processes-4"] < 10


def test_a_test_that_an_engine_does_not_have_is_refused() -> None:
    assert "tpcb" not in {test for run in plan_of(BENCH).workloads[0].runs for test in named.tests_of(run)}
    with pytest.raises(
        PlanError, match="tpcb: LMDB does not have it; take it out, or leave lmdb out of engine"
    ):
        plan_of(
            '[[workload]]\ntype = "microbenchmark"\nengine = { vary = ["lmdb", "sqlite"] }\ntests = ["tpcb"]\n'
        )


def test_processes_wait_for_their_commits_and_are_never_left_out() -> None:
    model = engine_model("sqlite")
    assert named.is_synchronous("tpcb")
    assert not named.demands_waiting("tpcb")
    assert "full" == model.commit_mode(Levels(), synchronous=named.is_synchronous("tpcb"))
