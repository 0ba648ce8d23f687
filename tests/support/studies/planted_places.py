"""Every place that the format of a study knows, and what a stranger may have put there."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bedplate.study.layout import UNFINISHED, StudyLayout

_FORMAT = Path(__file__).parents[3] / "docs/STUDY_FORMAT.md"
_NAMED = re.compile(r"^( *)(\S(?:[^ ]| (?! ))*)(?:  |$)")
_FOREIGN = 12345
OWN_WORDS = "for nobody but us"

LINK_TO_FILE, LINK_TO_FOLDER, LINK_TO_NOTHING = "link to a file", "link to a folder", "link to nothing"
LINKS = (LINK_TO_FILE, LINK_TO_FOLDER, LINK_TO_NOTHING)
PIPE, SOCKET, DEVICE, DISK, FOREIGN, OTHER_NAME = (
    "pipe",
    "socket",
    "device",
    "disk",
    "foreign owner",
    "another name",
)
KINDS = (*LINKS, PIPE, SOCKET, DEVICE, DISK, FOREIGN, OTHER_NAME)
OF_OTHERS = (FOREIGN, OTHER_NAME)
# What may be said of each.
WORDS = {
    **dict.fromkeys(LINKS, "is a link"),
    PIPE: "is a pipe",
    SOCKET: "is a socket",
    DEVICE: "is a device",
    DISK: "is a device",
    FOREIGN: f"belongs to uid {_FOREIGN}",
    OTHER_NAME: f"belongs to uid {_FOREIGN}",
}


def places(study: Path) -> list[Path]:
    """Of the layout in the code, of the page that describes the format, and of all that stands in this study; by their paths."""
    layout = StudyLayout(study)
    properties = [name for name, value in vars(StudyLayout).items() if isinstance(value, property)]
    found = {getattr(layout, name) for name in properties}
    found |= set(_documented(study))
    # One of each kind of place: visits are alike.
    alike = {
        _shape(path.relative_to(study), is_folder=path.is_dir()): path for path in sorted(study.rglob("*"))
    }
    found |= set(alike.values())
    attempt = next(iter(sorted(layout.visits.glob("*/*/*.*"))))
    begun = attempt.with_name(f"{attempt.name}{UNFINISHED}")
    found |= {begun, begun / "visit.json", begun / "logs" / "server.log"}
    found |= {
        layout.extension / "study.json",
        layout.extension / "plan" / "x.sql",
        layout.staged / "study.json",
    }
    found |= {
        layout.scratch / "bedplate-scratch.img",
        study / ".study.json.1.part",
        study / "anything",
        layout.visits / "x",
    }
    return sorted(
        (found | {above for path in found for above in path.parents if above.is_relative_to(study)}) - {study}
    )


def _shape(below: Path, *, is_folder: bool) -> tuple[object, ...]:
    return (below.parts[0], len(below.parts), "" if is_folder else below.name)


def _documented(study: Path) -> Iterator[Path]:
    """The places of the tree at the head of STUDY_FORMAT.md, with names of this study for those in angle brackets."""
    tree = _FORMAT.read_text().split("```")[1]
    run = next(iter(sorted(study.glob("visits/*/*/*/runs/*"))))
    cell, dataset, attempt, _, folder = run.relative_to(study / "visits").parts
    names = {
        "<cell id>/<dataset id>/<repetition>.<attempt>": f"{cell}/{dataset}/{attempt}",
        "canary/<dataset id>/<n>.<attempt>": f"canary/{dataset}/1.1",
        "<run's path below visits>": str(run.relative_to(study / "visits")),
        "<nn>-<run id>": folder,
        "<repetition>.<n>": "1.1",
        "<node>": "node1",
        "<test>": "test",
    }
    levels: list[str] = []
    for line in tree.splitlines():
        found = _NAMED.match(line)
        if found is None:
            continue
        depth, name = len(found[1]) // 4, found[2]
        if depth > len(levels) or (" " in name and "<" not in name):
            continue
        for token, own in names.items():
            name = name.replace(token, own)
        if "<" in name:
            continue
        levels = [*levels[:depth], name.strip("/")]
        yield study.joinpath(*levels)


@contextmanager
def planted(place: Path, kind: str, outside: Path) -> Iterator[None]:
    """Put this in the place of what is there, and undo it."""
    aside = outside.with_name("aside")
    missing = [above for above in place.parents if not above.exists()]
    if os.path.lexists(place):
        place.rename(aside)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        _plant(place, kind, outside)
        yield
    finally:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            with contextlib.suppress(FileNotFoundError):
                place.unlink()
        if missing:
            shutil.rmtree(missing[-1], ignore_errors=True)
        if aside.exists():
            aside.rename(place)


def make_outside(place: Path) -> Path:
    """What a link leads to: a file that nobody else may read, and folders that look like parts of a study."""
    place.mkdir()
    (place / "secret").write_text(OWN_WORDS)
    os.link(place / "secret", place.with_name("other-name-of-secret"))
    for name in ("folder/cell/dataset/1.1.unfinished", "folder/1.1", "folder/runs/01-x"):
        (place / name).mkdir(parents=True)
    for name in ("x", "cell/dataset/1.1.unfinished/x", "bedplate-scratch.img", "visit.json", "run.json"):
        (place / "folder" / name).write_text(OWN_WORDS)
    foreign = place.with_name("foreign")
    foreign.write_text(OWN_WORDS)
    if os.geteuid() == 0:
        os.chown(foreign, _FOREIGN, _FOREIGN)
    return place


def seen_from(place: Path) -> dict[str, tuple[object, ...]]:
    """What stands in a folder: kinds, owners, times and contents."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (place, *sorted(place.rglob("*"))):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path)] = (
            status.st_mode,
            status.st_uid,
            status.st_ino,
            status.st_nlink,
            status.st_mtime_ns,
            content,
        )
    return found


def _plant(place: Path, kind: str, outside: Path) -> None:
    match kind:
        case "link to a file":
            place.symlink_to(outside / "secret")
        case "link to a folder":
            place.symlink_to(outside / "folder")
        case "link to nothing":
            place.symlink_to(outside / "new")
        case "pipe":
            os.mkfifo(place)
        case "socket":
            # The name of a socket is short.
            folder = os.open(place.parent, os.O_PATH)
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(f"/proc/self/fd/{folder}/{place.name}")
            os.close(folder)
        case "device":
            os.mknod(place, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
        case "disk":
            os.mknod(place, 0o600 | stat.S_IFBLK, os.makedev(7, 250))
        case "foreign owner":
            place.write_text("{}")
            os.chown(place, _FOREIGN, _FOREIGN)
        case "another name":
            os.link(outside.with_name("foreign"), place)
        case _:
            raise AssertionError(kind)
