"""`bedplate release`: give back what a killed start left behind."""

from __future__ import annotations

import os
import sys

from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, RequirementMissing


def release() -> int:
    """Release every orphan, say what was done, and what could not be."""
    from bedplate.executor.state import state_directory  # noqa: PLC0415
    from bedplate.host.command import Commands  # noqa: PLC0415
    from bedplate.host.ledger import release_orphans  # noqa: PLC0415

    if os.geteuid() != 0:
        raise RequirementMissing("mounts, loop devices and servers are released by root; run it with sudo")
    report = release_orphans(state_directory(), Commands())
    for done in report.released:
        print(done)
    for alive in report.alive:
        print(f"left alone: {alive}")
    for problem in report.problems:
        print(f"error: {problem}", file=sys.stderr)
    if not report.released and not report.problems:
        print("nothing was left behind")
    return EXIT_SOME_RUNS_FAILED if report.problems else EXIT_DONE
