"""The lock of a scratch device: who has it, and what to do about it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.errors import DeviceInUse
from bedplate.host.lock import IMAGE_FILES, device_lock


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        # There is no other place to choose.
        (IMAGE_FILES, "wait for it, or stop it: two at once would measure each other"),
        ("{place}/disk.img", "wait for it, stop it, or choose another"),
    ],
)
def test_who_comes_second_is_told_who_was_first_and_what_to_do(
    name: str, way_out: str, tmp_path: Path
) -> None:
    asked = name.format(place=tmp_path)
    with (
        device_lock(tmp_path, asked, study="first"),
        pytest.raises(DeviceInUse) as refused,
        device_lock(tmp_path, asked),
    ):
        pass
    holder = f"bedplate process {os.getpid()}, study first"
    assert f"{asked} is in use by {holder}; {way_out}" == str(refused.value)
    with device_lock(tmp_path, asked) as node:
        assert node is None
