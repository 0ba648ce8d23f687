"""What a stranger may hand over: studies, trees, scripts, images, and files that unpack or go on without end."""

from __future__ import annotations

import lzma
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tests.host.conftest import built
from tests.host.test_power_cut_oracle import (
    OF_A_STRANGER,
    PROMISED,
    RESTORING,
    folder_open_to_all,
    made_database,
)
from tests.support.sources import hostile_trees
from tests.support.sources.histories import commit, git, repository
from tests.support.sources.pgbench_scripts import COMMANDS, SQL, difference
from tests.support.studies.planted_places import (
    KINDS,
    OWN_WORDS,
    make_outside,
    places,
    planted,
    seen_from,
)
from tests.support.studies.study_readers import READERS, require_harmless, said_by_reader, sealed_study
from tests.torture.trial import Tally

from bedplate.errors import BedplateError
from bedplate.host.git import GitRevisions, refresh
from bedplate.units import GIB, MIB

_AT_ONCE = 60
_SCRIPTS_AT_ONCE = 300
# A reader of anything ends long before this, on a loaded machine too.
_HANGS_S = 120
_WRITERS = (
    ("run", "{study}/plan.toml", "--study", "{study}"),
    ("run", "{study}", "--repetitions", "9"),
)
_FOREIGN = 12345


def strange_places(drawn: random.Random, place: Path, tally: Tally) -> None:
    """A study with a link, a pipe, a device or a stranger's file at a place of it, shown to commands that read and that write."""
    study, outside = sealed_study(place / "studies/study"), make_outside(place / "outside")
    known, before = places(study), seen_from(outside)
    for _ in range(_AT_ONCE):
        where, kind, words = drawn.choice(known), drawn.choice(KINDS), drawn.choice((*READERS, *_WRITERS))
        about = f"{words[0]} of a study with a {kind} at {where.relative_to(study)}"
        with planted(where, kind, outside), _no_waiting(about, tally):
            tally.tried["strange place of a study"] += 1
            try:
                require_harmless(words, study)
                tally.expect(OWN_WORDS not in said_by_reader(words, study)[1], f"{about}: it was read")
            except AssertionError as error:
                tally.wrong.append(f"{about}: {error!s:.400}")
    tally.expect(before == seen_from(outside), "something outside of a study changed")


def hostile_trees_read(drawn: random.Random, place: Path, tally: Tally) -> None:
    """A git tree that names programs wherever it can, with something strange at a place of it."""
    place.chmod(0o755)
    marker = place / "marks/sprung"
    marker.parent.mkdir(mode=0o777)
    marker.parent.chmod(0o777)
    tree = repository(place / "src")
    for number in range(3):
        commit(tree, f"Commit {number}", {"a.txt": f"{number}\n", "sub/b.txt": "bee\n"})
    git(tree, "tag", "-a", "-m", "v1", "v1.0", "HEAD~1")
    git(tree, "pack-refs", "--all")
    if drawn.random() < 0.5:
        git(tree, "gc", "--quiet")
    git(tree, "branch", "loose")
    hostile_trees.plant_programs(tree, marker, every_key=drawn.random() < 0.5)
    marker.unlink(missing_ok=True)
    if drawn.random() < 0.5:
        for path in (tree, *tree.rglob("*")):
            os.chown(path, _FOREIGN, _FOREIGN, follow_symlinks=False)
    known = hostile_trees.places(tree)
    for _ in range(_AT_ONCE):
        where, kind = drawn.choice(known), drawn.choice(sorted(hostile_trees.THINGS))
        about = f"a tree with a {kind} at {where}"
        out = place / "out"
        with (
            hostile_trees.planted(tree, where, hostile_trees.THINGS[kind]),
            _no_waiting(about, tally),
        ):
            tally.tried["hostile tree"] += 1
            for revision in ("loose~1", "v1.0", "working tree"):
                try:
                    found, _, _ = GitRevisions().find(tree, revision, lambda read: {"a": read("a.txt") or ""})
                    refresh(tree, found.hash, out, place / "manifest")
                except BedplateError:
                    pass
                except Exception as error:  # noqa: BLE001 -- any is a finding
                    tally.wrong.append(f"{about}: {error!r:.400}")
        shutil.rmtree(out, ignore_errors=True)
        (place / "manifest").unlink(missing_ok=True)
    tally.expect(not marker.exists(), f"a program of a tree ran: {marker.exists() and marker.read_text()}")


def scripts_of_strangers(drawn: random.Random, place: Path, tally: Tally) -> None:
    """Scripts of random pieces: pgbench and the reader take the same."""
    pgbench = Path(built().prefix) / "bin" / "pgbench"
    for _ in range(_SCRIPTS_AT_ONCE):
        text = "".join(drawn.choice(drawn.choice((COMMANDS, SQL))) for _ in range(drawn.randint(1, 14)))
        tally.tried["script of pgbench's"] += 1
        wrong = difference(text, pgbench, place / "script.sql")
        tally.expect(wrong is None, str(wrong))


def recorded_images(drawn: random.Random, _place: Path, tally: Tally) -> None:
    """A recorded data directory whose configuration names programs, libraries and places."""
    with made_database(built()) as database, folder_open_to_all() as folder:
        for _ in range(6):
            target = database.copy(drawn.choice(("whole", "unchecked")))
            kinds = drawn.sample(sorted(OF_A_STRANGER), drawn.randint(1, 3))
            for kind in kinds:
                with (target / drawn.choice(("postgresql.conf", "postgresql.auto.conf"))).open("a") as file:
                    file.write(OF_A_STRANGER[kind].format(folder=folder))
            order = drawn.choice(("", "recovery.signal", "standby.signal"))
            if order:
                (target / order).touch()
                with (target / "postgresql.auto.conf").open("a") as file:
                    file.write(RESTORING.format(folder=folder))
            tally.tried["recorded image with a configuration"] += 1
            answer, about = database.examine(target), f"an image with {kinds} {order}"
            tally.expect(
                (answer.present, answer.detected, answer.silent) == (PROMISED, (), ()), f"{about}: {answer}"
            )
            marks = [path.name for path in (folder / "marks").iterdir()]
            tally.expect(not marks, f"{about} was obeyed: {marks}")


def bombs(drawn: random.Random, place: Path, tally: Tally) -> None:
    """A study with a file that unpacks without end, is of holes, or has folders or files without end, shown to every reader."""
    whole = sealed_study(place / "whole")
    files = sorted(path for path in whole.rglob("*") if path.is_file())
    for _ in range(3):
        study = place / "study"
        shutil.copytree(whole, study)
        where, bomb = study / drawn.choice(files).relative_to(whole), drawn.choice(list(_BOMBS))
        _BOMBS[bomb](where, drawn)
        about = f"a study with {bomb} at {where.relative_to(study)}"
        for words in drawn.sample(READERS, 4):
            tally.tried["reading of a bomb"] += 1
            with _no_waiting(f"{words[0]} of {about}", tally):
                try:
                    require_harmless(words, study)
                except AssertionError as error:
                    tally.wrong.append(f"{about}: {error!s:.400}")
        # Its folders may be deeper than Python calls itself.
        subprocess.run(["rm", "-rf", str(study)], check=True)


def _packed(path: Path, drawn: random.Random) -> None:
    packer = lzma.LZMACompressor(preset=0)
    zeros = bytes(16 * MIB)
    content = b"".join(packer.compress(zeros) for _ in range(drawn.choice((16, 64)))) + packer.flush()
    for target in {path, path.with_name("log.xz")}:
        target.write_bytes(content)


def _holes(path: Path, drawn: random.Random) -> None:
    path.touch()
    os.truncate(path, drawn.choice((1, 20, 500)) * GIB)


def _deep_values(path: Path, drawn: random.Random) -> None:
    depth = drawn.choice((1_000, 100_000, 3_000_000))
    path.write_text(drawn.choice(("[" * depth, '{"a":' * depth, "[" + "[]," * depth + "1]")))


def _deep_folders(path: Path, drawn: random.Random) -> None:
    below = os.open(path.parent, os.O_RDONLY)
    for _ in range(drawn.choice((30, 2_000, 20_000))):
        os.mkdir("d", dir_fd=below)
        above, below = below, os.open("d", os.O_RDONLY, dir_fd=below)
        os.close(above)
    os.close(below)


def _many_files(path: Path, drawn: random.Random) -> None:
    for number in range(drawn.choice((2_000, 30_000))):
        (path.parent / f"{number}.{drawn.choice(('json', 'log'))}").touch()


_BOMBS: dict[str, Callable[[Path, random.Random], None]] = {
    "a packed file without end": _packed,
    "a file of holes": _holes,
    "a document without end": _deep_values,
    "folders without end": _deep_folders,
    "files without end": _many_files,
}


@contextmanager
def _no_waiting(about: str, tally: Tally) -> Iterator[None]:
    """What takes too long is interrupted, and wrong."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"{about} took more than {_HANGS_S} s")

    before, started = signal.signal(signal.SIGALRM, end), time.monotonic()
    signal.alarm(_HANGS_S)
    try:
        yield
    except TimeoutError as error:
        tally.wrong.append(str(error))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        if time.monotonic() - started > _HANGS_S:
            tally.wrong.append(f"{about} took {time.monotonic() - started:.0f} s")
