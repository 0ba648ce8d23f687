"""A worker that replays cuts: it builds each image, lets file system and engine recover on it, and asks the oracle.

It lives in namespaces of its own (`bench.py` starts it there): its mounts go with it, its loop devices with the
mounts, and every process of an engine with the first one, which it is. So nothing is left of a worker that was
killed, and no ledger has to know what it did. Standard output: one PointRecord a line, as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from bedplate.cuts.choice import building_order
from bedplate.cuts.faults import FaultEffect, FaultOperation, FaultOrder
from bedplate.cuts.log import JOURNAL, Acknowledged, Acknowledgements, Log, read_log
from bedplate.cuts.records import CutPoint, PointOutcome, PointRecord
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, BedplateError, KilledFromOutside
from bedplate.filesystem.adapter import CheckResult, Site
from bedplate.filesystem.after_cut import (
    complaints_of,
    follow_no_links,
    image_levels,
    leaves_journal_to_repair,
    mount_beside_twins,
    repair,
    repairs_of,
    unmount_beside_twins,
)
from bedplate.filesystem.blocks import BlockOwners, PlacedExtent, extents_below, sizes_below
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.account import hand_over, in_place_of, server_account
from bedplate.host.command import Commands
from bedplate.host.kernel_log import KernelLog
from bedplate.host.ledger import NoLedger
from bedplate.host.mount import let_go_of_foreign_mounts, paths_in
from bedplate.host.scratch_device import AttachedDevice, passing_loop, write_back
from bedplate.model import codec
from bedplate.visit.cuts import OracleAnswer, PageNames
from bedplate.visit.declaration import UNTORN_SHIM, UntornWrites, preloaded
from bedplate.visit.server import ServerSite
from bedplate.workloads.power_cut.bench import (
    DATA_DIRECTORY,
    Built,
    CutCommands,
    ImageBuilder,
    Recovered,
    ReplayJob,
    SecondCuts,
    below_recorder,
    cut_engine,
    judge,
    looked_again,
    on_second,
    why_again,
    with_weaker,
)
from bedplate.workloads.power_cut.log import NoRoomForImages, Room
from bedplate.workloads.power_cut.tearing import ImageNames, NameCommits, RecoveryWatch, log_files, page_names

_SYNC_LIMIT_S = 600.0


class CutSite:
    """Where the images of one job are mounted, one after the other. `directory` is empty, and best on tmpfs.

    `workers` are those that share its room. `recorder` is the program below which images come of which a part is unreadable.
    """

    def __init__(
        self,
        job: ReplayJob,
        directory: Path,
        *,
        commands: Commands,
        workers: int = 1,
        recorder: Path | None = None,
    ) -> None:
        self.room = Room(directory, workers)
        self._workers, self._recorder = workers, recorder
        self._job = job
        self._commands = commands
        self._account = in_place_of(job.subject.account, server_account())
        self._filesystem = filesystem_for(job.filesystem.type)
        self._directory = directory
        self._mount_point = directory / "mount"
        self._socket = directory / "socket"
        self._images = directory / "images"
        for path in (self._mount_point, self._socket, self._images):
            path.mkdir()
        shutil.chown(self._socket, self._account.uid, self._account.gid)

    def examine(self, built: Built, promised: Mapping[int, int]) -> tuple[Recovered, OracleAnswer | None]:
        """Recover one image and ask what is on it; the image is another one afterwards."""
        with ExitStack() as stack:
            devices = self._devices(built, stack)
            kernel = stack.enter_context(KernelLog()) if self._job.listens else None
            site = self._site_on(devices)
            recovered, answer = self._examined(site, promised)
            if kernel is not None:
                heard = complaints_of(kernel, *(device.name for device in devices))
                said = (*(heard or ()), *recovered.counted) if recovered.counted else heard
                recovered = replace(recovered, kernel_said=said)
            return recovered, answer

    def _devices(self, built: Built, stack: ExitStack) -> Sequence[AttachedDevice]:
        job = self._job
        if not job.unreadable:
            return [stack.enter_context(passing_loop(image, job.sector_bytes)) for image in built.images]
        if self._recorder is None:
            raise BedplateError("no recorder is named, which alone makes a part of a disk unreadable")
        folder = self._directory / "unreadable"
        folder.mkdir()
        stack.callback(shutil.rmtree, folder)
        recorder, devices = stack.enter_context(
            below_recorder(job, built, self._recorder, folder, commands=self._commands, workers=self._workers)
        )
        order = FaultOrder(
            FaultOperation.READ,
            FaultEffect.UNREADABLE,
            ranges=job.unreadable,
            on_journal=job.unreadable_on_journal,
        )
        recorder.order_fault(order.line())
        return devices

    def _examined(self, site: Site, promised: Mapping[int, int]) -> tuple[Recovered, OracleAnswer | None]:
        recovered = self._mount(site, repair_first=self._needs_repair(site))
        if not recovered.mounted:
            return recovered, None
        answer, counted = self._ask_once(promised, site)
        recovered = replace(recovered, counted=counted)
        if recovered.repaired or answer.detected or answer.silent:
            return recovered, answer
        checked = self._filesystem.check(site)
        if checked.clean:
            return replace(recovered, unclean=False), answer
        return self._after_repair((recovered, answer), checked, promised, site)

    def recover(
        self, devices: Sequence[AttachedDevice], promised: Mapping[int, int], settled: Callable[[], object]
    ) -> tuple[Recovered, OracleAnswer | None]:
        """The same on devices that log, once, and beside it a neighbour that commits. A server writes its pages as the recorded one did.

        `settled` is called when all is written back, before the unmount.
        """
        site = self._site_on(devices)
        recovered = self._mount(site, repair_first=self._needs_repair(site))
        if not recovered.mounted:
            settled()
            return recovered, None
        data, pages = self._mount_point / DATA_DIRECTORY, self._recovery_watch()
        try:
            with NameCommits(data, self._mount_point / "neighbour of recovery"), pages:
                answer = self._ask(promised, pages.untorn, thrown_away=False)
            self._commands.run(["sync", "--file-system", str(self._mount_point)], timeout_s=_SYNC_LIMIT_S)
            settled()
            # Of a recovery that left damage no cut counts, nor does how it wrote.
            if not answer.detected:
                recovered = replace(recovered, pages=pages.facts(), places=pages.places)
        finally:
            unmount_beside_twins(self._filesystem, site)
        return recovered, answer

    def _recovery_watch(self) -> RecoveryWatch:
        job, counts = self._job, self._directory / "untorn-writes"
        library = job.subject.drivers.text(UNTORN_SHIM.name)
        untorn = preloaded(job.untorn_writes, library, job.page_bytes, counts, self._account)
        # As /proc names it.
        data = self._mount_point.resolve() / DATA_DIRECTORY
        logs = log_files(job.subject.engine)
        return RecoveryWatch(data, job.filesystem.type, job.page_bytes, untorn, logs=logs)

    def replay(
        self,
        point: CutPoint,
        builder: ImageBuilder,
        promised: Acknowledged,
        *,
        acknowledged: Acknowledged | None = None,
    ) -> PointRecord:
        """NoRoomForImages where memory for the image runs out: what an engine says of that is no verdict.

        An image that does not mount, or on which an engine does not answer in time, is built and looked at once more, before
        anything is said of it. `acknowledged` is what the oracle takes for promised, where that is more than is held against the cut.
        """
        first, record = self._replayed(point, builder, promised, acknowledged or promised)
        if first is None:
            return record
        second, record = self._replayed(point, builder, promised, acknowledged or promised)
        return looked_again(first, second, record)

    def _replayed(
        self, point: CutPoint, builder: ImageBuilder, promised: Acknowledged, acknowledged: Acknowledged
    ) -> tuple[str | None, PointRecord]:
        """Why it should be done again, and the record."""
        built = build_in_room(point, builder, self._images)
        self.room.demand(built.images)
        recovered, answer = self.examine(built, acknowledged.highest)
        record = judge(point, built.window, promised, recovered, answer)
        if record.outcome is not PointOutcome.OK:
            self.room.demand_still(built.images)
        return why_again(recovered, answer), record

    def names_on(self, points: Sequence[CutPoint], builder: ImageBuilder) -> ImageNames:
        """Whose the blocks are on the images of these cuts, once each has recovered as far as it does."""
        found: list[BlockOwners] = []
        sizes: list[Mapping[str, int]] = []
        called: Mapping[str, str] = {}
        subject = self._job.subject
        pages = page_names(subject.engine)
        for point in points:
            built = build_in_room(point, builder, self._images)
            self.room.demand(built.images)
            with ExitStack() as stack:
                loops = [
                    stack.enter_context(passing_loop(image, self._job.sector_bytes)) for image in built.images
                ]
                owners, own_names, own_sizes = self._owners(self._site_on(loops), None if called else pages)
                found.append(owners)
                sizes.append(own_sizes)
                called = called or own_names
        return ImageNames(found, pages, called, log_files(subject.engine), subject, sizes)

    def _owners(
        self, site: Site, pages: PageNames | None
    ) -> tuple[BlockOwners, Mapping[str, str], Mapping[str, int]]:
        """The maps of files before the engine changes any, what it calls them, and their sizes."""
        extents: tuple[PlacedExtent, ...] = ()
        called: Mapping[str, str] = {}
        sizes: Mapping[str, int] = {}
        place = self._mount_point / DATA_DIRECTORY
        if self._mount(site, repair_first=self._needs_repair(site)).mounted:
            try:
                extents = tuple(extents_below(self._mount_point))
                sizes = {} if place.is_symlink() else sizes_below(place)
                # A folder that the cut damaged may not even say what it is: its files have no names of the engine's then.
                with contextlib.suppress(OSError):
                    if pages is not None and not place.is_symlink():
                        called = pages.file_names(self._server_site(place), self._job.subject)
            finally:
                unmount_beside_twins(self._filesystem, site)
        return BlockOwners(site.levels, self._filesystem.layout(site), extents), called, sizes

    def _site_on(self, devices: Sequence[AttachedDevice]) -> Site:
        device, *journal = devices
        return Site(self._job.filesystem, device, self._mount_point, self._commands, *journal)

    def _needs_repair(self, site: Site) -> bool:
        """Without a journal nothing repairs by itself what the cut left.

        A system checks such a file system before it mounts it (systemd-fsck(8)), and must: else it gives away blocks in use.
        """
        unjournalled = self._filesystem.traits.checked_by_fsck(self._job.filesystem.journal)
        return unjournalled and bool(self._damage(site))

    def _ask_once(self, promised: Mapping[int, int], site: Site) -> tuple[OracleAnswer, tuple[str, ...]]:
        """On what is mounted, which is unmounted then; and what the file system says of errors to who asks it."""
        try:
            answer = self._ask(promised)
            return answer, self._filesystem.complaints(site) if self._job.listens else ()
        finally:
            unmount_beside_twins(self._filesystem, site)

    def _mount(self, site: Site, *, repair_first: bool) -> Recovered:
        """By the kernel's own recovery, unless that is known not to do, else after each of the type's repairs in turn."""
        site = replace(site, levels=image_levels(site.levels, site.journal_path))
        problems: list[str] = []
        refused: str | None = None
        fsck_s: float | None = None
        replay_failed = False
        for attempt in range(0 if repair_first else -1, repairs_of(site.levels.type)):
            if attempt >= 0:
                started = time.monotonic()
                repaired = repair(site, attempt)
                for device in filter(None, (site.device, site.journal)):
                    write_back(device.path)
                fsck_s = (fsck_s or 0.0) + time.monotonic() - started
                problems += filter(None, [repaired.text])
                replay_failed |= repaired.replay_failed
                if not repaired.done:
                    continue
            started = time.monotonic()
            try:
                mount_beside_twins(self._filesystem, site)
            except KilledFromOutside:
                raise
            except BedplateError as error:
                if attempt >= 0 or not leaves_journal_to_repair(site.levels.type):
                    problems += error.reasons
                refused = refused or "; ".join(error.reasons)
                continue
            if not cut_engine(self._job.subject.engine).may_link:
                follow_no_links(site.target)
            return Recovered(
                mounted=True,
                repaired=attempt >= 0,
                replay_failed=replay_failed,
                mount_s=time.monotonic() - started,
                fsck_s=fsck_s,
                refused=refused,
                problems=tuple(problems),
            )
        return Recovered(
            mounted=False,
            replay_failed=replay_failed,
            fsck_s=fsck_s,
            refused=refused,
            problems=tuple(problems),
        )

    def _damage(self, site: Site) -> str:
        """What the type's check finds on the unmounted devices; empty if it finds nothing."""
        checked = self._filesystem.check(site)
        return "" if checked.clean else _damage_words(checked)

    def _after_repair(
        self,
        first_look: tuple[Recovered, OracleAnswer],
        checked: CheckResult,
        promised: Mapping[int, int],
        site: Site,
    ) -> tuple[Recovered, OracleAnswer]:
        """What is there once damage is repaired that a check finds, by that itself or a repair, though all was well with the engine.

        It answered from a file system that was not whole, and a repair may take what it answered from: it is asked
        again. Damage that no repair mends is nothing that anybody was told of.
        """
        recovered, answer = first_look
        problem = f"it mounted, and a check finds errors: {_damage_words(checked)}"
        again = self._mount(site, repair_first=not checked.mended)
        found = replace(
            again,
            mounted=True,
            repaired=False,
            unclean=True,
            counted=recovered.counted,
            mount_s=recovered.mount_s,
            problems=(problem, *again.problems),
        )
        if not again.mounted:
            return found, replace(answer, silent=(f"{problem}; and no repair mends them",))
        again_answered, _ = self._ask_once(promised, site)
        return found, replace(again_answered, start_s=answer.start_s, oracle_s=answer.oracle_s)

    def _ask(
        self, promised: Mapping[int, int], untorn: UntornWrites | None = None, *, thrown_away: bool = True
    ) -> OracleAnswer:
        """What the engine says; a file system that gives errors is what an engine complains of.

        BedplateError where the error is not the image's: an engine that cannot be started has found nothing.
        """
        subject, place = self._job.subject, self._mount_point / DATA_DIRECTORY
        try:
            if place.is_symlink():
                # Of an image of others: root would be led out of it.
                return OracleAnswer(None, detected=(f"{place.name} is a link, and no folder",))
            site = self._server_site(place, thrown_away=thrown_away)
            if untorn is not None:
                site = untorn.below(site)
            return cut_engine(subject.engine).examine(site, subject, promised)
        except OSError as error:
            if error.filename is not None and not Path(error.filename).is_relative_to(self._mount_point):
                raise BedplateError(f"{error.filename}: {error.strerror}, and no cut was judged") from error
            return OracleAnswer(None, detected=(f"{error.filename or place}: {error.strerror}",))

    def _server_site(self, place: Path, *, thrown_away: bool = True) -> ServerSite:
        hand_over(place, self._job.subject.account, self._account)
        return ServerSite(
            build=self._job.subject.build,
            data_directory=place,
            socket_directory=self._socket,
            log=self._directory / "server.log",
            account=self._account,
            commands=self._commands,
            ledger=NoLedger(),
            thrown_away=thrown_away,
        )


class WorkerShare:
    """What one of `workers` workers makes of the points of a job, in `directory`."""

    def __init__(
        self, job: ReplayJob, log: Log, directory: Path, *, workers: int, recorder: Path | None = None
    ) -> None:
        commands = CutCommands()
        self._job, self._log, self._directory = job, log, directory
        self.marks = Acknowledgements(log)
        self.site = CutSite(job, directory, commands=commands, workers=workers, recorder=recorder)
        self._again = SecondCuts(job, directory, self.site, commands=commands, workers=workers)

    def records(
        self, share: int, of: int, *, recorder: Path | None, log_folder: Path | None
    ) -> Iterator[PointRecord]:
        """Of every `of`-th point from number `share` on, and of the recoveries among them that are to be cut again."""
        recuts = {recut.first: recut for recut in self._job.recuts}
        with self.builder() as builder:
            for point in building_order(self._job.points)[share::of]:
                promised = self.marks.before(point.position)
                record = with_weaker(
                    self.site.replay(point, builder, promised),
                    partial(self.site.replay, builder=builder, promised=promised),
                )
                yield record
                recut = recuts.get(point.number)
                # After a bad cut a second one asks nothing: what it finds was there before it.
                if recut is None or recorder is None or log_folder is None or record.outcome.is_bad:
                    continue
                with self.first(point, builder) as first:
                    yield from self._again.cut(
                        recut, first, promised, recorder=recorder, log_folder=log_folder
                    )

    def of_recovery(self, recovery_logs: Sequence[Log]) -> Iterator[PointRecord]:
        """What came of the job's last point, which cuts the last of these recoveries; its first one is the cut that the first of them is from."""
        first_point, point = self._job.points
        with self.builder() as builder, self.first(first_point, builder) as first:
            base = on_second(self._job, recovery_logs, point, first, self._directory / "first")
            yield from self._again.replayed(
                recovery_logs[-1], [point], base, self.marks.before(first_point.position)
            )

    @contextmanager
    def first(self, point: CutPoint, builder: ImageBuilder) -> Iterator[Built]:
        """The images of a cut, as long as its recovery is looked at."""
        folder = self._directory / "first"
        folder.mkdir()
        try:
            yield build_in_room(point, builder, folder)
        finally:
            shutil.rmtree(folder)

    def builder(self) -> ImageBuilder:
        """Of the recording's log."""
        job = self._job
        return ImageBuilder(
            self._log,
            self._directory,
            job.sizes,
            window_bytes=job.window_bytes,
            measured_from=job.measured_from,
            lost_devices=(JOURNAL,) if job.loses_journal else (),
        )


def _damage_words(checked: CheckResult) -> str:
    return checked.text or "(it does not say what)"


def build_in_room(point: CutPoint, builder: ImageBuilder, folder: Path) -> Built:
    """The images of a point; NoRoomForImages where memory runs out."""
    try:
        return builder.build(point, folder)
    except OSError as error:
        raise NoRoomForImages(
            f"the image of point {point.number} cannot be built in {folder}: {error.strerror}"
        ) from error


def main(arguments: list[str]) -> int:
    """Replay one share of a job."""
    parser = argparse.ArgumentParser(prog="power_cut_worker", description=__doc__)
    parser.add_argument("job", type=Path, help="a ReplayJob, as JSON")
    parser.add_argument("log", type=Path, help="the recorder's log")
    parser.add_argument("directory", type=Path, help="an empty folder on a tmpfs")
    parser.add_argument("--share", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument(
        "--recorder", type=Path, help="the program that records recoveries; without it none is cut again"
    )
    parser.add_argument("--kept", type=Path, help="where the log of a recovery with a bad cut goes")
    parser.add_argument(
        "--recovery",
        type=Path,
        action="append",
        default=[],
        help="a recovery's log, in which the second point cuts; given again, that of a recovery behind a cut of the one before",
    )
    given = parser.parse_args(arguments)
    try:
        job = codec.read(ReplayJob, given.job)
        files = (given.job, given.log, given.directory, given.recorder, given.kept, *given.recovery)
        let_go_of_foreign_mounts((*filter(None, files), *paths_in(codec.to_json(job))))
        _replay(job, given)
    except BedplateError as error:
        print(*error.reasons, sep="\n", file=sys.stderr)
        return EXIT_SOME_RUNS_FAILED
    return EXIT_DONE


def _replay(job: ReplayJob, arguments: argparse.Namespace) -> None:
    with ExitStack() as stack:
        log = stack.enter_context(read_log(arguments.log))
        mine = WorkerShare(job, log, arguments.directory, workers=arguments.of, recorder=arguments.recorder)
        if not arguments.recovery:
            records = mine.records(
                arguments.share, arguments.of, recorder=arguments.recorder, log_folder=arguments.kept
            )
        else:
            logs = [stack.enter_context(read_log(path)) for path in arguments.recovery]
            records = mine.of_recovery(logs)
        for record in records:
            print(codec.dumps(record, indent=None), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
