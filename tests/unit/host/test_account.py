"""As whom servers run: for root an account without rights, else the caller."""

from __future__ import annotations

import os
import pwd

import pytest

from bedplate.host.account import recorded_account, server_account


def test_what_root_recorded_has_roots_account_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    caller = next(entry for entry in pwd.getpwall() if entry.pw_name not in ("root", "bedplate", "nobody"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    of_root = server_account()
    assert of_root.name in ("bedplate", "nobody")
    monkeypatch.setattr(os, "geteuid", lambda: caller.pw_uid)
    assert caller.pw_uid == server_account().uid
    assert of_root == recorded_account()
