from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.workloads.fio.visit import PgTestFsyncJob


def test_the_program_of_the_build_writes_in_the_folder_of_the_run() -> None:
    expected = ["/build/bin/pg_test_fsync", "-f", "/mnt/scratch/pg_test_fsync.out", "-s", "2"]
    assert expected == PgTestFsyncJob(2).argv(Path("/mnt/scratch"), Path("/build/bin"))


def test_the_run_lasts_as_long_as_its_sixteen_measurements() -> None:
    assert 80 == PgTestFsyncJob().duration_s


@pytest.mark.parametrize("seconds", [0, -1, 3601])
def test_a_time_that_it_does_not_take_is_refused(seconds: int) -> None:
    with pytest.raises(ValueError, match="1 to 3600"):
        PgTestFsyncJob(seconds)
