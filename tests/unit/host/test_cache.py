from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.host.files import cache_directory


def test_environment_names_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "mine"))
    assert tmp_path / "mine" == cache_directory()


def test_relative_cache_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEDPLATE_CACHE", "mine")
    assert tmp_path / "mine" == cache_directory()


def test_root_keeps_builds_where_other_accounts_can_reach_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BEDPLATE_CACHE", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert Path("/var/cache/bedplate") == cache_directory()


@pytest.mark.parametrize(
    ("xdg", "expected"),
    [
        ("/xdg", "/xdg/bedplate"),
        ("relative", "/home/someone/.cache/bedplate"),
        ("", "/home/someone/.cache/bedplate"),
    ],
)
def test_user_has_the_xdg_cache(monkeypatch: pytest.MonkeyPatch, xdg: str, expected: str) -> None:
    monkeypatch.delenv("BEDPLATE_CACHE", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    assert Path(expected) == cache_directory()
