"""Power cuts of a server whose pages are written untorn, for real: what a recording keeps of them, and where it is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bedplate.campaign.preparation import prepare_drivers
from bedplate.cuts.points import read_cuts
from bedplate.cuts.records import (
    RECORDING_FILE,
    PageCounts,
    PageFacts,
    Placement,
    PointOutcome,
    RecordingFacts,
)
from bedplate.engines.mariadb.prepare import PREPARATION
from bedplate.errors import BedplateError
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.native_driver import LIBFUSE3, ensure_driver, library_requirement
from bedplate.host.recorder import recorder_reasons
from bedplate.model import codec
from bedplate.model.cell import BuildLevels, ClusterLevels, Dataset, FilesystemLevels, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.reason import sentences
from bedplate.model.visit import EngineBuild, Outcome, RunRecord, VisitRequest
from bedplate.units import MIB
from bedplate.visit.declaration import UNTORN_SHIM

if TYPE_CHECKING:
    Bench = Any

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

SOURCES = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    requirement = library_requirement(LIBFUSE3, reason="the power-cut recorder", commands=Commands())
    if not requirement.found:
        pytest.skip(requirement.sentence)
    if reasons := recorder_reasons():
        pytest.skip("; ".join(reasons))
    folder: Path = tmp_path_factory.mktemp("drivers")
    folder.chmod(0o755)
    library = ensure_driver(
        UNTORN_SHIM.name,
        source=SOURCES / "drivers" / f"{UNTORN_SHIM.program}.c",
        cache_directory=cache_directory() / "drivers",
        commands=Commands(),
        is_preloaded=True,
    )
    return {**prepare_drivers(["power_cut"], ["postgresql"]), UNTORN_SHIM.name: str(library)}


@pytest.fixture(scope="module")
def mariadb() -> EngineBuild:
    try:
        return PREPARATION.ensure(BuildLevels.unbuilt("mariadb"), lambda _: None, tarball=None)
    except BedplateError as error:
        pytest.skip(f"the packages cannot be had here: {error}")


def request(bench: Bench, drivers: dict[str, str], level: str, filesystem: FilesystemLevels) -> VisitRequest:
    asked: VisitRequest = bench.request(filesystem)
    settings = Levels(full_page_writes="off", debug_io_direct="data", io_method="sync")
    levels = Levels(points=4, profiles="subset-4k,ordered", cache_bytes=8 * MIB, seed=3, sought=0)
    return replace(
        asked,
        cell=replace(asked.cell, cluster=ClusterLevels(settings=settings, untorn_writes=level)),
        dataset=Dataset(
            "power_cut", Levels(engine="postgresql", image_bytes=512 * MIB, clients=2, duration_s=1)
        ),
        runs=(RunSpec("power-cut", "power_cut", levels),),
        native_drivers=drivers,
    )


def of_mariadb(asked: VisitRequest, build: EngineBuild) -> VisitRequest:
    settings = Levels(innodb_doublewrite="OFF", innodb_log_file_buffering="ON", innodb_use_native_aio="OFF")
    cluster = replace(asked.cell.cluster, settings=settings)
    return replace(
        asked,
        build=build,
        cell=replace(asked.cell, build=BuildLevels.unbuilt("mariadb"), cluster=cluster),
        dataset=replace(asked.dataset, levels=asked.dataset.levels.updated(engine="mariadb")),
    )


def recorded(bench: Bench, asked: VisitRequest) -> RecordingFacts:
    bench.live(asked)
    (directory,) = (bench.directory / "runs").iterdir()
    run = codec.read(RunRecord, directory / "record.json")
    assert (Outcome.COMPLETED, ()) == (run.outcome, run.reasons)
    return codec.read(RecordingFacts, directory / RECORDING_FILE)


def all_counted(found: PageFacts | None, level: str) -> None:
    assert found is not None
    counts = found.counts
    assert counts is not None
    assert (0, 0) == (counts.refusals, counts.no_pages)
    assert (counts.atomic > 0, counts.plain > 0) == (level == "on", level == "count")
    assert found.probe == "taken"
    assert found.direct_files > 0
    assert found.after.pages >= found.before.pages > 0


@pytest.mark.parametrize("level", ["on", "count"])
def test_every_page_of_the_recorded_server_is_counted(
    level: str, bench: Bench, drivers: dict[str, str]
) -> None:
    found = recorded(bench, request(bench, drivers, level, FilesystemLevels("xfs")))
    assert found.facts["wal_page_images"] == 0
    all_counted(found.pages, level)
    assert found.pages is not None
    assert found.pages.counts is not None
    assert min(found.pages.counts.extensions, found.pages.counts.buffered) > 0
    assert [] == bench.left_behind()


@pytest.mark.parametrize("level", ["on", "count"])
def test_every_page_of_innodb_is_counted_and_none_of_its_log(
    level: str, bench: Bench, drivers: dict[str, str], mariadb: EngineBuild
) -> None:
    asked = of_mariadb(request(bench, drivers, level, FilesystemLevels("xfs")), mariadb)
    found = recorded(bench, asked).pages
    all_counted(found, level)
    assert found is not None
    assert found.page_bytes == 16384
    assert [] == bench.left_behind()


def test_a_recovery_that_is_cut_again_writes_its_pages_as_the_recording_did(
    bench: Bench, drivers: dict[str, str]
) -> None:
    # With "count" a cut may be bad, and no recovery behind it is cut again: plans/page-images-recovery.toml has that.
    asked = request(bench, drivers, "on", FilesystemLevels("xfs"))
    (run,) = asked.runs
    bench.live(
        replace(
            asked,
            dataset=replace(asked.dataset, levels=asked.dataset.levels.updated(recut=16)),
            runs=(replace(run, levels=run.levels.updated(points=8, recut=16)),),
        )
    )
    (directory,) = (bench.directory / "runs").iterdir()
    record = codec.read(RunRecord, directory / "record.json")
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    recuts = read_cuts(directory).recuts
    wholes = [each for each in recuts if each.point.placement is Placement.WHOLE]
    assert len(wholes) == 2
    assert len(recuts) > len(wholes)
    found = [each.pages for each in wholes]
    assert {PointOutcome.OK} == {each.outcome for each in wholes}
    for pages in found:
        assert pages is not None
        assert pages.counts is not None
        assert pages.direct_files > 0
        assert pages.after.pages > 0
        assert (0, 0, False) == (pages.counts.refusals, pages.counts.no_pages, pages.counts.is_empty)
    together = PageCounts.together(pages.counts for pages in found if pages and pages.counts)
    assert together.atomic > 0
    assert not together.plain
    assert [] == [each for each in recuts if each.outcome.is_bad]
    assert [] == bench.left_behind()


def test_a_file_system_that_takes_no_untorn_write_is_refused_before_anything_is_cut(
    bench: Bench, drivers: dict[str, str]
) -> None:
    asked = request(bench, drivers, "on", FilesystemLevels("ext4"))
    bench.live(asked)
    (directory,) = (bench.directory / "runs").iterdir()
    run = codec.read(RunRecord, directory / "record.json")
    assert Outcome.FAILED is run.outcome
    (why,) = sentences(run.reasons)
    assert "came to EOPNOTSUPP" in why
    assert [] == bench.left_behind()
