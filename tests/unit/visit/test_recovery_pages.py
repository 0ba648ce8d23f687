"""The server of a recovery that is recorded writes its pages as the recorded one did, and what it wrote is known."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.support.tools.filesystem_site import device_at
from tests.support.tools.written_log import FLUSH, Written, written_log

from bedplate.cuts.choice import Recut
from bedplate.cuts.log import Acknowledged, CrashState
from bedplate.cuts.records import CutPoint, PageLayout, Placement, PointRecord, Profile, RecoveredPages
from bedplate.errors import RequirementMissing
from bedplate.host.command import Account, Commands
from bedplate.host.pages import FileExtent
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels
from bedplate.visit.cuts import OracleAnswer, Subject
from bedplate.visit.declaration import UNTORN_SHIM
from bedplate.visit.server import ServerSite
from bedplate.workloads.power_cut import bench, tearing, visit
from bedplate.workloads.power_cut import worker as power_cut_worker
from bedplate.workloads.power_cut.bench import DATA_DIRECTORY, Built, Recovered, ReplayJob, SecondCuts, judge
from bedplate.workloads.power_cut.tearing import PagePlaces
from bedplate.workloads.power_cut.visit import _Cuts
from bedplate.workloads.power_cut.worker import CutSite

if TYPE_CHECKING:
    from bedplate.workloads.power_cut.log import Room

PAGE = 8192
LIBRARY = "/nowhere/untorn_writes.so"
WHOLE = OracleAnswer({0: 3})
WINDOW = CrashState((90,), (90,), volatile_writes=0, volatile_bytes=0, kept_writes=0, kept=())
JOB = ReplayJob(
    filesystem=FilesystemLevels("xfs"),
    subject=Subject("postgresql", 1, Levels(), Levels({UNTORN_SHIM.name: LIBRARY})),
    points=(),
    image_bytes=1 << 20,
    window_bytes=1 << 20,
    measured_from=1,
    untorn_writes="on",
    page_bytes=PAGE,
)
PROMISED = Acknowledged(3, {0: 3}, None, cast("Any", None), {})
PAGES = RecoveredPages(1, PageLayout(1, 2, 1, 0, 0, 0))


class Engine:
    """Writes seven pages untorn, if it was given where to count them, and has one file open with direct I/O."""

    may_link = False

    def __init__(self, answer: OracleAnswer = WHOLE) -> None:
        self.answer = answer
        self.environments: list[Mapping[str, str]] = []

    def examine(self, site: ServerSite, *_: object) -> OracleAnswer:
        self.environments.append(site.environment)
        counts = site.environment.get("BEDPLATE_UNTORN_COUNTS")
        if counts is not None:
            assert not any(Path(counts).read_bytes())
            Path(counts).write_bytes(struct.pack("=9Q", 7, *[0] * 8))
        return self.answer


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    found, filesystem = (
        Engine(),
        SimpleNamespace(
            traits=SimpleNamespace(checked_by_fsck=lambda _: False),
            mount=lambda *_, **__: None,
            unmount=lambda *_, **__: None,
            complaints=lambda _: (),
            check=lambda *_: SimpleNamespace(clean=True),
        ),
    )
    relation = tmp_path / "mount" / DATA_DIRECTORY / "relation"
    monkeypatch.setattr(power_cut_worker, "filesystem_for", lambda _: filesystem)
    monkeypatch.setattr(power_cut_worker, "follow_no_links", lambda _: None)
    monkeypatch.setattr(power_cut_worker, "server_account", lambda: Account("me", -1, -1))
    monkeypatch.setattr(power_cut_worker, "cut_engine", lambda _: found)
    monkeypatch.setattr(tearing, "direct_files", lambda _: frozenset({relation}))
    monkeypatch.setattr(tearing, "extents_of", lambda _: (FileExtent(0, 2 * PAGE, 64 * PAGE),))
    return found


def site_of(folder: Path, job: ReplayJob) -> CutSite:
    site = CutSite(job, folder, commands=cast("Any", SimpleNamespace(run=lambda *_, **__: None)))
    data = folder / "mount" / DATA_DIRECTORY
    data.mkdir()
    (data / "relation").write_bytes(bytes(2 * PAGE))
    return site


def recovered(site: CutSite) -> Recovered:
    return site.recover([device_at("/dev/below")], {0: 3}, lambda: None)[0]


@pytest.mark.parametrize("mode", ["on", "count"])
def test_the_server_of_a_recorded_recovery_has_the_library_and_its_pages_are_counted(
    mode: str, engine: Engine, tmp_path: Path
) -> None:
    site = site_of(tmp_path, replace(JOB, untorn_writes=mode))
    found = [recovered(site).pages for _ in range(2)]
    environment, again = engine.environments
    assert (LIBRARY, str(PAGE), mode) == tuple(
        environment[name] for name in ("LD_PRELOAD", "BEDPLATE_UNTORN_PAGE_BYTES", "BEDPLATE_UNTORN_WRITES")
    )
    # Each recovery counts from 0.
    assert environment == again
    for each in found:
        assert each is not None
        assert each.counts is not None
        assert (7, 1, 2) == (each.counts.atomic, each.direct_files, each.after.pages)


def test_what_is_known_of_its_pages_is_in_the_record_of_the_whole_recovery(
    engine: Engine, tmp_path: Path
) -> None:
    whole = CutPoint(8, 100, Profile.ORDERED, Placement.WHOLE, 0, recovery_of=3)
    found = recovered(site_of(tmp_path, JOB))
    assert engine.environments
    assert found.pages is not None
    assert found.pages == judge(whole, WINDOW, PROMISED, found, WHOLE).pages


def test_of_a_server_that_writes_as_it_likes_nothing_is_counted(engine: Engine, tmp_path: Path) -> None:
    unit = recovered(site_of(tmp_path, replace(JOB, untorn_writes="off"))).pages
    assert unit is not None
    assert (None, 2) == (unit.counts, unit.after.pages)
    assert [{}] == engine.environments


def test_of_a_recovery_that_left_damage_pages_do_not_count(engine: Engine, tmp_path: Path) -> None:
    engine.answer = OracleAnswer(None, detected=("invalid page in block 7",))
    assert recovered(site_of(tmp_path, JOB)).pages is None


def test_a_server_that_is_only_asked_has_no_library(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_of(tmp_path, JOB)
    monkeypatch.setattr(site, "_devices", lambda *_: [device_at("/dev/image")])
    found, _ = site.examine(Built(WINDOW, (tmp_path / "disk",)), {0: 3})
    assert [{}] == engine.environments
    assert found.pages is None


def test_without_the_library_no_recovery_is_recorded(engine: Engine, tmp_path: Path) -> None:
    site = site_of(tmp_path, replace(JOB, subject=replace(JOB.subject, drivers=Levels())))
    with pytest.raises(RequirementMissing, match="names no driver untorn_writes"):
        recovered(site)
    assert [] == engine.environments


class Examined:
    """A recovery that wrote pages, and images of it that are all good."""

    room = cast("Room", SimpleNamespace(demand=lambda _: None))

    def recover(self, *_: object) -> tuple[Recovered, OracleAnswer]:
        return Recovered(mounted=True, pages=PAGES, places=PagePlaces(PAGE, ((64 * PAGE, 68 * PAGE),))), WHOLE

    def replay(self, point: CutPoint, *_: object) -> PointRecord:
        return judge(point, WINDOW, PROMISED, Recovered(mounted=True), WHOLE)


@pytest.mark.parametrize(
    ("profile", "pages_found"),
    [
        (Profile.SUBSET_4K, PAGES),
        # Of one page, and of four, which a unit of 16 kB does not cover.
        (Profile.UNTORN_16K, replace(PAGES, writes=2, uncovered_writes=1)),
    ],
)
def test_the_record_of_a_whole_recovery_has_its_pages_and_those_of_cuts_in_it_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: Profile, pages_found: RecoveredPages
) -> None:
    @contextmanager
    def below(_: ReplayJob, __: Built, ___: Path, folder: Path, **____: object) -> Iterator[object]:
        own = [Written(sector=64 * PAGE // 512, data=b"p" * length) for length in (PAGE, 4 * PAGE)]
        other = Written(sector=1, data=b"w" * 512)
        written_log(folder / "log", [other, *own, Written(flags=FLUSH)])
        yield SimpleNamespace(seal=lambda: None), []

    monkeypatch.setattr(bench, "below_recorder", below)
    job = replace(JOB, points=(CutPoint(3, 1, profile, Placement.UNIFORM, 0),))
    again = SecondCuts(job, tmp_path, Examined(), commands=Commands(), workers=1)
    first = Built(WINDOW, (tmp_path / "disk",))
    (tmp_path / "disk").write_bytes(bytes(1 << 20))
    found = again.cut(Recut(3, 10, 2, 1), first, PROMISED, recorder=tmp_path, log_folder=tmp_path)
    assert {10: None, 11: None, 12: pages_found} == {each.point.number: each.pages for each in found}


@pytest.mark.parametrize(
    ("level", "unit", "page_bytes"),
    [("off", None, None), ("on", None, PAGE), ("count", None, PAGE), ("off", Profile.UNTORN_16K, PAGE)],
)
def test_a_job_has_how_its_cell_writes_pages(
    level: str, unit: Profile | None, page_bytes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visit, "choose_points", lambda *_, **__: ())
    monkeypatch.setattr(visit, "subject_of", lambda *_: JOB.subject)
    cell = SimpleNamespace(
        filesystem=JOB.filesystem,
        cluster=SimpleNamespace(untorn_writes=level),
        database_block_bytes=PAGE,
    )
    cuts = SimpleNamespace(
        _bench=SimpleNamespace(cell=cell),
        _context=SimpleNamespace(dataset=SimpleNamespace(levels=Levels())),
        _unit=unit,
        _recuts=lambda *_: (),
        **dict.fromkeys(("_points", "_seed", "_sought", "_placed", "_window_bytes", "_image_bytes"), 1),
        **dict.fromkeys(("_profiles", "_engine", "_engine_name"), ()),
    )
    job = _Cuts._job(
        cast("Any", cuts),
        cast("Any", None),
        0,
        9,
        journal_bytes=None,
        waiting=(),
        commit_spans=(),
        enumerated=(),
        loses_journal=False,
    )
    assert (level, page_bytes) == (job.untorn_writes, job.page_bytes)
