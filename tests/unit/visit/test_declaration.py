"""The class that a visit declares, by what its cell runs on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    RunSpec,
)
from bedplate.model.filesystem import TRAITS
from bedplate.model.levels import Levels
from bedplate.model.reason import sentences
from bedplate.model.visit import Durability, FlushCount, Outcome, ReadBack, RunRecord, Sample
from bedplate.visit.declaration import (
    WAITING_CLIENTS,
    WAITING_COMMITS,
    WAITING_FLUSHES,
    WAITING_TEST,
    after_run,
    declare,
    durability_of,
    flushes_between,
)
from bedplate.visit.life import Findings

FLUSHING = (FlushCount("data", "appending", 50, 100), FlushCount("data", "overwriting", 50, 50))
FLUSHING_LOG = (*FLUSHING, FlushCount("data", "logging", 50, 50))
SILENT = (FlushCount("data", "appending", 50, 0), FlushCount("data", "overwriting", 50, 0))


def cell(engine: str, filesystem: str = "ext4", **settings: Any) -> Cell:
    build = BuildLevels() if engine == "postgresql" else BuildLevels.unbuilt(engine)
    return Cell(
        DeviceLevels(),
        KernelLevels(),
        FilesystemLevels(filesystem),
        build,
        ClusterLevels(settings=Levels(settings)),
    )


def declared(
    of: Cell,
    counts: tuple[FlushCount, ...] = FLUSHING,
    *comparisons: ReadBack,
    server: dict[str, str] | None = None,
    journal_in_memory: bool = False,
) -> Durability:
    return declare(
        of,
        TRAITS[of.filesystem.type],
        comparisons,
        counts,
        server or {},
        journal_in_memory=journal_in_memory,
    )


def in_force(name: str, value: str | bool) -> ReadBack:
    return ReadBack(name, None, value, "mountinfo", matches=None)


def classes(found: Durability) -> tuple[str, str]:
    return found.volatile_cache, found.protected_cache


def test_a_server_is_judged_by_its_own_settings() -> None:
    assert ("durable", "durable") == classes(declared(cell("postgresql")))
    assert ("unsafe", "unsafe") == classes(declared(cell("postgresql"), server={"fsync": "off"}))
    # A setting of a server says nothing of an engine that has none.
    assert ("durable", "durable") == classes(declared(cell("none"), server={}))


@pytest.mark.parametrize(
    ("sync", "writemap", "counts", "expected"),
    [
        ("full", False, FLUSHING, ("durable", "durable")),
        ("full", True, FLUSHING, ("durable", "durable")),
        ("full", False, SILENT, ("unsafe", "durable")),
        ("nometasync", False, FLUSHING, ("bounded loss", "bounded loss")),
        ("nosync", False, FLUSHING, ("unsafe", "unsafe")),
        ("mapasync", True, FLUSHING, ("unsafe", "unsafe")),
    ],
)
def test_lmdb_is_judged_by_its_sync_mode(
    sync: str, writemap: bool, counts: tuple[FlushCount, ...], expected: tuple[str, str]
) -> None:
    assert expected == classes(declared(cell("lmdb", sync=sync, writemap=writemap), counts))


@pytest.mark.parametrize("settings", [{}, {"sync": "by-test"}])
def test_as_published_the_class_is_that_of_the_synchronous_tests_and_says_what_the_others_are(
    settings: dict[str, str],
) -> None:
    found = declared(cell("lmdb", **settings))
    assert ("durable", "durable") == classes(found)
    assert (
        "sync = by-test: this holds for the tests named sync; the others commit with nosync, and are unsafe "
        "with a volatile cache, unsafe with a protected one"
    ) == sentences(found.reasons)[-1]
    assert ("unsafe", "durable") == classes(declared(cell("lmdb", **settings), SILENT))
    assert found.without_waiting is not None
    assert ("unsafe", "unsafe") == classes(found.without_waiting)


def test_a_file_system_that_keeps_the_order_of_writes_bounds_the_loss_without_sync() -> None:
    data = in_force("filesystem.data", "journal")
    assert ("bounded loss", "bounded loss") == classes(declared(cell("lmdb", sync="nosync"), FLUSHING, data))
    ordered = in_force("filesystem.data", "ordered")
    assert ("unsafe", "unsafe") == classes(declared(cell("lmdb", sync="nosync"), FLUSHING, ordered))
    assert ("bounded loss", "bounded loss") == classes(declared(cell("lmdb", "zfs", sync="nosync")))
    assert "are bounded loss with a volatile cache" in sentences(declared(cell("lmdb", "zfs")).reasons)[-1]


def test_a_journal_in_memory_takes_lmdb_with_it() -> None:
    found = declared(cell("lmdb"), journal_in_memory=True)
    assert ("unsafe", "unsafe") == classes(found)
    assert any("journal is in memory" in reason for reason in sentences(found.reasons))


def test_without_an_engine_only_what_was_fsynced_is_spoken_of() -> None:
    found = declared(cell("none"))
    assert ("durable", "durable") == classes(found)
    assert "only written" in sentences(found.reasons)[-1]
    assert ("unsafe", "durable") == classes(declared(cell("none"), SILENT))
    assert ("unknown", "unknown") == classes(declared(cell("none"), ()))


def test_every_setting_of_the_environment_is_in_force_whether_asked_for_or_not() -> None:
    found = {
        item.name: (item.asked, item.effective)
        for item in durability_of(cell("lmdb")).opened(Levels(readahead=False))
    }
    assert {
        "lmdb.sync": (None, "by-test"),
        "lmdb.writemap": (None, False),
        "lmdb.readahead": (False, False),
        "lmdb.preallocation": (None, "none"),
    } == found


@pytest.mark.parametrize(
    ("commits", "flushes", "counts", "expected"),
    [
        (1000, 1050.0, FLUSHING_LOG, "durable"),
        (1000, 20.0, FLUSHING_LOG, "unknown"),
        # Too few to tell from what others flush.
        (12, 1.0, FLUSHING_LOG, "durable"),
        # The file system itself sends none, which is judged already.
        (1000, 0.0, (*SILENT, FlushCount("data", "logging", 50, 0)), "durable"),
    ],
)
def test_a_library_whose_commits_wait_has_a_flush_for_each(
    commits: int, flushes: float, counts: tuple[FlushCount, ...], expected: str
) -> None:
    facts: dict[str, str | int | float] = {
        WAITING_TEST: "fillseqsync",
        WAITING_COMMITS: commits,
        WAITING_FLUSHES: flushes,
    }
    run = RunRecord(RunSpec("write", "microbenchmark", Levels()), Outcome.COMPLETED, facts=facts)
    before = Durability("durable", "durable", "declared")
    findings = Findings(durability=before, flush_counts=counts)
    found = after_run(findings, run, {})
    assert found is not None
    assert (expected, expected) == classes(found)
    words = (
        "run write, fillseqsync: 20 flushes of the device for 1000 transactions that wrote, 0.02 each; "
        "1 client that waits for the medium needs 1 or more"
    )
    assert [words] * (expected == "unknown") == list(sentences(found.by_runs))
    assert before == after_run(findings, replace(run, facts={}), {})


@pytest.mark.parametrize(
    ("flushes", "fua", "expected"),
    [(500.0, 0, "durable"), (100.0, 0, "unknown"), (100.0, 1, "durable")],
)
def test_clients_of_an_own_engine_share_a_flush_and_a_device_may_write_without(
    flushes: float, fua: int, expected: str
) -> None:
    facts: dict[str, str | int | float] = {
        WAITING_COMMITS: 1000,
        WAITING_FLUSHES: flushes,
        WAITING_CLIENTS: 2,
    }
    run = RunRecord(RunSpec("acks-clients-2", "acks", Levels()), Outcome.COMPLETED, facts=facts)
    findings = Findings(
        durability=Durability("durable", "durable", "declared"),
        flush_counts=FLUSHING_LOG,
        device_facts=Levels(fua=fua),
    )
    found = after_run(findings, run, {})
    assert found is not None
    assert (expected, expected) == classes(found)


def test_flushes_of_the_journals_device_count_and_those_that_nobody_counted_are_not_known() -> None:
    def sample(**values: float) -> Sample:
        return Sample(0.0, 0.0, "", {name.replace("__", "."): value for name, value in values.items()})

    assert 7 == flushes_between(
        sample(device__flushes=1, journal_device__flushes=2),
        sample(device__flushes=4, journal_device__flushes=6),
    )
    assert flushes_between(sample(), sample(device__flushes=4)) is None
