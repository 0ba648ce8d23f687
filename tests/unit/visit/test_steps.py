"""Whose failure a step's error is: the cell's, which is a result, or the machine's, which is none."""

from __future__ import annotations

import errno

import pytest

from bedplate.errors import (
    BedplateError,
    CommandFailed,
    CommandNotStarted,
    DeviceInUse,
    DeviceRefused,
    MachineUnfit,
    RequirementMissing,
    VerifyFailed,
    VisitFailed,
)
from bedplate.visit.life import Steps

LOSETUP = "losetup: cannot find an unused loop device"


def failed(error: Exception, *, of_machine: bool) -> BedplateError:
    steps = Steps(lambda _event: None)
    with pytest.raises(BedplateError) as caught, steps.step("scratch device", of_machine=of_machine):
        raise error
    assert ["scratch device"] == [timing.step for timing in steps.timings]
    return caught.value


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RequirementMissing("no room"), "no room"),
        (DeviceRefused("held by process 7"), "held by process 7"),
        (CommandFailed(LOSETUP, argv=["losetup"], status=1, output=""), LOSETUP),
        (
            CommandNotStarted("losetup cannot be started", argv=[], status=None, output=""),
            "cannot be started",
        ),
        (OSError(errno.EIO, "Input/output error", "/data/x.img"), "/data/x.img: Input/output error"),
    ],
)
def test_what_no_cell_would_get_is_the_machines(error: Exception, words: str) -> None:
    found = failed(error, of_machine=True)
    assert isinstance(found, MachineUnfit)
    assert words in found.reasons[0]
    of_cell = failed(error, of_machine=False)
    assert isinstance(of_cell, VisitFailed)
    assert ("scratch device", found.reasons) == (of_cell.step, of_cell.reasons)


def test_a_device_that_somebody_holds_is_the_machines_at_every_step() -> None:
    for of_machine in (False, True):
        found = failed(DeviceInUse("/dev/x is still in use", "process 7 has it"), of_machine=of_machine)
        assert isinstance(found, MachineUnfit)
        assert "process 7 has it" in found.reasons


def test_a_setting_that_a_device_does_not_take_is_the_cells() -> None:
    found = failed(VerifyFailed("the queue does not take 'kyber'"), of_machine=True)
    assert isinstance(found, VisitFailed)


def test_what_was_judged_already_stays_so() -> None:
    for error in (MachineUnfit("full"), VisitFailed("mkfs", "refused")):
        assert error is failed(error, of_machine=False) is failed(error, of_machine=True)
