"""What does Slurm cost a visit? Seconds beside the visit itself.

    ./benchmarks/run slurm_overhead [--repetitions 6]

Starts a Slurm of two nodes of its own on loopback, as an ordinary user (nobody where this is root), as the tests
do; needs the packages slurmctld, slurmd and slurm-client. Visits are pretended and take no time, so what is left
is the hand-over: submission, the job's start, a start of Python for each visit, the copy, the rename, and the
collection, which looks five times a second here. Both nodes share this machine, where a fleet's would not.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from statistics import median

from tests.support.fleets.slurm_lab import lacking_programs, slurm_lab

from machine import print_machine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=6, help="jobs, each of two visits")
    given = parser.parse_args()
    lacking = lacking_programs()
    if lacking:
        print(
            f"no Slurm here: {', '.join(lacking)} (packages slurmctld slurmd slurm-client)", file=sys.stderr
        )
        return 3
    print_machine()
    with slurm_lab() as lab:
        place = lab.base / "studies" / "overhead"
        behaviour = place / "behaviour"
        behaviour.mkdir(parents=True)
        for path in (place, behaviour):
            os.chown(path, *((65534, 65534) if lab.before else (os.getuid(), os.getgid())))
        run = lab.start_python(
            "-m", "tests.support.fleets.fleet_driver", place / "study", behaviour, str(given.repetitions)
        )
        said, _ = run.communicate(timeout=600)
        if run.returncode:
            print(said, file=sys.stderr)
            return 1
        tally = json.loads(said.strip().splitlines()[-1])
        records = [
            json.loads(path.read_text()) for path in sorted((place / "study").glob("visits/*/*/*/visit.json"))
        ]
    own = [record["whole_seconds"] - record["seconds"] for record in records]
    visits = tally["completed"]
    print(f"{visits} visits in {given.repetitions} jobs on two nodes: {tally['seconds']:.1f} s in all")
    print(f"{2 * tally['seconds'] / visits:.2f} s of a node for each visit, with its share of the job")
    print(f"{median(own):.2f} s of that are the visit's own process and its figures (median)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
