"""Why a cut of a real recording was bad, and a bundle that shows it without bedplate."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.host.test_power_cut_oracle import OF_A_STRANGER, RESTORING, folder_open_to_all
from tests.host.test_power_cut_visit import Cut, replayed, request

from bedplate.campaign.preparation import prepare_drivers
from bedplate.cuts.blame import Party, Repeatability, WrittenPlace
from bedplate.engines.mariadb.prepare import PREPARATION as MARIADB
from bedplate.errors import BedplateError
from bedplate.host.block_tree import all_loops
from bedplate.host.command import Commands
from bedplate.host.ledger import release_orphans
from bedplate.host.native_driver import LIBFUSE3, library_requirement
from bedplate.host.process import wait_until
from bedplate.host.recorder import recorder_reasons
from bedplate.host.scratch_device import MEMORY_DIRECTORY
from bedplate.model.cell import BuildLevels, FilesystemLevels
from bedplate.study.power_cut_stories import read_stories

if TYPE_CHECKING:
    from bedplate.cuts.blame import Story

    Bench = Any

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

SOURCES = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def drivers() -> dict[str, str]:
    requirement = library_requirement(LIBFUSE3, reason="the power-cut recorder", commands=Commands())
    if not requirement.found:
        pytest.skip(requirement.sentence)
    if reasons := recorder_reasons():
        pytest.skip("; ".join(reasons))
    return dict(prepare_drivers(["power_cut"], ["postgresql", "lmdb", "sqlite"]))


class Stored:
    """A visit as a study of its own."""

    def __init__(self, bench: Bench, cut: Cut) -> None:
        self.bench, self.cut = bench, cut
        self.study = bench.base / "study"
        visit = self.study / "visits" / "ext4" / "dataset" / "1.1"
        visit.parent.mkdir(parents=True)
        shutil.copytree(bench.directory, visit)
        (self.study / "study.json").write_text('{"format_version": 1}')
        self.run = visit / "runs" / cut.directory.name

    def call(self, words: str) -> subprocess.CompletedProcess[str]:
        """A function of the commands' module, with `study` as its first argument."""
        process = self.start(words)
        said, errors = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, said, errors)

    def start(self, words: str) -> subprocess.Popen[str]:
        """The same, under way."""
        code = (
            "import sys; from pathlib import Path; from bedplate.cli.cuts import blame, bundle; "
            f"study = Path(sys.argv[1]); sys.exit({words})"
        )
        environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCES / "src"),
            "BEDPLATE_STATE": str(self.bench.state),
        }
        # As a person names it; the workers stand elsewhere.
        argv = [sys.executable, "-c", code, self.study.name]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            argv, stdout=pipe, stderr=pipe, text=True, env=environment, cwd=self.study.parent
        )

    def story(self, number: int) -> Story:
        done = self.call(f"blame(study, 'power-cut', {number})")
        assert 0 == done.returncode, done.stderr
        return read_stories(self.study, self.run)[number]


def reproduced(bundle: Path, *words: str, **places: str) -> subprocess.CompletedProcess[str]:
    """The script, by nothing but the system's own programs."""
    argv = ["unshare", "--mount", "--propagation", "private", "sh", str(bundle / "reproduce.sh"), *words]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **places}
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)


def test_a_file_system_without_flushes_is_blamed_and_its_bundle_reproduced_by_anybody(
    bench: Bench, drivers: dict[str, str], tmp_path: Path
) -> None:
    if shutil.which("mdb_dump") is None:
        pytest.skip("mdb_dump is not installed (lmdb-utils)")
    levels = FilesystemLevels("ext4", barrier=False)
    asked = request(bench, drivers, engine="lmdb", filesystem=levels, settings={"sync": "full"}, points=4)
    stored = Stored(bench, Cut(bench, asked))
    bad = next(record.point.number for record in stored.cut.of() if record.outcome.is_bad)
    story = stored.story(bad)
    assert (Party.FILE_SYSTEM, "flushes-missing") == (story.party, story.reason.code), story.lines
    assert story.evidence.is_smallest
    assert Repeatability.STEADY is story.evidence.steadiness
    assert 1 <= len(story.evidence.smallest) < story.evidence.lost_writes
    assert all(write.place is not WrittenPlace.UNKNOWN for write in story.evidence.smallest), story.lines
    assert all(write.writers for write in story.evidence.smallest), story.lines
    assert "before the cut by " in story.lines[3]

    done = stored.call(f"bundle(study, 'power-cut', {bad}, output=Path({str(tmp_path / 'made')!r}))")
    assert 0 == done.returncode, (done.stdout, done.stderr)
    bundle = tmp_path / "elsewhere"
    shutil.move(tmp_path / "made", bundle)
    script = (bundle / "reproduce.sh").read_text()
    assert len(script.splitlines()) <= 100
    assert "bedplate" not in script
    shown = reproduced(bundle)
    assert (0, True) == (shown.returncode, shown.stdout.startswith("bad: ")), (shown.stdout, shown.stderr)
    mended = reproduced(bundle, "mended")
    assert (0, "all is well\n") == (mended.returncode, mended.stdout), mended.stderr
    assert [] == bench.left_behind()
    nothing_stays_of_a_bundle_that_is_killed_while_its_script_is_tried(stored, bad, tmp_path)


def nothing_stays_of_a_bundle_that_is_killed_while_its_script_is_tried(
    stored: Stored, bad: int, tmp_path: Path
) -> None:
    process = stored.start(f"bundle(study, 'power-cut', {bad}, output=Path({str(tmp_path / 'killed')!r}))")
    folder = f"/bedplate-{process.pid}-"

    def tried() -> list[str]:
        return [file for _, file in all_loops() if folder in file and "/tried/" in file]

    assert wait_until(lambda: bool(tried()) or process.poll() is not None, deadline_s=600.0)
    assert tried(), process.communicate()
    process.kill()
    process.communicate()
    report = release_orphans(stored.bench.state, Commands())
    assert () == report.problems
    assert [] == tried()
    assert [] == list(MEMORY_DIRECTORY.glob(f"{folder[1:]}*"))
    assert [] == stored.bench.left_behind()


def test_a_torn_page_of_mariadb_is_shown_by_its_bundle(
    bench: Bench, drivers: dict[str, str], tmp_path: Path
) -> None:
    try:
        build = MARIADB.ensure(BuildLevels.unbuilt("mariadb"), lambda _: None, tarball=None)
    except BedplateError as error:
        pytest.skip(str(error))
    settings = {"innodb_doublewrite": "OFF"}
    asked = request(bench, drivers, engine="mariadb", build=build, settings=settings, points=24)
    stored = Stored(bench, Cut(bench, asked))
    bad = [record.point.number for record in stored.cut.of() if record.outcome.is_bad]
    if not bad:
        pytest.skip("no cut of this recording tore a page")
    story = stored.story(bad[0])
    assert Party.ENGINE is story.party, story.lines
    bundle = tmp_path / "made"
    done = stored.call(f"bundle(study, 'power-cut', {bad[0]}, output=Path({str(bundle)!r}))")
    assert 0 == done.returncode, (done.stdout, done.stderr)
    assert len((bundle / "check.sh").read_text().splitlines()) <= 100
    # The system's own server, if there is one, is of another release or of this.
    shown = reproduced(bundle)
    assert shown.returncode in (0, 4), (shown.stdout, shown.stderr)


def test_a_device_that_lies_is_blamed_where_the_file_system_flushes(
    bench: Bench, drivers: dict[str, str]
) -> None:
    stored = Stored(
        bench, Cut(bench, request(bench, drivers, engine="lmdb", settings={"sync": "full"}, points=4))
    )
    control = next(record.point.number for record in stored.cut.of(control=True) if record.outcome.is_bad)
    story = stored.story(control)
    assert (Party.DEVICE, "device-lied") == (story.party, story.reason.code), story.lines
    assert all(write.place is not WrittenPlace.UNKNOWN for write in story.evidence.smallest), story.lines


def test_sqlites_own_defaults_acknowledge_before_a_name_is_synced(
    bench: Bench, drivers: dict[str, str]
) -> None:
    settings = {"journal_mode": "delete", "synchronous": "full"}
    stored = Stored(bench, Cut(bench, request(bench, drivers, engine="sqlite", settings=settings, points=40)))
    bad = [record for record in (*stored.cut.of(), *stored.cut.of(ordered=True)) if record.outcome.is_bad]
    if not bad:
        pytest.skip("no cut of this recording lost anything")
    story = stored.story(bad[0].point.number)
    assert (Party.ENGINE, "sqlite-journal-deleted") == (story.party, story.reason.code), story.lines
    # What holds the deletion is missing, or was not even sent when the power went: as the recording came out.
    missing = story.evidence.mended_by if story.evidence.bad_without_loss else story.evidence.smallest[0]
    assert missing is not None
    assert WrittenPlace.JOURNAL is missing.place


def test_a_torn_page_of_postgresql_has_its_relations_name_and_its_bundle_shows_it(
    bench: Bench, drivers: dict[str, str], tmp_path: Path
) -> None:
    asked = request(bench, drivers, settings={"full_page_writes": "off"}, points=24)
    stored = Stored(bench, Cut(bench, asked))
    bad = [record.point.number for record in stored.cut.of() if record.outcome.is_bad]
    if not bad:
        pytest.skip("no cut of this recording tore a page")
    story = stored.story(bad[0])
    assert (Party.ENGINE, "full-page-writes-off") == (story.party, story.reason.code), story.lines
    # Any relation's page may be torn, one of the catalogue too.
    assert ": relation " in story.lines[2], story.lines
    assert ", page " in story.lines[2], story.lines
    bundle = tmp_path / "made"
    done = stored.call(f"bundle(study, 'power-cut', {bad[0]}, output=Path({str(bundle)!r}))")
    assert 0 == done.returncode, (done.stdout, done.stderr)
    for name in ("reproduce.sh", "check.sh", "confine.sh"):
        script = (bundle / name).read_text()
        assert len(script.splitlines()) <= 100
        assert "bedplate" not in script.replace("-d bedplate ", "")
    # A server of another version, or none, is no verdict.
    done = reproduced(bundle)
    assert done.returncode in (0, 4), (done.stdout, done.stderr)


def planted(folder: Path, open_to_all: Path) -> None:
    """All that a data directory may tell a server to do, written into one that runs and does not read it again."""
    for text in OF_A_STRANGER.values():
        with (folder / "postgresql.conf").open("a") as file:
            file.write(text.format(folder=open_to_all))
    (folder / "postgresql.auto.conf").write_text(RESTORING.format(folder=open_to_all))
    (folder / "recovery.signal").touch()
    (folder / "pg_hba.conf").write_text("local all all reject\n")
    (folder / "pg_tblspc/99999").symlink_to(open_to_all / "marks")
    subprocess.run(["sync", "--file-system", folder], check=True)


def test_what_is_planted_on_a_recorded_image_is_neither_obeyed_by_replay_nor_by_blame_nor_by_a_bundle(
    bench: Bench, drivers: dict[str, str], tmp_path: Path
) -> None:
    with folder_open_to_all() as open_to_all:

        def plant(line: str) -> None:
            if '"the clients"' not in line:
                return
            inside = Path(f"/proc/{bench.started[-1].pid}")
            places = [mount.split()[1] for mount in (inside / "mounts").read_text().splitlines()]
            folders = [Path(f"{inside}/root{place}/data") for place in places if str(bench.base) in place]
            running = [folder for folder in folders if (folder / "postmaster.pid").exists()]
            planted(running[0], open_to_all)
            done.append(running[0])

        done: list[Path] = []
        levels = FilesystemLevels("ext4", barrier=False)
        stored = Stored(bench, Cut(bench, request(bench, drivers, filesystem=levels, points=4), plant))
        assert 1 == len(done)
        bad = [record.point.number for record in stored.cut.of() if record.outcome.is_bad]
        keep = tmp_path / "kept"
        replayed(bench, stored.study, bad[-1], keep)
        assert b"restore_command" in (keep / "disk").read_bytes()
        stored.story(bad[-1])
        bundle = tmp_path / "made"
        made = stored.call(f"bundle(study, 'power-cut', {bad[-1]}, output=Path({str(bundle)!r}))")
        assert 0 == made.returncode, (made.stdout, made.stderr)
        shown = reproduced(bundle, PGBIN=f"{bench.build.prefix}/bin")
        assert (0, True) == (shown.returncode, shown.stdout.startswith("bad: ")), (shown.stdout, shown.stderr)
        assert [] == list((open_to_all / "marks").iterdir())
    assert [] == bench.left_behind()
