"""An interruption is not forgotten where giving the stand back fails on its way out."""

from __future__ import annotations

import pytest

from bedplate.errors import BedplateError, DeviceInUse
from bedplate.workloads.power_cut.log import interruption_behind


class _Abandoned(BaseException):
    """As the visit raises it on a signal."""


def fail(*kinds: type[BaseException]) -> BaseException:
    """The last error of a chain in which each came while the one before was on its way out."""
    try:
        try:
            raise kinds[0]("first")
        finally:
            if len(kinds) > 1:
                try:
                    raise kinds[1]("second")
                finally:
                    if len(kinds) > 2:
                        raise kinds[2]("third")
    except BaseException as error:  # noqa: BLE001 -- an interruption is none of Exception
        return error


@pytest.mark.parametrize(
    "kinds",
    [(_Abandoned, DeviceInUse), (_Abandoned, OSError, DeviceInUse), (ValueError, _Abandoned, DeviceInUse)],
)
def test_an_error_on_the_way_out_does_not_hide_it(kinds: tuple[type[BaseException], ...]) -> None:
    assert isinstance(interruption_behind(fail(*kinds)), _Abandoned)


@pytest.mark.parametrize(
    "kinds", [(DeviceInUse,), (OSError, DeviceInUse), (ValueError, OSError, BedplateError)]
)
def test_an_error_of_its_own_is_no_interruption(kinds: tuple[type[BaseException], ...]) -> None:
    assert interruption_behind(fail(*kinds)) is None
