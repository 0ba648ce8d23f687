from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.errors import RequirementMissing
from bedplate.host.files import closed_folders, closed_sentences, open_to_all, require_traversable


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def opened(tmp_path: Path) -> Path:
    """A folder whose every parent lets others through, as /var/cache has."""
    tmp_path.chmod(0o755)
    for parent in (tmp_path, *tmp_path.parents):
        if not parent.stat().st_mode & 0o001:
            parent.chmod(mode(parent) | 0o001)
    return tmp_path


def test_own_folders_are_opened(opened: Path) -> None:
    inner = opened / "cache" / "builds"
    inner.mkdir(parents=True, mode=0o700)
    inner.parent.chmod(0o700)
    require_traversable(inner, base=opened / "cache")
    assert [0o755, 0o755] == [mode(inner.parent), mode(inner)]


def test_foreign_closed_parent_is_refused_and_left_as_it_is(opened: Path) -> None:
    closed = opened / "home"
    inner = closed / "cache"
    inner.mkdir(parents=True)
    closed.chmod(0o700)
    with pytest.raises(RequirementMissing) as raised:
        require_traversable(inner, base=inner)
    assert 2 == len(raised.value.reasons)
    assert f"{closed} (mode 0700)" in raised.value.reasons[0]
    assert 0o700 == mode(closed)


def test_closed_parent_behind_a_symbolic_link_is_found(opened: Path) -> None:
    closed = opened / "closed"
    (closed / "cache").mkdir(parents=True)
    closed.chmod(0o700)
    (opened / "link").symlink_to(closed / "cache")
    with pytest.raises(RequirementMissing, match="mode 0700"):
        require_traversable(opened / "link", base=opened / "link")


def test_folders_that_let_nobody_through_are_told(opened: Path) -> None:
    inner = opened / "home" / "state"
    inner.mkdir(parents=True)
    assert () == closed_folders(inner)
    inner.parent.chmod(0o700)
    found = closed_folders(inner / "not made yet")
    (said,) = closed_sentences(found, inner)
    assert said.startswith(f"{inner.parent} (mode 0700) lets no other account through")


def test_closed_folders_are_named_once_from_the_root_down(tmp_path: Path) -> None:
    home = tmp_path / "home"
    deep = home / "cache" / "prefix"
    deep.mkdir(parents=True)
    tmp_path.chmod(0o755)
    home.chmod(0o700)
    (home / "cache").chmod(0o750)
    deep.chmod(0o755)
    found = [path for path in closed_folders(deep, deep / "bin") if path.is_relative_to(tmp_path)]
    assert [home, home / "cache"] == found


def test_path_outside_of_what_is_ours_is_a_mistake(opened: Path) -> None:
    with pytest.raises(ValueError, match="does not lie under"):
        require_traversable(opened, base=opened / "cache")


def test_tree_is_opened_like_chmod_a_plus_rx(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.touch(mode=0o600)
    tree = tmp_path / "tree"
    (tree / "bin").mkdir(parents=True, mode=0o700)
    program, text = tree / "bin" / "program", tree / "text"
    program.touch(mode=0o700)
    text.touch(mode=0o600)
    (tree / "link").symlink_to(outside)
    (tree / "broken").symlink_to("absent")
    open_to_all(tree)
    assert (0o755, 0o755, 0o644) == (mode(tree / "bin"), mode(program), mode(text))
    assert 0o600 == mode(outside)
