"""Modules are merged without a change of what they define; names that would mean two things, and circles, are named first."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.support.tools.merge_modules import CannotMerge, Merge, read_map

_FILES = {
    "src/bedplate/__init__.py": "",
    "src/bedplate/host/__init__.py": '"""The room."""\n',
    "src/bedplate/host/git/__init__.py": '"""Trees."""\n',
    "src/bedplate/host/git/reading.py": '"""Reads."""\n\nfrom __future__ import annotations\n\nfrom bedplate.host.git.names import name_of\n\n_MOST = 3\n\n\n'
    "def read(tree: str) -> str:\n    return name_of(tree)[:_MOST]\n",
    "src/bedplate/host/git/names.py": '"""Names."""\n\nfrom __future__ import annotations\n\n# Why it is so.\n_LEAST = 1\n\n\n'
    "def name_of(tree: str) -> str:\n    return tree[_LEAST:]\n",
    "src/bedplate/caller.py": "from bedplate.host.git import names\nfrom bedplate.host.git.reading import read\n\n"
    'NAME = names.name_of(read("abcdef"))\n',
    "docs/ARCHITECTURE.md": "Trees are read by `host/git/reading.py`.\n",
}


def _checkout(root: Path, **changed: str) -> Path:
    for name, text in {**_FILES, **changed}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for words in (("init", "--quiet"), ("add", "--all")):
        subprocess.run(["git", "-C", str(root), *words], check=True)
    return root


def _merge(root: Path, text: str) -> Merge:
    path = root / "map"
    path.write_text(text, encoding="utf-8")
    merge = Merge(root, read_map(path))
    merge.run()
    return merge


def test_two_modules_of_a_folder_become_one_and_who_used_them_finds_it(tmp_path: Path) -> None:
    root = _checkout(tmp_path)
    merge = _merge(root, "@ bedplate.host\ngit: git git.reading git.names\n")
    assert [] == merge.circles()
    merge.write()
    assert not (root / "src/bedplate/host/git/names.py").exists()
    text = (root / "src/bedplate/host/git.py").read_text(encoding="utf-8")
    assert text.index("# Why it is so.\n_LEAST = 1") < text.index("def name_of") < text.index("def read")
    assert "import name_of" not in text
    caller = (root / "src/bedplate/caller.py").read_text(encoding="utf-8")
    assert "from bedplate.host.git import read\n" in caller
    assert 'NAME = git.name_of(read("abcdef"))' in caller
    assert "Trees are read by `host/git.py`." in (root / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")


def test_a_name_that_would_mean_two_things_is_named_and_may_be_renamed(tmp_path: Path) -> None:
    names = _FILES["src/bedplate/host/git/names.py"].replace("_LEAST", "_MOST")
    root = _checkout(tmp_path, **{"src/bedplate/host/git/names.py": names})
    room = "@ bedplate.host\ngit: git git.reading git.names\n"
    with pytest.raises(
        CannotMerge, match=r"_MOST is defined in bedplate.host.git.names and in bedplate.host.git.reading"
    ):
        _merge(root, room)
    _merge(root, f"{room}rename git.names._MOST _LEAST\n").write()
    assert "return tree[_LEAST:]" in (root / "src/bedplate/host/git.py").read_text(encoding="utf-8")


def test_modules_that_would_import_each_other_in_a_circle_are_named(tmp_path: Path) -> None:
    middle = "from bedplate.host.git.names import name_of\n\nMIDDLE = name_of\n"
    reading = _FILES["src/bedplate/host/git/reading.py"].replace(
        "from bedplate.host.git.names import name_of", "from bedplate.middle import MIDDLE"
    )
    reading = reading.replace("name_of(tree)", "MIDDLE(tree)")
    root = _checkout(
        tmp_path, **{"src/bedplate/middle.py": middle, "src/bedplate/host/git/reading.py": reading}
    )
    circles = _merge(root, "@ bedplate.host\ngit: git git.reading git.names\n").circles()
    assert ["bedplate.host.git -> bedplate.middle -> bedplate.host.git"] == circles
