from __future__ import annotations

from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import Load
from bedplate.plan.io_estimate import io_bytes, io_seconds


def a_job(**levels: Scalar) -> Load:
    return Load(Dataset("fio", Levels({})), (RunSpec("job", "fio", Levels(levels)),))


def test_a_job_that_moves_an_eighth_of_its_file_needs_its_whole_room_and_less_time() -> None:
    whole = a_job(rw="randread", bs="8k", size="512 MB")
    part = a_job(rw="randread", bs="8k", size="512 MB", io_size="64 MB")
    assert io_bytes(whole) == io_bytes(part) == 512 * 2**20
    assert io_seconds(whole, Levels({})) / 2 < io_seconds(part, Levels({})) < io_seconds(whole, Levels({}))


def test_a_job_takes_as_much_longer_as_it_loops() -> None:
    once = io_seconds(a_job(rw="read", size="512 MB"), Levels({}))
    thrice = io_seconds(a_job(rw="read", size="512 MB", loops=3), Levels({}))
    assert thrice == 2 * once
