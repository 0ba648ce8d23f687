"""As whom servers run: for root an account without rights, else the caller."""

from __future__ import annotations

import errno
import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from bedplate.host.account import hand_over, in_place_of, recorded_account, server_account
from bedplate.host.command import Account

ELSEWHERE = Account("bedplate", 998, 997)


def test_what_root_recorded_has_roots_account_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    caller = next(entry for entry in pwd.getpwall() if entry.pw_name not in ("root", "bedplate", "nobody"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    of_root = server_account()
    assert of_root.name in ("bedplate", "nobody")
    monkeypatch.setattr(os, "geteuid", lambda: caller.pw_uid)
    assert caller.pw_uid == server_account().uid
    assert of_root == recorded_account()


def test_of_another_machine_it_keeps_the_name_that_servers_know_it_by() -> None:
    here = server_account()
    assert here == in_place_of(None, here)
    assert replace(here, name="bedplate") == in_place_of(ELSEWHERE, here)


def test_what_it_owned_is_handed_over_and_damage_and_links_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    (data / "base").mkdir(parents=True)
    for name in ("base/1", "damaged", "unreadable"):
        (data / name).touch()
    (data / "link").symlink_to(tmp_path)
    owners, found, real = {"damaged": 0}, [], os.lstat

    def of_elsewhere(path: Path) -> os.stat_result:
        if path.name == "unreadable":
            raise OSError(errno.EIO, "")
        fields = list(real(path)[:10])
        fields[4] = owners.get(path.name, ELSEWHERE.uid)
        return os.stat_result(fields)

    monkeypatch.setattr(Path, "lstat", of_elsewhere)
    monkeypatch.setattr(
        os, "lchown", lambda path, uid, gid: found.append((str(path.relative_to(data)), uid, gid))
    )
    here = Account("bedplate", 65534, 65533)
    for nothing in (None, here):
        hand_over(data, nothing, here)
    hand_over(data / "link", ELSEWHERE, here)
    assert [] == found
    hand_over(data, ELSEWHERE, here)
    assert {(name, 65534, 65533) for name in (".", "base", "base/1", "link")} == set(found)
