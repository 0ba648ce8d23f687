"""Where things stand in a study's directory (docs/STUDY_FORMAT.md)."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bedplate.errors import StudyError
from bedplate.model import codec, limits
from bedplate.model.limits import MOST_STUDY_FILES, MOST_STUDY_LEVELS, too_long
from bedplate.model.plan import ScheduledVisit
from bedplate.model.reason import because, sudo_caller
from bedplate.model.visit import KNOWN_FORMATS
from bedplate.study.records import StudyFacts

CANARY = "canary"

# A visit under way has this in its name; nothing that reads a study looks at it.
UNFINISHED = ".unfinished"

_NUMBER = re.compile(r"[1-9][0-9]*")


@dataclass(frozen=True)
class StudyLayout:
    """Paths below `directory`."""

    directory: Path

    @property
    def facts(self) -> Path:
        """`study.json`."""
        return self.directory / "study.json"

    @property
    def plan(self) -> Path:
        """The frozen plan."""
        return self.directory / "plan.toml"

    @property
    def plan_files(self) -> Path:
        """Where the frozen plan's own files (scripts, configurations) stand."""
        return self.directory / "plan"

    @property
    def machine(self) -> Path:
        """`machine.json`."""
        return self.directory / "machine.json"

    @property
    def schedule(self) -> Path:
        """`schedule.json`."""
        return self.directory / "schedule.json"

    @property
    def search(self) -> Path:
        """`search.json`; there only where the study is a search."""
        return self.directory / "search.json"

    @property
    def paired(self) -> Path:
        """`paired.json`; there only where the study measures pairs until it can tell."""
        return self.directory / "paired.json"

    @property
    def visits(self) -> Path:
        """Below it: <cell>/<dataset>/<repetition>.<attempt>/."""
        return self.directory / "visits"

    @property
    def scratch(self) -> Path:
        """Where an image file stands while a visit uses it."""
        return self.directory / "scratch"

    @property
    def fleet(self) -> Path:
        """What a study on several nodes and its jobs say to each other; there only on a fleet."""
        return self.directory / "fleet"

    @property
    def extension(self) -> Path:
        """New top files, complete, on their way into place; there only while a study is extended."""
        return self.directory / ".extension"

    @property
    def staged(self) -> Path:
        """The same while they are written."""
        return self.directory / ".extension.part"

    @property
    def lock(self) -> Path:
        """Held by the one process that may write."""
        return self.directory / ".lock"

    def place_of(self, visit: ScheduledVisit) -> Path:
        """The directory of all attempts at a visit."""
        cell = CANARY if visit.canary else visit.cell_id
        return self.visits / cell / visit.dataset_id

    def attempts_at(self, visit: ScheduledVisit) -> dict[int, Path]:
        """Finished attempts by number, those too that were damaged since."""
        found = {}
        place = self.place_of(visit)
        for name, is_folder in limits.names_in(place).items():
            repetition, _, number = name.partition(".")
            if is_folder and repetition == str(visit.repetition) and _NUMBER.fullmatch(number):
                found[int(number)] = place / name
        return dict(sorted(found.items()))

    def attempt(self, visit: ScheduledVisit, number: int) -> Path:
        """The directory of one attempt."""
        return self.place_of(visit) / f"{visit.repetition}.{number}"


def is_study(directory: Path) -> bool:
    """Whether a directory holds a study, be it one that is refused since its `study.json` is a link."""
    return os.path.lexists(StudyLayout(directory).facts)


_MOST_NAMED = 10
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BELOW = _FOLDER | os.O_NOFOLLOW

_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

_ROOT = 0


@dataclass(frozen=True)
class Folder:
    """A directory, by its descriptor; what is asked and done by a path below it follows no link."""

    directory: Path
    descriptor: int

    @classmethod
    def of_directory(cls, directory: Path) -> Self:
        """The directory of that name, which may be a link itself; StudyError where it cannot be opened. Nothing in it is looked at."""
        try:
            return cls(directory, os.open(directory, _FOLDER))
        except OSError as error:
            raise StudyError(f"{directory} cannot be read: {error.strerror}") from error

    @classmethod
    def of_study(cls, directory: Path, *, to_write: bool = False) -> Self:
        """That of a study, all of it looked at; StudyError names what is no plain file or folder of the study's one owner.

        What is read of it from now on is reached by no link that comes later (`model/limits.py`).
        `to_write`: the owner must be who writes as well, or the user who called sudo.
        """
        folder = cls.of_directory(directory)
        try:
            folder.require_plain(to_write=to_write)
            limits.remember(directory, folder.descriptor)
        except BaseException:
            folder.close()
            raise
        return folder

    def refuse_links(self, *paths: Path) -> None:
        """StudyError where one of these, or what is above it here, is a link, or no folder; what is not there may be made."""
        for path in paths:
            with suppress(FileNotFoundError), self.below(path):
                pass

    def require_plain(self, *, to_write: bool = False) -> None:
        """StudyError with what is below it and has no place in a study, and with the way out."""
        owner = os.fstat(self.descriptor).st_uid
        reasons = [*_not_to_be_written(self.directory, owner)] if to_write else []
        reasons += _strange(self, owner)
        if not reasons:
            return
        more = len(reasons) - _MOST_NAMED
        rest = (f"and {more} more",) if more > 0 else ()
        raise StudyError(
            *reasons[:_MOST_NAMED],
            *rest,
            f"nothing of {self.directory} was read or changed: a study has plain files and folders of one owner; remove what is none, "
            "or give all of it to one user (chown -R) if you trust it",
        )

    def has(self, path: Path) -> bool:
        """Whether there is something of that name; a link is something, wherever it leads."""
        try:
            with self._above(path) as (folder, name):
                os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def make(self, path: Path) -> None:
        """A folder below it, with those above it; one that is there is left as it is."""
        with self.below(path, make=True):
            pass

    def write(self, path: Path, text: str) -> None:
        """A file whole and durable, or as it was before; its folder is made where it is missing."""
        data = codec.encoded(path, text)
        with self._above(path, make=True) as (folder, name):
            part = f".{name}.{os.getpid()}.part"
            # A new file: whatever stood there under that name is not written to.
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(part, flags, 0o644, dir_fd=folder), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)

    def move(self, path: Path, target: Path) -> None:
        """Give something another name below it, in the place of a file of that name; the target's folder is made where it is missing."""
        with self._above(path) as (folder, name), self._above(target, make=True) as (place, new):
            os.rename(name, new, src_dir_fd=folder, dst_dir_fd=place)

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all that is in it; nothing happens where there is none, or where it cannot be removed."""
        with suppress(OSError, StudyError), self._above(path) as (folder, name):
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)

    def sync(self, path: Path) -> None:
        """All plain files below a folder, and what its names are, on the disk."""
        with self.below(path) as folder:
            for _, _, names, here in os.fwalk(".", dir_fd=folder, follow_symlinks=False, topdown=False):
                for name in names:
                    file = os.open(
                        name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here
                    )
                    try:
                        os.fsync(file)
                    finally:
                        os.close(file)
                os.fsync(here)

    def sync_names(self, path: Path) -> None:
        """What the names in a folder are, on the disk."""
        with self.below(path) as folder:
            os.fsync(folder)

    def leave_plain(self, path: Path) -> list[str]:
        """Remove what is no plain file or folder below a folder, and give the rest to its owner: it becomes a part of the study. The names of what went."""
        removed = []
        with self.below(path) as top:
            owner = os.fstat(top)
            for place, folders, names, here in os.fwalk(".", dir_fd=top, follow_symlinks=False):
                for name in (*folders, *names):
                    status = os.stat(name, dir_fd=here, follow_symlinks=False)
                    is_foreign = status.st_uid != owner.st_uid and os.geteuid() == _ROOT
                    is_shared = status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode)
                    if stat.S_IFMT(status.st_mode) in _KINDS or (is_foreign and is_shared):
                        os.unlink(name, dir_fd=here)
                        removed.append(os.path.normpath(os.path.join(place, name)))  # noqa: PTH118 -- no file of ours
                    elif is_foreign:
                        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=here, follow_symlinks=False)
        return removed

    def files(self, path: Path) -> Iterator[Path]:
        """All plain files below a folder, by their paths; none where it is not there."""
        with suppress(FileNotFoundError), self.below(path) as folder:
            for place, _, names, here in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
                for name in names:
                    if stat.S_ISREG(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                        yield path / place / name

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def below(self, path: Path, *, make: bool = False) -> Iterator[int]:
        """The descriptor of a folder below it, made where it is missing; StudyError where a link, or no folder, stands on the way."""
        names = path.relative_to(self.directory).parts
        if ".." in names:
            raise StudyError(f"{path} is not below {self.directory}")
        with ExitStack() as stack:
            folder, place = self.descriptor, self.directory
            for name in names:
                place = place / name
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o755, dir_fd=folder)
                try:
                    folder = os.open(name, _BELOW, dir_fd=folder)
                except OSError as error:
                    if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                        raise
                    raise StudyError(
                        f"{place} is a link, or no folder: nothing is read or written through it; remove it"
                    ) from error
                stack.callback(os.close, folder)
            yield folder

    @contextmanager
    def _above(self, path: Path, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The descriptor of the folder that something is in, and its name there."""
        with self.below(path.parent, make=make) as folder:
            yield folder, path.name


def _not_to_be_written(directory: Path, owner: int) -> Iterator[str]:
    """Whoever owns it decides what stands in it, so that only its owner, and root for who called sudo, may write to it."""
    caller = sudo_caller()
    if owner not in {os.geteuid(), *(caller or ())[:1]}:
        yield f"{directory} belongs to uid {owner}, and uid {os.geteuid()} would write to it: its owner decides what is in it. Call bedplate as that user, by sudo where root is needed"


def _strange(folder: Folder, owner: int) -> Iterator[str]:
    """A sentence for each thing below it that no study has; beyond its depth and its number nothing more is looked at."""
    levels = [_Level(os.dup(folder.descriptor), folder.directory, is_begun=False)]
    count = 0
    try:
        while levels:
            level = levels[-1]
            entry = next(level.entries, None)
            if entry is None:
                level.close()
                levels.pop()
                continue
            count += 1
            if count > MOST_STUDY_FILES:
                yield f"{folder.directory} has more than {MOST_STUDY_FILES:,} files"
                return
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # a visit under way ends meanwhile
            if (words := level.strange(status, owner)) is not None:
                yield f"{level.place / entry.name} {words}"
            elif stat.S_ISDIR(status.st_mode):
                if len(levels) > MOST_STUDY_LEVELS:
                    yield f"{level.place / entry.name} is more than {MOST_STUDY_LEVELS} folders deep"
                    continue
                # What may not be read is not followed either; who needs it says so.
                with suppress(FileNotFoundError, PermissionError):
                    levels.append(level.below(entry.name))
    finally:
        for level in levels:
            level.close()


class _Level:
    """A folder that is being looked at; of a visit under way (`is_begun`) the owners do not matter, since nobody reads it."""

    def __init__(self, descriptor: int, place: Path, *, is_begun: bool) -> None:
        self.place = place
        self._descriptor = descriptor
        self._is_begun = is_begun
        self._scan = os.scandir(descriptor)
        self.entries = iter(self._scan)

    def below(self, name: str) -> _Level:
        """A folder in it."""
        descriptor = os.open(name, _BELOW, dir_fd=self._descriptor)
        return _Level(descriptor, self.place / name, is_begun=self._is_begun or name.endswith(UNFINISHED))

    def strange(self, status: os.stat_result, owner: int) -> str | None:
        """Why something in it has no place in a study of that owner; None if it has."""
        if (kind := _KINDS.get(stat.S_IFMT(status.st_mode))) is not None:
            return f"is {kind}"
        if status.st_uid == owner or self._is_begun:
            return None
        # What a start under sudo was killed over is root's still. Another name of a file of root's is none of these.
        if status.st_uid == _ROOT and (stat.S_ISDIR(status.st_mode) or status.st_nlink == 1):
            return None
        return f"belongs to uid {status.st_uid}, the study to uid {owner}"

    def close(self) -> None:
        """Let go of it."""
        self._scan.close()
        os.close(self._descriptor)


# Of a call that would run visits of a study whose visits others made.
IMPORTED_STUDY = "imported-study"

KNOWN_WORDS = " or ".join(map(str, KNOWN_FORMATS))


def require_known_format(layout: StudyLayout) -> None:
    """StudyError if there is no study, it is of a format that is not known, or something in it is none of a study's.

    Whatever reads a study asks this first.
    """
    if not os.path.lexists(layout.facts):
        raise StudyError(f"{layout.directory} is not a study: it has no study.json")
    Folder.of_study(layout.directory).close()
    facts = codec.parse(codec.read_text(layout.facts), source=str(layout.facts))
    found = facts.get("format_version") if isinstance(facts, dict) else None
    if found not in KNOWN_FORMATS:
        raise StudyError(
            f"{layout.directory} is of format {found!r:.40}, this bedplate knows {KNOWN_WORDS}; "
            "use the bedplate that made it"
        )
    if wrong := tuple(too_long("the title", str(facts.get("title", "")))):
        raise StudyError(*(f"{layout.facts} is damaged: {words}" for words in wrong))


def refuse_imported(layout: StudyLayout) -> None:
    """StudyError where the study was imported: nothing of it can be run here, nor be added to it."""
    if codec.read(StudyFacts, layout.facts).is_imported:
        raise StudyError(
            because(
                IMPORTED_STUDY,
                f"{layout.directory} was imported: others made its runs, and none is added; "
                "run a plan into a directory of its own",
            )
        )
