"""A worker that finds out why one cut is bad; it lives as `worker.py` does. Standard output: a `Found`, as JSON."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from bedplate.cuts.blame import Found
from bedplate.cuts.log import JOURNAL, read_log
from bedplate.cuts.records import RecordingFacts
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, BedplateError
from bedplate.host.mount import let_go_of_foreign_mounts, paths_in
from bedplate.model import codec
from bedplate.workloads.power_cut.bench import ImageBuilder, ReplayJob, on_second
from bedplate.workloads.power_cut.inquest import Cut, Inquest
from bedplate.workloads.power_cut.worker import WorkerShare


def main(arguments: list[str]) -> int:
    """One inquest: of the job's last point, which is of the recovery from its first where a log of that is given."""
    parser = argparse.ArgumentParser(prog="power_cut_inquest", description=__doc__)
    parser.add_argument("job", type=Path, help="a ReplayJob, as JSON")
    parser.add_argument("log", type=Path, help="the recorder's log")
    parser.add_argument("directory", type=Path, help="an empty folder on a tmpfs")
    parser.add_argument("--share", type=int, default=0, help="as for `worker.py`, where there are several")
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("--most", type=int, required=True, help="the most replays")
    parser.add_argument("--recovery", type=Path, action="append", default=[], help="as for `worker.py`")
    parser.add_argument("--recording", type=Path, required=True, help="the facts of the recording")
    given = parser.parse_args(arguments)
    try:
        job = codec.read(ReplayJob, given.job)
        files = (given.job, given.log, given.directory, *given.recovery, given.recording)
        let_go_of_foreign_mounts((*filter(None, files), *paths_in(codec.to_json(job))))
        print(codec.dumps(_hold_inquest(job, given), indent=None), flush=True)
    except BedplateError as error:
        print(*error.reasons, sep="\n", file=sys.stderr)
        return EXIT_SOME_RUNS_FAILED
    return EXIT_DONE


def _hold_inquest(job: ReplayJob, arguments: argparse.Namespace) -> Found:
    with ExitStack() as stack:
        log = stack.enter_context(read_log(arguments.log))
        mine = WorkerShare(job, log, arguments.directory, workers=arguments.of)
        builder = stack.enter_context(mine.builder())
        point, recording = job.points[-1], codec.read(RecordingFacts, arguments.recording)
        if not arguments.recovery:
            promised = mine.marks.before(point.position)
            cut = Cut(log, point, job.measured_from, promised, mine.marks, recording)
            return Inquest(job, cut, builder, mine.site, arguments.most).hold()
        first_point = job.points[0]
        first = stack.enter_context(mine.first(first_point, builder))
        logs = [stack.enter_context(read_log(path)) for path in arguments.recovery]
        again = logs[-1]
        base = on_second(job, logs, point, first, arguments.directory / "first")
        folder = arguments.directory / "recovery"
        folder.mkdir()
        of_recovery = stack.enter_context(
            ImageBuilder(
                again,
                folder,
                job.sizes,
                window_bytes=job.window_bytes,
                lost_devices=(JOURNAL,) if job.loses_journal else (),
                base=base.images,
            )
        )
        promised = mine.marks.before(first_point.position)
        cut = Cut(again, point, 0, promised, None, recording)
        return Inquest(job, cut, of_recovery, mine.site, arguments.most).hold()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
