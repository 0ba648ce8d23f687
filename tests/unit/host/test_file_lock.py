from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Event
from pathlib import Path

from bedplate.host.files import file_lock, file_lock_if_free

CONTEXT = multiprocessing.get_context("fork")


def _hold(path: Path, held: Event, release: Event) -> None:
    with file_lock(path):
        held.set()
        release.wait(30)


def test_second_holder_says_that_it_waits_and_gets_the_lock_when_the_first_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lock"
    held, never = CONTEXT.Event(), CONTEXT.Event()
    first = CONTEXT.Process(target=_hold, args=(path, held, never))
    first.start()
    assert held.wait(30)
    with file_lock_if_free(path) as free:
        assert not free
    waits: list[str] = []

    def on_wait() -> None:
        waits.append("once")
        first.kill()

    with file_lock(path, on_wait=on_wait):
        assert ["once"] == waits
    first.join(30)


def test_a_lock_is_for_its_owner_alone_also_one_that_was_made_before(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    path.chmod(0o644)
    for each in (path, tmp_path / "fresh"):
        with file_lock(each):
            assert 0o600 == each.stat().st_mode & 0o777


def test_free_lock_does_not_wait(tmp_path: Path) -> None:
    waits: list[str] = []
    for _ in range(2):
        with file_lock(tmp_path / "lock", on_wait=lambda: waits.append("waited")):
            assert [] == waits
    with file_lock_if_free(tmp_path / "lock") as free:
        assert free


def test_lock_that_nobody_ever_made_is_not_held(tmp_path: Path) -> None:
    with file_lock_if_free(tmp_path / "lock") as free:
        assert not free
    assert not (tmp_path / "lock").exists()


def test_its_own_file_is_closed_to_others_and_that_of_the_system_keeps_its_mode(tmp_path: Path) -> None:
    own, of_system = tmp_path / "own", tmp_path / "of-system"
    for path in (own, of_system):
        path.touch(0o600)
        path.chmod(0o640)
    with file_lock(own), file_lock(of_system, of_system=True):
        assert (0o600, 0o640) == tuple(path.stat().st_mode & 0o777 for path in (own, of_system))
