"""`python -m bedplate`: the command line, or in a guest the visit alone."""

from __future__ import annotations

import sys

from bedplate.host.interruption import open_closed_descriptors


def main() -> None:
    """Run what the arguments name, and exit with its code.

    `run-visit` is told apart before the command line is imported: a guest has no libraries, and in
    an emulated one every import costs seconds.
    """
    open_closed_descriptors()
    if sys.argv[1:2] == ["run-visit"]:
        from bedplate.visit.command import main as run_visit  # noqa: PLC0415 - see above

        sys.exit(run_visit(sys.argv[2:]))
    if sys.argv[1:2] == ["run-visits-of-job"]:
        from bedplate.executors.slurm.payload import main as run_job  # noqa: PLC0415 - a node has no libraries

        sys.exit(run_job(sys.argv[2:]))
    if sys.argv[1:2] == ["run-visit-on-node"]:
        from bedplate.executors.slurm.on_node import main as run_on_node  # noqa: PLC0415 - nor here

        sys.exit(run_on_node(sys.argv[2:]))
    from bedplate.cli import main as run_command_line  # noqa: PLC0415 - see above

    run_command_line()


if __name__ == "__main__":
    main()
