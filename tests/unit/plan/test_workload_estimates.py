from __future__ import annotations

from tests.support.studies.estimated import bytes_of, seconds_of

from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import Load


def a_job(**levels: Scalar) -> Load:
    return Load(Dataset("fio", Levels()), (RunSpec("job", "fio", Levels(levels)),))


def test_a_job_that_moves_an_eighth_of_its_file_needs_its_whole_room_and_less_time() -> None:
    whole = a_job(rw="randread", bs="8k", size="512 MB")
    part = a_job(rw="randread", bs="8k", size="512 MB", io_size="64 MB")
    assert bytes_of(whole) == bytes_of(part) == 512 * 2**20
    assert seconds_of(whole) / 2 < seconds_of(part) < seconds_of(whole)


def test_a_job_takes_as_much_longer_as_it_loops() -> None:
    once = seconds_of(a_job(rw="read", size="512 MB"))
    thrice = seconds_of(a_job(rw="read", size="512 MB", loops=3))
    assert thrice == 2 * once
