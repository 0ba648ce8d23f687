"""Where the state of an ordinary user is, and who else may have been there first."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.errors import RequirementMissing
from bedplate.host import files


def test_the_first_directory_of_the_way_is_made_for_its_user_alone(tmp_path: Path) -> None:
    made = files.own_directory(tmp_path / "bedplate-1000")
    assert 0o700 == made.stat().st_mode & 0o777
    assert made == files.own_directory(made)


@pytest.mark.parametrize("kind", ["a link", "a file", "open to others"])
def test_what_a_stranger_may_move_away_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "bedplate-1000"
    if kind == "a link":
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    elif kind == "a file":
        place.touch()
    else:
        place.mkdir()
        place.chmod(0o777)
    with pytest.raises(RequirementMissing, match="not a directory of this user's alone"):
        files.own_directory(place)


def test_a_strangers_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = files.own_directory(tmp_path / "bedplate-1000")
    monkeypatch.setattr("os.geteuid", lambda: place.stat().st_uid + 1)
    with pytest.raises(RequirementMissing, match="BEDPLATE_STATE"):
        files.own_directory(place)
