"""A worker that replays cuts: it builds each image, lets file system and engine recover on it, and asks the oracle.

It lives in namespaces of its own (`power_bench.py` starts it there): its mounts go with it, its loop devices with the
mounts, and every process of an engine with the first one, which it is. So nothing is left of a worker that was
killed, and no ledger has to know what it did. Standard output: one PointRecord a line, as JSON.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, BedplateError, KilledFromOutside
from bedplate.filesystem.after_cut import (
    image_levels,
    mount_beside_twins,
    repair,
    repairs_of,
    unmount_beside_twins,
)
from bedplate.filesystem.registry import filesystem_for
from bedplate.filesystem.site import Site
from bedplate.host.account import server_account
from bedplate.host.devices.passing_loop import passing_loop, write_back
from bedplate.host.own_mounts import let_go_of_foreign_mounts, paths_in
from bedplate.model import codec
from bedplate.model.power_cut import PointOutcome
from bedplate.visit.cut_engine import OracleAnswer
from bedplate.visit.engine_server import ServerSite
from bedplate.workloads.power_cut.run.acknowledged import Acknowledgements
from bedplate.workloads.power_cut.run.bench import DATA_DIRECTORY, ReplayJob, cut_engine
from bedplate.workloads.power_cut.run.cut_commands import CutCommands
from bedplate.workloads.power_cut.run.cut_room import NoRoomForImages, Room
from bedplate.workloads.power_cut.run.image import ImageBuilder
from bedplate.workloads.power_cut.run.log import JOURNAL, read_log
from bedplate.workloads.power_cut.run.positions import building_order
from bedplate.workloads.power_cut.run.replaying import Recovered, judge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.host.command import Commands
    from bedplate.host.ledger import Holding
    from bedplate.model.power_cut import CutPoint, PointRecord
    from bedplate.workloads.power_cut.run.image import Built


class _HeldByNamespace:
    """What a server needs of a ledger where the namespace is the ledger."""

    def note(self, holding: Holding) -> None:
        """It ends with the namespace."""

    def settled(self, holding: Holding) -> None:
        """As above."""


class CutSite:
    """Where the images of one job are mounted, one after the other. `directory` is empty, and best on tmpfs.

    `workers` are those that share its room.
    """

    def __init__(self, job: ReplayJob, directory: Path, *, commands: Commands, workers: int = 1) -> None:
        self.room = Room(directory, workers)
        self._job = job
        self._commands = commands
        self._account = server_account()
        self._filesystem = filesystem_for(job.filesystem.type)
        self._directory = directory
        self._mount_point = directory / "mount"
        self._socket = directory / "socket"
        for path in (self._mount_point, self._socket):
            path.mkdir()
        shutil.chown(self._socket, self._account.uid, self._account.gid)

    def examine(self, built: Built, promised: Mapping[int, int]) -> tuple[Recovered, OracleAnswer | None]:
        """Recover one image and ask what is on it; the image is another one afterwards."""
        with ExitStack() as stack:
            device = stack.enter_context(passing_loop(built.disk))
            journal = None if built.journal is None else stack.enter_context(passing_loop(built.journal))
            # Without a journal nothing repairs by itself what the cut left. A system checks such a file system before it
            # mounts it (systemd-fsck(8)), and must: written to as it is, it gives blocks away that are in use.
            unjournalled = self._filesystem.traits.checked_by_fsck(self._job.filesystem.journal)
            site = Site(self._job.filesystem, device, self._mount_point, self._commands, journal)
            damage = self._damage(site) if unjournalled else ""
            recovered = self._mount(site, repair_first=bool(damage))
            if not recovered.mounted:
                return recovered, None
            answer = self._ask_once(promised, site)
            if recovered.repaired or answer.detected or answer.silent:
                return recovered, answer
            damage = self._damage(site)
            if not damage:
                return replace(recovered, unclean=False), answer
            return self._after_repair((recovered, answer), damage, promised, site)

    def _ask_once(self, promised: Mapping[int, int], site: Site) -> OracleAnswer:
        """On what is mounted, which is unmounted then."""
        try:
            return self._ask(promised)
        finally:
            unmount_beside_twins(self._filesystem, site)

    def _mount(self, site: Site, *, repair_first: bool) -> Recovered:
        """By the kernel's own recovery, unless that is known not to do, else after each of the type's repairs in turn."""
        site = replace(site, levels=image_levels(site.levels, site.journal_path))
        problems: list[str] = []
        fsck_s: float | None = None
        replay_failed = False
        for attempt in range(0 if repair_first else -1, repairs_of(site.levels.type)):
            if attempt >= 0:
                started = time.monotonic()
                repaired = repair(site, attempt)
                for device in filter(None, (site.device, site.journal)):
                    write_back(device.path)
                fsck_s = (fsck_s or 0.0) + time.monotonic() - started
                problems.append(repaired.text)
                replay_failed |= repaired.replay_failed
                if not repaired.done:
                    continue
            started = time.monotonic()
            try:
                mount_beside_twins(self._filesystem, site)
            except KilledFromOutside:
                raise
            except BedplateError as error:
                problems += error.reasons
                continue
            return Recovered(
                mounted=True,
                repaired=attempt >= 0,
                replay_failed=replay_failed,
                mount_s=time.monotonic() - started,
                fsck_s=fsck_s,
                problems=tuple(problems),
            )
        return Recovered(mounted=False, replay_failed=replay_failed, fsck_s=fsck_s, problems=tuple(problems))

    def _damage(self, site: Site) -> str:
        """What the type's check finds on the unmounted devices; empty if it finds nothing."""
        checked = self._filesystem.check(site)
        return "" if checked.clean else checked.text or "(it does not say what)"

    def _after_repair(
        self, before: tuple[Recovered, OracleAnswer], damage: str, promised: Mapping[int, int], site: Site
    ) -> tuple[Recovered, OracleAnswer]:
        """What is there once damage is repaired that a check finds, though all was well with the engine.

        It answered from a file system that was not whole, and a repair may take what it answered from: it is asked
        again. Damage that no repair mends is nothing that anybody was told of.
        """
        recovered, answer = before
        problem = f"it mounted, and a check finds errors: {damage}"
        again = self._mount(site, repair_first=True)
        found = replace(
            again,
            mounted=True,
            repaired=False,
            unclean=True,
            mount_s=recovered.mount_s,
            problems=(problem, *again.problems),
        )
        if not again.mounted:
            return found, replace(answer, silent=(f"{problem}; and no repair mends them",))
        return found, replace(
            self._ask_once(promised, site), start_s=answer.start_s, oracle_s=answer.oracle_s
        )

    def _ask(self, promised: Mapping[int, int]) -> OracleAnswer:
        """What the engine says; a file system that gives errors is what an engine complains of.

        BedplateError where the error is not the image's: an engine that cannot be started has found nothing.
        """
        subject, place = self._job.subject, self._mount_point / DATA_DIRECTORY
        try:
            return cut_engine(subject.engine).examine(self._server_site(place), subject, promised)
        except OSError as error:
            if error.filename is not None and not Path(error.filename).is_relative_to(self._mount_point):
                raise BedplateError(f"{error.filename}: {error.strerror}, and no cut was judged") from error
            return OracleAnswer(None, detected=(f"{error.filename or place}: {error.strerror}",))

    def _server_site(self, place: Path) -> ServerSite:
        return ServerSite(
            build=self._job.subject.build,
            data_directory=place,
            socket_directory=self._socket,
            log=self._directory / "server.log",
            account=self._account,
            commands=self._commands,
            ledger=_HeldByNamespace(),
        )


def replay_share(job: ReplayJob, log_file: Path, directory: Path, *, share: int, of: int) -> None:
    """Replay every `of`-th point from number `share` on, and print what came of each."""
    site = CutSite(job, directory, commands=CutCommands(), workers=of)
    images = directory / "images"
    images.mkdir()
    lost = (JOURNAL,) if job.loses_journal else ()
    with read_log(log_file) as log:
        marks = Acknowledgements(log)
        builder = ImageBuilder(
            log,
            directory,
            job.sizes,
            window_bytes=job.window_bytes,
            measured_from=job.measured_from,
            lost=lost,
        )
        with builder:
            for point in building_order(job.points)[share::of]:
                record = _replay(point, builder, marks, site, images)
                print(codec.dumps(record, indent=None), flush=True)


def _replay(
    point: CutPoint, builder: ImageBuilder, marks: Acknowledgements, site: CutSite, images: Path
) -> PointRecord:
    """NoRoomForImages where memory for the image runs out: what an engine says of that is no verdict."""
    try:
        built = builder.build(point, images)
    except OSError as error:
        raise NoRoomForImages(
            f"the image of point {point.number} cannot be built in {images}: {error.strerror}"
        ) from error
    acknowledged = marks.before(point.position)
    try:
        site.room.demand(built.images)
        recovered, answer = site.examine(built, acknowledged.highest)
        record = judge(point, built.window, acknowledged, recovered, answer)
        if record.outcome is not PointOutcome.OK:
            site.room.demand_still(built.images)
    finally:
        for path in built.images:
            path.unlink(missing_ok=True)
    return record


def main(arguments: list[str]) -> int:
    """Replay one share of a job."""
    parser = argparse.ArgumentParser(prog="power_cut_worker", description=__doc__)
    parser.add_argument("job", type=Path, help="a ReplayJob, as JSON")
    parser.add_argument("log", type=Path, help="the recorder's log")
    parser.add_argument("directory", type=Path, help="an empty folder on a tmpfs")
    parser.add_argument("--share", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    given = parser.parse_args(arguments)
    try:
        job = codec.read(ReplayJob, given.job)
        needed = (given.job, given.log, given.directory, *paths_in(codec.to_json(job)))
        let_go_of_foreign_mounts(needed)
        replay_share(job, given.log, given.directory, share=given.share, of=given.of)
    except BedplateError as error:
        print(*error.reasons, sep="\n", file=sys.stderr)
        return EXIT_SOME_RUNS_FAILED
    return EXIT_DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
